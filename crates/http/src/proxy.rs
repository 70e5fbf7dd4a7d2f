//! Proxies of the environment.
//!
//! The library connects directly if it cannot parse such a variable: a typing error would bypass a
//! company's proxy, with its rules and records. So the variables are parsed here first, in the
//! library's way.

use std::env;

use http::Uri;
use reqwest::Url;
use wincimg_common::diagnose::Problem;

use super::error::HttpError;
use super::urls::is_loopback;

/// Schemes of proxies that the library knows.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The variable that names the proxy for URLs of a scheme, and its value.
fn variable_for(scheme: &str) -> Option<(&'static str, String)> {
    let own = match scheme {
        "http" => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let first_set = |names: [&'static str; 2]| {
        let mut names = names.into_iter();
        let found = names.find_map(|name| Some((name, env::var_os(name)?)));
        found.filter(|(_, value)| !value.is_empty())
    };
    let (name, value) = first_set(own).or_else(|| first_set(["ALL_PROXY", "all_proxy"]))?;
    Some((name, value.to_string_lossy().into_owned()))
}

/// Host and port of a variable's proxy; `None` if the library would ignore it.
fn host(value: &str) -> Option<String> {
    let uri: Uri = value.parse().ok()?;
    if uri.scheme_str().is_some_and(|it| !SCHEMES.contains(&it)) {
        return None;
    }
    let authority = uri.authority()?.as_str();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    (!host.is_empty()).then(|| host.to_owned())
}

/// Rejects a variable that names no proxy. Its value is not shown, because it may contain a
/// password.
pub(super) fn check(url: &Url) -> Result<(), HttpError> {
    match variable_for(url.scheme()) {
        Some((variable, value)) if host(&value).is_none() => {
            let problem = format!("{variable} is not the URL of a proxy");
            Err(Problem::request("usage/proxy", problem)
                .hint("expected http://[USER:PASSWORD@]HOST:PORT, with special characters of the password as %XX")
                .into())
        }
        _ => Ok(()),
    }
}

/// The proxy for a URL in a hint: `127.0.0.1:3128 of HTTPS_PROXY`. `NO_PROXY` may exempt the URL.
pub(super) fn named_for(url: &Url) -> Option<String> {
    let (variable, value) = variable_for(url.scheme()).filter(|_| !is_loopback(url))?;
    Some(format!("{} of {variable}", host(&value)?))
}

/// Hosts of the proxies in the environment, without their ports.
pub(super) fn hosts() -> Vec<String> {
    let values = ["http", "https"].into_iter().filter_map(variable_for);
    let hosts = values.filter_map(|(_, value)| host(&value));
    let urls = hosts.filter_map(|host| Url::parse(&format!("http://{host}")).ok());
    urls.filter_map(|url| url.host_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_ignores_is_no_proxy() {
        for (value, expected) in [
            ("http://proxy.lan:3128", "proxy.lan:3128"),
            ("proxy.lan:3128", "proxy.lan:3128"),
            ("proxy", "proxy"),
            ("https://me:p%40ss@proxy.lan/", "proxy.lan"),
            ("socks5h://[::1]:1080", "[::1]:1080"),
        ] {
            assert_eq!(host(value).as_deref(), Some(expected), "{value}");
        }
        for value in [
            "http://me:secret@%zz", ":::", "socks9://x", "http://", "/x", " http://proxy.lan",
            "http://proxy.lan\n", "\u{fffd}",
        ] {
            assert_eq!(host(value), None, "{value}");
        }
    }
}
