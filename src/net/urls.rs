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
    host == "localhost" || address(host).is_some_and(|address| address.is_loopback())
}

/// Whether a `host[:port]` is an address of the link itself, where clouds keep what machines may know
/// of themselves, keys among that: no registry is there.
pub(super) fn is_link_local(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    address(host)
        .or_else(|| address(without_port))
        .is_some_and(|address| match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(address) => address.is_link_local(),
                None => address.is_unicast_link_local(),
            },
        })
}

fn address(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_link_are_known_with_and_without_a_port() {
        for host in [
            "169.254.169.254",
            "169.254.169.254:80",
            "[fe80::1]:5000",
            "[fe80::1]",
            "[::ffff:169.254.169.254]:80",
        ] {
            assert!(is_link_local(host), "{host}");
        }
        for host in [
            "127.0.0.1:5000",
            "[::1]:5000",
            "169.254.lan",
            "repo.lan:5000",
        ] {
            assert!(!is_link_local(host), "{host}");
        }
    }
}
