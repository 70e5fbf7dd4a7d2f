//! The names under which a VEX statement can mean an image or its Windows.

use percent_encoding::percent_decode_str;

/// Position of the version among the fields of a CPE name.
pub(super) const CPE_VERSION: usize = 3;

/// An image, by its names in VEX documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VexSubject<'a> {
    /// Its repository with the registry, or the name of its file.
    pub name: &'a str,
    /// Its tag.
    pub tag: Option<&'a str>,
    /// Its digest, and that of its index.
    pub digests: Vec<&'a str>,
    /// Its architecture, as in its configuration.
    pub architecture: &'a str,
    /// CPE name of its Windows.
    pub cpe: Option<&'a str>,
}

impl VexSubject<'_> {
    /// Returns true if an identifier names the image: a digest, a reference, or a package URL.
    pub(super) fn is_image(&self, identifier: &str) -> bool {
        if let Some(purl) = identifier.strip_prefix("pkg:") {
            return self.has_purl(purl);
        }
        self.has_digest(identifier) || self.has_reference(identifier)
    }

    /// Returns true if an identifier names the image's Windows: a CPE name with its version, or
    /// without one.
    pub(super) fn is_windows(&self, identifier: &str) -> bool {
        let Some(own) = self.cpe.map(cpe_fields) else {
            return false;
        };
        let named = cpe_fields(identifier);
        named.len() >= CPE_VERSION
            && named[..CPE_VERSION] == own[..CPE_VERSION]
            && named.iter().enumerate().skip(CPE_VERSION).all(|(at, it)| {
                is_any(it)
                    || own.get(at) == Some(it)
                    || (at > CPE_VERSION && self.has_architecture(it))
            })
    }

    /// Returns true if a name is that of its architecture: OCI's, as in package URLs, or Microsoft's,
    /// as in CPE names.
    fn has_architecture(&self, name: &str) -> bool {
        let name = match name {
            "x64" | "x86_64" => "amd64",
            "aarch64" => "arm64",
            name => name,
        };
        name == self.architecture
    }

    fn has_digest(&self, digest: &str) -> bool {
        let mut own = self.digests.iter();
        own.any(|own| own.eq_ignore_ascii_case(digest))
    }

    /// `HOST/NAME[:TAG][@DIGEST]`.
    fn has_reference(&self, reference: &str) -> bool {
        let Some(rest) = reference.strip_prefix(self.name) else {
            return false;
        };
        let (tag, digest) = match rest.split_once('@') {
            Some((tag, digest)) => (tag, Some(digest)),
            None => (rest, None),
        };
        let is_tag = match tag.strip_prefix(':') {
            Some(tag) => self.tag == Some(tag),
            None => tag.is_empty(),
        };
        is_tag && digest.is_none_or(|digest| self.has_digest(digest))
    }

    /// `oci/NAME[@DIGEST][?repository_url=HOST/NAME&tag=TAG]`; other qualifiers say more than is
    /// known here.
    fn has_purl(&self, purl: &str) -> bool {
        let Some(rest) = purl.strip_prefix("oci/") else {
            return false;
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let (name, qualifiers) = rest.split_once('?').unwrap_or((rest, ""));
        let (name, version) = match name.split_once('@') {
            Some((name, version)) => (name, Some(decoded(version))),
            None => (name, None),
        };
        let own = self.name.rsplit('/').next().unwrap_or(self.name);
        let mut qualifiers = qualifiers.split('&').filter(|it| !it.is_empty());
        decoded(name).eq_ignore_ascii_case(own)
            && version.is_none_or(|version| self.has_digest(&version))
            && qualifiers.all(|qualifier| {
                let (key, value) = qualifier.split_once('=').unwrap_or((qualifier, ""));
                let value = decoded(value);
                match key {
                    "repository_url" => value.eq_ignore_ascii_case(self.name),
                    "tag" => self.tag == Some(&value),
                    "arch" => self.has_architecture(&value),
                    "os" => value == "windows",
                    _ => false,
                }
            })
    }
}

/// The fields of a CPE name of version 2.2 or 2.3, from its part on.
pub(super) fn cpe_fields(name: &str) -> Vec<String> {
    let fields = name.strip_prefix("cpe:2.3:");
    let fields = fields.or_else(|| name.strip_prefix("cpe:/"));
    let fields = fields.into_iter().flat_map(|fields| fields.split(':'));
    let plain = fields.map(|field| field.replace('\\', "").to_lowercase());
    plain.collect()
}

/// Returns true if a field of a CPE name fits every value.
pub(super) fn is_any(field: &str) -> bool {
    matches!(field, "" | "*" | "-")
}

/// Decodes `%3A` and the like.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
