//! Names in the catalog: products, architectures, and the parts of an update's title.
//!
//! `2024-05 Cumulative Update for Microsoft server operating system, version 23H2 for x64-based
//! Systems (KB5037781)`: a kind, ` for ` a product, ` for ` an architecture, and the article.

use std::fmt;
use std::str::FromStr;

use wincimg_common::Named;
use wincimg_windows::release::{self, Release};
use wincimg_windows::update::Kb;

/// The processor architecture that an update is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Named)]
#[named(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit, AMD and Intel.
    #[default]
    X64,
    /// 32-bit.
    X86,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// The spelling inside a package: `amd64`.
    pub(crate) fn in_package(self) -> &'static str {
        match self {
            Self::X64 => "amd64",
            Self::X86 | Self::Arm64 => self.name(),
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "x64" | "amd64" | "x86_64" => Ok(Self::X64),
            "x86" | "i386" => Ok(Self::X86),
            "arm64" | "aarch64" => Ok(Self::Arm64),
            _ => Err(format!(
                "unknown architecture {text:?}: expected x64, x86 or arm64"
            )),
        }
    }
}

/// The names under which the catalog lists updates of one product, for comparison only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    shown: String,
    names: Vec<String>,
}

impl Product {
    /// The server edition of a build.
    pub fn for_build(build: u32) -> Option<Self> {
        let release = release::from_build(build)?;
        (!release.catalog_names.is_empty()).then(|| Self::of_release(release))
    }

    /// A product by any of its names; an unknown name is compared with titles as it is.
    pub fn from_name(name: &str) -> Self {
        match release_named(name) {
            Some(release) => Self::of_release(release),
            None => Self {
                shown: name.trim().to_owned(),
                names: vec![normalize(name)],
            },
        }
    }

    fn of_release(release: &Release) -> Self {
        let names = &release.catalog_names;
        Self {
            shown: names.last().copied().unwrap_or_default().to_owned(),
            names: names.iter().map(|name| normalize(name)).collect(),
        }
    }

    /// Returns true if a title's product is this one.
    pub fn matches(&self, title: &Title) -> bool {
        let own = normalize(&title.product);
        self.names.contains(&own)
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Build of the server edition that is a title's product.
pub fn build_of(title: &Title) -> Option<u32> {
    release_named(&title.product).map(|release| release.build)
}

fn release_named(product: &str) -> Option<&'static Release> {
    let wanted = normalize(product);
    release::all().iter().find(|release| {
        let mut names = release.catalog_names.iter();
        names.any(|name| normalize(name) == wanted)
    })
}

/// Case, commas and runs of spaces differ from month to month.
fn normalize(name: &str) -> String {
    name.split([' ', ',', '\t', '\u{a0}'])
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// An update's title in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// `2020-04 Cumulative Update`.
    pub kind: String,
    /// `Windows Server 2019`.
    pub product: String,
    /// The architecture; absent in older titles of 32-bit updates.
    pub arch: Option<Arch>,
    /// The article in brackets.
    pub kb: Option<Kb>,
}

impl Title {
    /// Splits a title; missing parts stay empty.
    pub fn read(title: &str) -> Self {
        let (before, kb) = match title.rfind("(KB") {
            Some(start) => {
                let number = title[start + 1..].split(')').next().unwrap_or_default();
                (&title[..start], number.parse().ok())
            }
            None => (title, None),
        };
        let (kind, rest) = before.split_once(" for ").unwrap_or((before, ""));
        let (product, arch) = match rest.rsplit_once(" for ") {
            Some((product, last)) => match arch_word(last) {
                Some(arch) => (product, Some(arch)),
                None => (rest, None),
            },
            None => (rest, None),
        };
        Self {
            kind: kind.trim().to_owned(),
            product: product.trim().to_owned(),
            arch,
            kb,
        }
    }
}

/// `x64-based Systems`, `ARM64-based Systems`, `x64`.
fn arch_word(text: &str) -> Option<Arch> {
    text.trim().split(['-', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_comes_apart() {
        let title = Title::read(
            "2024-05 Cumulative Update for Microsoft server operating system, version 23H2 \
             for x64-based Systems (KB5037781)",
        );
        assert_eq!(title.kind, "2024-05 Cumulative Update");
        let product = "Microsoft server operating system, version 23H2";
        assert_eq!(title.product, product);
        assert_eq!(title.arch, Some(Arch::X64));
        assert_eq!(title.kb, "KB5037781".parse().ok());
        assert_eq!(build_of(&title), Some(25398));
    }

    #[test]
    fn titles_of_another_shape_keep_what_they_have() {
        let title = Title::read("Update for Microsoft Office 2013 (KB4022233) 64-Bit Edition");
        assert_eq!(title.product, "Microsoft Office 2013");
        assert_eq!(title.arch, None);
        assert_eq!(title.kb, "4022233".parse().ok());
        let title = Title::read(
            "2019-02 Update for Removal of Adobe Flash Player for Windows 10 for x64 (KB123) x",
        );
        let product = "Removal of Adobe Flash Player for Windows 10";
        assert_eq!(title.product, product);
        assert_eq!((title.arch, title.kb), (Some(Arch::X64), None));
        assert_eq!(Title::read("ä(KB").kb, None);
    }

    #[test]
    fn a_product_answers_to_all_its_names() {
        let by_name = Product::from_name(" windows server 2022");
        assert_eq!(Some(&by_name), Product::for_build(20348).as_ref());
        assert_eq!(by_name.to_string(), "Windows Server 2022");
        let title = |product: &str| Title::read(&format!("U for {product} for x64 (KB5037781)"));
        assert!(by_name.matches(&title("Microsoft server operating system, version 21H2")));
        assert!(!by_name.matches(&title("Microsoft server operating system version 22H2")));
        let client = "Windows 10 Version 1809";
        assert!(Product::from_name(client).matches(&title(client)));
    }
}
