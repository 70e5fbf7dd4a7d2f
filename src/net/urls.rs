//! What of a URL may be shown, and whether it is this machine's.

use std::net::IpAddr;

use reqwest::Url;

/// A URL as it may be shown: queries carry signatures and upload states, user parts carry secrets.
pub fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), host_of(url), url.path())
}

/// `host[:port]` of a URL.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("an unknown host");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
