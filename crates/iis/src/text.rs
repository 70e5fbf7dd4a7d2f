//! Names and other texts in IIS's configuration.

use wincimg_windows::checked_text;

use super::change::is_same;

checked_text!(
    /// A file extension as in IIS's configuration: with its dot, and in lower case because IIS
    /// ignores case.
    FileExtension,
    "file extension",
    "letters, digits, - _ or +, such as json or .json",
    file_extension
);
checked_text!(
    /// A content type, `application/json`.
    MimeType,
    "content type",
    "application/json or text/plain; charset=utf-8",
    mime_type
);
checked_text!(
    /// The name of a site or an application pool: letters, digits and a few signs. IIS allows
    /// others, but `cmd` would interpret them.
    Name,
    "name of a site or an application pool",
    "letters, digits, spaces, - _ or .",
    name
);
checked_text!(
    /// The path of an application or a virtual directory in URLs: `/` or `/api/v2`.
    UrlPath,
    "path of an application or a virtual directory",
    "/ or a path such as /api, of letters, digits, - _ . and ~",
    url_path
);
checked_text!(
    /// The name of a default document, `index.html`.
    DocumentName,
    "default document",
    "a file name, such as index.html",
    document_name
);
checked_text!(
    /// Binding of a site, as appcmd writes it: `http/*:80:` or `https/*:443:www.example.com`.
    Binding,
    "binding",
    "PROTOCOL/ADDRESS:PORT:HOST, such as http/*:80: or https/*:443:www.example.com",
    binding
);
checked_text!(
    /// The path of an attribute in IIS's configuration, `processModel.idleTimeout`.
    Attribute,
    "attribute of IIS's configuration",
    "names separated by dots, such as processModel.idleTimeout",
    attribute
);

impl Name {
    /// Returns true if both names are the same to IIS.
    pub fn is_same(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl UrlPath {
    /// The site itself.
    pub fn root() -> Self {
        Self("/".to_owned())
    }
}

impl Binding {
    /// The protocol and the binding information: for HTTP an address, a port and a host name.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or((&self.0, ""))
    }
}

fn when(is_sound: bool, text: &str) -> Option<String> {
    is_sound.then(|| text.to_owned())
}

/// Accepts `json` and `.json`.
fn file_extension(text: &str) -> Option<String> {
    let name = text.strip_prefix('.').unwrap_or(text);
    let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+');
    let is_name = !name.is_empty() && name.chars().all(is_sound);
    is_name.then(|| format!(".{}", name.to_ascii_lowercase()))
}

fn mime_type(text: &str) -> Option<String> {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let names = essence.split_once('/').is_some_and(|(kind, subtype)| {
        let sound = |name: &str| !name.is_empty() && name.chars().all(is_sound);
        sound(kind) && sound(subtype)
    });
    let tail = parameters
        .chars()
        .all(|c| is_sound(c) || matches!(c, ' ' | '=' | ';'));
    when(names && tail, text)
}

fn name(text: &str) -> Option<String> {
    plain(text, " -_.")
}

fn document_name(text: &str) -> Option<String> {
    plain(text, " -_./")
}

/// Checks for a text of letters, digits and these signs, without surrounding spaces.
fn plain(text: &str, signs: &str) -> Option<String> {
    let is_sound = |c: char| c.is_alphanumeric() || signs.contains(c);
    let is_plain = !text.is_empty() && text.trim() == text && text.chars().all(is_sound);
    when(is_plain, text)
}

fn attribute(text: &str) -> Option<String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric())
    };
    when(text.split('.').all(is_name), text)
}

fn url_path(text: &str) -> Option<String> {
    let is_sound = |name: &str| {
        !matches!(name, "" | "." | "..")
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.~".contains(c))
    };
    let names = text.strip_prefix('/')?;
    when(names.is_empty() || names.split('/').all(is_sound), text)
}

/// Accepts what appcmd accepts.
fn binding(text: &str) -> Option<String> {
    let (protocol, information) = text.split_once('/')?;
    let is_protocol = !protocol.is_empty()
        && protocol
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.');
    let is_part = |c: char| c.is_alphanumeric() || "*.-_[]:".contains(c);
    let is_http = || {
        let mut parts = information.rsplitn(3, ':');
        let (_host, port, address) = (parts.next(), parts.next(), parts.next());
        let port = port.and_then(|port| port.parse::<u16>().ok());
        port.is_some_and(|port| port > 0) && address.is_some_and(|address| !address.is_empty())
    };
    let is_sound = is_protocol
        && !information.is_empty()
        && information.chars().all(is_part)
        && (!matches!(protocol, "http" | "https") || is_http());
    when(is_sound, text)
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
            "json", "a/", "/b", "a/b/c", "a/b' onx='", "a/\"b\"", "a/b\n",
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
            "http", "http/80", "http/*:0:", "http/*:80:a,http/*:81:", "http/*:80:a b", "/*:80:",
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
