//! Names and other texts in IIS's configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

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
    /// The path of an application or a virtual directory in URLs: `/` or `/api/v2`.
    UrlPath
);
checked_text!(
    /// The name of a default document, `index.html`.
    DocumentName
);
checked_text!(
    /// How a site is reached, as appcmd writes it: `http/*:80:` or `https/*:443:www.example.com`.
    Binding
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

/// Whether a text is of letters, digits and these signs, with no space around it.
fn is_plain(text: &str, signs: &str) -> bool {
    let is_sound = |c: char| c.is_alphanumeric() || signs.contains(c);
    !text.is_empty() && text.trim() == text && text.chars().all(is_sound)
}

impl FromStr for Name {
    type Err = NameError;

    /// Letters, digits and a few signs: what else IIS would allow, `cmd` would read as its own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !is_plain(text, " -_.") {
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

impl UrlPath {
    /// The site itself.
    pub fn root() -> Self {
        Self("/".to_owned())
    }
}

impl FromStr for UrlPath {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_sound = |name: &str| {
            !matches!(name, "" | "." | "..")
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "-_.~".contains(c))
        };
        let names = text.strip_prefix('/');
        if !names.is_some_and(|names| names.is_empty() || names.split('/').all(is_sound)) {
            return Err(NameError {
                text: text.to_owned(),
                what: "path of an application or a virtual directory",
                expected: "/ or a path such as /api, of letters, digits, - _ . and ~",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for DocumentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !is_plain(text, " -_./") {
            return Err(NameError {
                text: text.to_owned(),
                what: "default document",
                expected: "a file's name, such as index.html",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl Binding {
    /// The protocol, and what it says about itself: for HTTP an address, a port and a host name.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or((&self.0, ""))
    }
}

impl FromStr for Binding {
    type Err = NameError;

    /// Takes what appcmd does.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_protocol = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
        };
        let is_part = |part: &str| {
            part.chars()
                .all(|c| c.is_alphanumeric() || "*.-_[]:".contains(c))
        };
        let is_http = |information: &str| {
            let mut parts = information.rsplitn(3, ':');
            let (_host, port, address) = (parts.next(), parts.next(), parts.next());
            let port = port.and_then(|port| port.parse::<u16>().ok());
            port.is_some_and(|port| port > 0) && address.is_some_and(|address| !address.is_empty())
        };
        let is_sound = text.split_once('/').is_some_and(|(protocol, information)| {
            let is_web = matches!(protocol, "http" | "https");
            is_protocol(protocol)
                && !information.is_empty()
                && is_part(information)
                && (!is_web || is_http(information))
        });
        if !is_sound {
            return Err(NameError {
                text: text.to_owned(),
                what: "binding",
                expected: "PROTOCOL/ADDRESS:PORT:HOST, such as http/*:80: or https/*:443:www.example.com",
            });
        }
        Ok(Self(text.to_owned()))
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
        for text in ["http/*:80:", "https/[::1]:443:www.a.b", "net.tcp/808:*"] {
            assert!(text.parse::<Binding>().is_ok(), "{text}");
        }
        for text in [
            "http",
            "http/80",
            "http/*:0:",
            "http/*:80:a,http/*:81:",
            "http/*:80:a b",
            "/*:80:",
        ] {
            assert!(text.parse::<Binding>().is_err(), "{text}");
        }
        for text in ["", "api", "/api/", "//", "/a/../b", "/a b", "/a%41"] {
            assert!(text.parse::<UrlPath>().is_err(), "{text}");
        }
        assert!("/".parse::<UrlPath>().is_ok() && "/api/v2".parse::<UrlPath>().is_ok());
        assert!("it's.htm".parse::<DocumentName>().is_err());
        assert!("processModel.idleTimeout".parse::<Attribute>().is_ok());
        for text in ["", "a..b", "a b", "/a", "a:b", "1a"] {
            assert!(text.parse::<Attribute>().is_err(), "{text}");
        }
    }
}
