//! What can be set about a site on IIS: which files it may serve and as what, and how its
//! application pool runs.
//!
//! The first lives in the site's `web.config`, which [`webconfig`] changes as text; the second in
//! the server's own configuration, for which Windows has to run [`appcmd`].

pub mod appcmd;
pub mod webconfig;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::path::ImagePath;

/// The site that IIS is installed with.
pub const DEFAULT_SITE: &str = "Default Web Site";

/// The folder of that site.
pub const DEFAULT_PATH: &str = r"C:\inetpub\wwwroot";

/// The application pool of that site.
pub const DEFAULT_APP_POOL: &str = "DefaultAppPool";

/// What is set about one site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IisSettings {
    /// The site's name.
    pub site: Name,
    /// The folder with the site's files.
    pub path: ImagePath,
    /// The file extensions that it may serve, whatever the server's own list says.
    pub file_extensions: BTreeSet<FileExtension>,
    /// The content type of files, by their extension.
    pub mime_types: BTreeMap<FileExtension, MimeType>,
    /// The pool whose settings these are.
    pub app_pool: Name,
    /// Settings of the application pool, by the path of their attribute.
    pub app_pool_settings: BTreeMap<Attribute, String>,
}

/// Why a text cannot be part of IIS's configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {text:?}: expected {expected}")]
pub struct NameError {
    text: String,
    what: &'static str,
    expected: &'static str,
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

checked_text!(
    /// A file extension as IIS wants it: with its dot, and in small letters, since IIS does not
    /// tell cases apart.
    FileExtension
);
checked_text!(
    /// A content type, `application/json`.
    MimeType
);
checked_text!(
    /// The name of a site or an application pool.
    Name
);
checked_text!(
    /// The path of an attribute in IIS's configuration, `processModel.idleTimeout`.
    Attribute
);

impl FromStr for FileExtension {
    type Err = NameError;

    /// Takes `json` and `.json`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix('.').unwrap_or(text);
        let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+');
        if name.is_empty() || !name.chars().all(is_sound) {
            return Err(NameError {
                text: text.to_owned(),
                what: "file extension",
                expected: "letters, digits, - _ or +, such as json or .json",
            });
        }
        Ok(Self(format!(".{}", name.to_ascii_lowercase())))
    }
}

impl FromStr for MimeType {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_sound = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
        let names = essence.split_once('/').is_some_and(|(kind, subtype)| {
            let sound = |name: &str| !name.is_empty() && name.chars().all(is_sound);
            sound(kind) && sound(subtype)
        });
        let tail = parameters
            .chars()
            .all(|c| is_sound(c) || matches!(c, ' ' | '=' | ';'));
        if !names || !tail {
            return Err(NameError {
                text: text.to_owned(),
                what: "content type",
                expected: "application/json or text/plain; charset=utf-8",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Name {
    type Err = NameError;

    /// Letters, digits and a few signs: what else IIS would allow, `cmd` would read as its own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_sound = |c: char| c.is_alphanumeric() || " -_.".contains(c);
        if text.trim() != text || text.is_empty() || !text.chars().all(is_sound) {
            return Err(NameError {
                text: text.to_owned(),
                what: "name of a site or an application pool",
                expected: "letters, digits, spaces, - _ or .",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Attribute {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
        };
        if !text.split('.').all(is_name) {
            return Err(NameError {
                text: text.to_owned(),
                what: "attribute of IIS's configuration",
                expected: "names with dots between, such as processModel.idleTimeout",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl IisSettings {
    /// The settings that live in the server's own configuration, each by its name: nobody but
    /// Windows can make them.
    pub fn of_the_server(&self) -> Vec<String> {
        let path = (self.path.to_string() != DEFAULT_PATH)
            .then(|| format!("the folder of the site {:?}", self.site.as_str()));
        let pool = self.app_pool_settings.keys().map(|attribute| {
            format!(
                "{attribute} of the application pool {:?}",
                self.app_pool.as_str()
            )
        });
        path.into_iter().chain(pool).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_gets_its_dot_and_loses_its_capitals() {
        for text in ["json", ".json", ".JSON"] {
            assert_eq!(text.parse::<FileExtension>().unwrap().as_str(), ".json");
        }
        for text in ["", ".", "a b", "a'b", "..json", "js*", "tar.gz"] {
            assert!(text.parse::<FileExtension>().is_err(), "{text}");
        }
    }

    #[test]
    fn content_types_names_and_attributes_are_checked() {
        for text in [
            "application/json",
            "text/plain; charset=utf-8",
            "a/b+c.d-e_f",
        ] {
            assert_eq!(text.parse::<MimeType>().unwrap().as_str(), text);
        }
        for text in [
            "json",
            "a/",
            "/b",
            "a/b/c",
            "a/b' onx='",
            "a/\"b\"",
            "a/b\n",
        ] {
            assert!(text.parse::<MimeType>().is_err(), "{text}");
        }
        assert!("Default Web Site".parse::<Name>().is_ok());
        for text in ["", " a", "a\\b", "100%", "a&b", "it's"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        assert!("processModel.idleTimeout".parse::<Attribute>().is_ok());
        for text in ["", "a..b", "a b", "/a", "a:b", "1a"] {
            assert!(text.parse::<Attribute>().is_err(), "{text}");
        }
    }
}
