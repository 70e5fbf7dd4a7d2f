//! `--tag`: a tag, or the whole name of an image as for `docker build -t`; and the options for tags.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wincimg_engine::delivery::TagPolicy;
use wincimg_engine::publication::{IndexMode, NamingOptions, TagStyle};
use wincimg_oci::reference::{is_repository, is_tag, prefix_and_name};

use crate::cli::prelude::*;

/// Registry, name and tag of images, as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ImageName {
    pub(super) registry: Option<RegistryPrefix>,
    pub(super) name: Option<String>,
    pub(super) tag: Option<String>,
}

impl ImageName {
    /// Name and tag, unless it is a tag alone. A whole name always has a tag.
    pub(super) fn name_and_tag(&self) -> Option<(&str, &str)> {
        Some((self.name.as_deref()?, self.tag.as_deref()?))
    }

    /// Notes a tag alone that is the default name, which was probably meant as in Docker.
    pub(super) fn note_tag(&self, name: &str, session: &Session) {
        if self.name.is_none() && self.tag.as_deref() == Some(name) {
            session.note(format_args!(
                "-t {name} is the tag of {name}:{name}; for the tag latest, write -t {name}:latest"
            ));
        }
    }
}

/// Parses `TAG`, `NAME:TAG` or `HOST[/PREFIX]/NAME[:TAG]`. As with Docker, the tag of a whole name
/// is `latest` by default.
pub(super) fn tag_or_name(text: &str) -> Result<ImageName, String> {
    if is_tag(text) {
        return Ok(ImageName {
            tag: Some(text.to_owned()),
            ..ImageName::default()
        });
    }
    let expected = || {
        format!(
            "invalid tag {}: expected TAG, NAME:TAG or HOST/NAME:TAG",
            QuotedText(text)
        )
    };
    if text.contains('@') {
        return Err(format!("{text:?} has a digest, which the build determines"));
    }
    if !text.contains('/') {
        let (name, tag) = text.split_once(':').ok_or_else(expected)?;
        return (is_repository(name) && is_tag(tag))
            .then(|| ImageName {
                registry: None,
                name: Some(name.to_owned()),
                tag: Some(tag.to_owned()),
            })
            .ok_or_else(|| match parse_reference(text) {
                Ok(_) => expected(),
                Err(error) => error.to_string(),
            });
    }
    let reference = parse_reference(text).map_err(|error| error.to_string())?;
    let (prefix, name) = prefix_and_name(&reference);
    Ok(ImageName {
        registry: Some(prefix.parse().map_err(|_| expected())?),
        name: Some(name.to_owned()),
        tag: Some(reference.tag().unwrap_or("latest").to_owned()),
    })
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TagArgs {
    /// Keep the tag's entries for other platforms and Windows builds
    ///
    /// Registries cannot update a tag atomically, so the tag is read again after the push, and
    /// entries that a concurrent build removed are restored.
    #[arg(long, conflicts_with_all = ["replace", "no_index"], hide_short_help = true)]
    pub(super) join: bool,
    /// Remove the tag's entries for other platforms and Windows builds
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Push only the version tags, without an index
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) no_index: bool,
    /// Name of Windows in tags: its version (1.4-10.0.20348.2402) or its release (1.4-ltsc2022)
    #[arg(long, default_value = "version", value_parser = tag_styles(), hide_short_help = true)]
    tag_style: TagStyle,
}

fn tag_styles() -> impl TypedValueParser<Value = TagStyle> {
    PossibleValuesParser::new(["version", "release"]).map(|name| match name.as_str() {
        "release" => TagStyle::Release,
        _ => TagStyle::Version,
    })
}

/// The policy of `--join` and `--replace`.
pub(in crate::cli) fn tag_policy(join: bool, replace: bool) -> TagPolicy {
    match (join, replace) {
        (true, _) => TagPolicy::Join,
        (false, true) => TagPolicy::Replace,
        (false, false) => TagPolicy::Protect,
    }
}

impl TagArgs {
    pub(in crate::cli) fn existing(&self) -> TagPolicy {
        tag_policy(self.join, self.replace)
    }

    /// Names of the images; with --join also a single one gets an index.
    pub(in crate::cli) fn naming(&self, name: String, tag: Option<String>) -> NamingOptions {
        let index = match (self.no_index, self.join) {
            (true, _) => IndexMode::Never,
            (false, true) => IndexMode::Always,
            (false, false) => IndexMode::Several,
        };
        NamingOptions {
            name,
            tag,
            index,
            style: self.tag_style,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_may_be_a_whole_name() {
        for (text, registry, name, tag) in [
            ("1.4", None, None, "1.4"),
            ("app:1.4", None, Some("app"), "1.4"),
            ("repo.lan:5/app:1.4", Some("repo.lan:5"), Some("app"), "1.4"),
            ("repo.lan/a/b/app:1", Some("repo.lan/a/b"), Some("app"), "1"),
            ("localhost/app", Some("localhost"), Some("app"), "latest"),
            ("me/app:1", Some("docker.io/me"), Some("app"), "1"),
        ] {
            let expected = ImageName {
                registry: registry.map(|prefix| prefix.parse().unwrap()),
                name: name.map(str::to_owned),
                tag: Some(tag.to_owned()),
            };
            assert_eq!(tag_or_name(text), Ok(expected), "{text}");
        }
        for text in [
            "", "a b", "repo.lan/APP:1", "repo.lan/app@sha256:00", ":1", "a:b:c",
        ] {
            assert!(tag_or_name(text).is_err(), "{text}");
        }
        for text in ["App:1", "ghcr.io/Acme/app:1"] {
            let problem = tag_or_name(text).unwrap_err();
            assert!(problem.contains("uppercase letter"), "{problem}");
        }
    }
}
