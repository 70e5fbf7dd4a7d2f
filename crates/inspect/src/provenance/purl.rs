//! Package URLs, the common names of packages across ecosystems.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::packages::Ecosystem;

/// Characters that are encoded.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The type of a package URL.
pub(super) fn kind_of(ecosystem: Ecosystem) -> &'static str {
    match ecosystem {
        Ecosystem::Go => "golang",
        Ecosystem::Maven => "maven",
        Ecosystem::Npm => "npm",
        Ecosystem::NuGet => "nuget",
        Ecosystem::PyPi => "pypi",
        Ecosystem::Program => "generic",
    }
}

/// `pkg:npm/%40scope/name@1.0.0`.
pub(super) fn of_package(ecosystem: Ecosystem, name: &str, version: Option<&str>) -> String {
    let name = match ecosystem {
        Ecosystem::Go | Ecosystem::Npm => path(name),
        // The group is the namespace.
        Ecosystem::Maven => path(&name.replace(':', "/")),
        Ecosystem::NuGet | Ecosystem::Program => encoded(name),
        // PyPI treats names that differ in these ways as equal.
        Ecosystem::PyPi => encoded(&name.to_lowercase().replace(['_', '.'], "-")),
    };
    let version = version.map(|version| format!("@{}", encoded(version)));
    let kind = kind_of(ecosystem);
    format!("pkg:{kind}/{name}{}", version.unwrap_or_default())
}

/// `pkg:oci/app@sha256%3A…?repository_url=host/path/app`, or without a repository if the name has
/// none.
pub(super) fn of_image(name: &str, digest: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let place = if name.contains('/') {
        format!("?repository_url={}", path(&name.to_lowercase()))
    } else {
        String::new()
    };
    format!("pkg:oci/{}@{}{place}", encoded(&last), encoded(digest))
}

/// Qualifier with the product code of Windows Installer.
pub(super) fn product_code(code: &str) -> String {
    format!("?product_code={}", encoded(code))
}

/// A name with namespaces, which keeps its slashes.
fn path(name: &str) -> String {
    let parts: Vec<String> = name.split('/').map(encoded).collect();
    parts.join("/")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_each_ecosystem_has_them() {
        let of = |ecosystem, name| of_package(ecosystem, name, Some("1.0+x"));
        let scoped = of(Ecosystem::Npm, "@angular/core");
        assert_eq!(scoped, "pkg:npm/%40angular/core@1.0%2Bx");
        let module = of(Ecosystem::Go, "golang.org/x/sys");
        assert_eq!(module, "pkg:golang/golang.org/x/sys@1.0%2Bx");
        let python = of(Ecosystem::PyPi, "Ruamel_yaml");
        assert_eq!(python, "pkg:pypi/ruamel-yaml@1.0%2Bx");
        let java = of(Ecosystem::Maven, "org.slf4j:slf4j-api");
        assert_eq!(java, "pkg:maven/org.slf4j/slf4j-api@1.0%2Bx");
        let program = of_package(Ecosystem::Program, "7-Zip & more", None);
        assert_eq!(program, "pkg:generic/7-Zip%20%26%20more");
    }

    #[test]
    fn an_image_is_named_with_its_place() {
        let placed = of_image("repo.lan:8888/apps/web", "sha256:ab");
        let expected = "pkg:oci/web@sha256%3Aab?repository_url=repo.lan%3A8888/apps/web";
        assert_eq!(placed, expected);
        assert_eq!(of_image("web", "sha256:ab"), "pkg:oci/web@sha256%3Aab");
    }
}
