//! Display of URLs without secrets, and tests of hosts.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use reqwest::Url;
use wincimg_common::untrusted::{QuotedText, without_password};

use super::addresses::{AddressScope, is_metadata_name};

/// A URL for display: without query, which may contain signatures or upload states, and user part,
/// which may contain secrets.
pub fn redacted(url: &Url) -> String {
    match url.host_str() {
        Some(_) => format!("{}://{}{}", url.scheme(), host_of(url), url.path()),
        None => format!("{}:{}", url.scheme(), url.path()),
    }
}

/// `host[:port]` of a URL.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("an unknown host");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Parses the URL of a download.
pub fn download_url(text: &str) -> Result<Url, String> {
    let hidden = QuotedText(without_password(text));
    let url: Url = text
        .parse()
        .map_err(|error| format!("invalid URL {hidden}: {error}"))?;
    let secret = !url.username().is_empty() || url.password().is_some();
    match url.scheme() {
        // The image and its metadata would disclose it.
        "http" | "https" if secret => Err(format!(
            "{} contains a user or a password, which is not supported",
            redacted(&url)
        )),
        "http" | "https" => Ok(url),
        _ => Err(format!(
            "invalid URL {hidden}: expected https:// or http://"
        )),
    }
}

/// The last part of a URL's path.
pub fn name_in(url: &Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    let bytes = percent_decode_str(last).collect();
    let name = String::from_utf8(bytes).ok()?;
    (!name.is_empty()).then_some(name)
}

pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(wincimg_common::is_loopback)
}

/// Returns true if a `host[:port]` is where clouds serve instance metadata, including keys: no
/// registry is there.
pub fn is_metadata(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let name = without_port.trim_end_matches('.');
    let found = address(host).or_else(|| address(without_port));
    is_metadata_name(name)
        || found.is_some_and(|found| AddressScope::of(found) == AddressScope::Metadata)
}

fn address(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_host_is_printed_as_it_is() {
        for (text, shown) in [
            ("file:///etc/passwd?a", "file:/etc/passwd"),
            ("https://me:secret@repo.lan:81/a?b", "https://repo.lan:81/a"),
        ] {
            assert_eq!(redacted(&text.parse().unwrap()), shown);
        }
    }

    #[test]
    fn a_file_is_named_by_the_end_of_its_url() {
        let name = |text: &str| download_url(text).ok().and_then(|url| name_in(&url));
        let named = |text| name(text).unwrap_or_default();
        let tool = named("https://repo.lan/a/tool-1.2.zip?x=/y#z");
        assert_eq!(tool, "tool-1.2.zip");
        assert_eq!(named("http://repo.lan:81/a%20b%2Bc%zz"), "a b+c%zz");
        for text in [
            "https://repo.lan",
            "https://repo.lan/a/",
            "https://repo.lan/%ff",
            "https://me:secret@repo.lan/a",
            "ftp://repo.lan/a",
            "repo.lan/a",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_of_metadata_are_known_with_and_without_a_port() {
        for host in [
            "169.254.169.254",
            "169.254.169.254:80",
            "[fe80::1]:5000",
            "[fe80::1]",
            "Metadata.google.internal.:80",
        ] {
            assert!(is_metadata(host), "{host}");
        }
        for host in [
            "127.0.0.1:5000", "[::1]:5000", "169.254.lan", "repo.lan:5000",
        ] {
            assert!(!is_metadata(host), "{host}");
        }
    }
}
