//! The proxy to a cluster, chosen as kubectl does: `proxy-url` of the kubeconfig, or the environment's
//! unless `NO_PROXY` lists the server. kube would look for the proxy itself in `NO_PROXY`.

use std::env;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::{Config, Kubeconfig};
use wincimg_common::diagnose::Problem;
use wincimg_common::is_loopback;

use super::LiveError;

/// Schemes of proxies that kube knows.
const SCHEMES: [&str; 3] = ["http", "https", "socks5"];

/// The `proxy-url` of a context's cluster.
pub(super) fn of_kubeconfig(read: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(read.current_context.as_deref())?;
    let context = read.contexts.iter().find(|it| it.name == name)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = read.clusters.iter().find(|it| it.name == *cluster)?;
    let url = cluster.cluster.as_ref()?.proxy_url.clone()?;
    (!url.is_empty()).then_some(url)
}

/// Sets the proxy to a server, and returns its name, to follow that of the server.
pub(super) fn select(config: &mut Config, own: Option<String>) -> Result<String, LiveError> {
    config.proxy_url = None;
    let server = &config.cluster_url;
    let (source, text, hint) = match own {
        Some(url) => {
            let hint =
                "set it again: kubectl config set-cluster CLUSTER --proxy-url=http://HOST:PORT";
            ("the kubeconfig", url, hint.to_owned())
        }
        None => match of_environment(server) {
            Some((variable, url)) => {
                let host = server.host().unwrap_or_default();
                let hint = format!("unset {variable} for this command, or add {host} to NO_PROXY");
                (variable, url, hint)
            }
            None => return Ok(String::new()),
        },
    };
    let url = if text.contains("://") {
        text
    } else {
        format!("http://{text}")
    };
    let parsed = url.parse::<Uri>().ok().filter(is_usable);
    let Some(authority) = parsed.as_ref().and_then(Uri::authority) else {
        // Its value may contain a password.
        let problem = format!("the proxy of {source} is not an http, https or socks5 URL");
        return Err(Problem::request("usage/proxy", problem).hint(hint).into());
    };
    let host = authority.as_str();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let name = format!(" through the proxy {host} of {source}");
    config.proxy_url = parsed;
    Ok(name)
}

fn is_usable(url: &Uri) -> bool {
    let is_known = url.scheme_str().is_some_and(|it| SCHEMES.contains(&it));
    is_known && url.host().is_some_and(|host| !host.is_empty())
}

/// The proxy of the environment for a server, with its variable.
fn of_environment(server: &Uri) -> Option<(&'static str, String)> {
    let found = first_set(match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    })?;
    let listed = first_set(["NO_PROXY", "no_proxy"]).unwrap_or_default().1;
    (!is_exempt(server, &listed)).then_some(found)
}

fn first_set(names: [&'static str; 2]) -> Option<(&'static str, String)> {
    let mut set = names
        .into_iter()
        .filter_map(|name| Some((name, env::var(name).ok()?)));
    set.find(|(_, value)| !value.is_empty())
}

/// Returns true for a server on this machine, or in the list of `NO_PROXY`.
fn is_exempt(server: &Uri, listed: &str) -> bool {
    let matcher = Matcher::builder().all("http://proxy").no(listed).build();
    server.host().is_some_and(is_loopback) || matcher.intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Config {
        Config::new(url.parse().unwrap())
    }

    #[test]
    fn servers_in_no_proxy_and_on_this_machine_are_exempt() {
        for (url, listed, expected) in [
            ("https://api.lan:6443", "", false),
            ("https://api.lan:6443", "other.lan, api.lan,", true),
            ("https://api.lan:6443", ".lan", true),
            ("https://api.lan:6443", "*", true),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "proxy.lan", false),
            ("https://127.0.0.1:6443", "", true),
            ("https://[::1]:6443", "", true),
            ("http://localhost:8001", "", true),
        ] {
            let server = server(url);
            assert_eq!(
                is_exempt(&server.cluster_url, listed),
                expected,
                "{url} {listed}"
            );
        }
    }

    #[test]
    fn a_proxy_is_named_without_its_password() {
        for (text, name) in [
            ("http://bob:s3cr3t@proxy.lan:3128", "proxy.lan:3128"),
            ("bob:s3cr3t@proxy.lan:3128", "proxy.lan:3128"),
            ("socks5://[::1]:1080", "[::1]:1080"),
        ] {
            let mut config = server("https://api.lan:6443");
            let named = select(&mut config, Some(text.to_owned())).unwrap();
            assert_eq!(
                named,
                format!(" through the proxy {name} of the kubeconfig")
            );
            let url = config.proxy_url.unwrap().to_string();
            assert!(url.contains(text.rsplit("://").next().unwrap()), "{url}");
        }
        for text in [
            "ftp://bob:s3cr3t@proxy.lan",
            "http://bob:s3cr3t@%zz",
            "http://",
        ] {
            let mut config = server("https://api.lan:6443");
            let error = select(&mut config, Some(text.to_owned())).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("s3cr3t"), "{told}");
        }
    }
}
