//! The configuration of a connection, from a kubeconfig or a pod.

use http::Uri;
use http::uri::Authority;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use wincimg_common::diagnose::{Problem, closest_match};

use super::error::no_context;
use super::{ClusterContext, LiveError, proxy};

/// Reads the configuration of a kubeconfig's context: by default of the current one or, inside a pod,
/// of the pod's own cluster. Returns the name of the proxy too, to follow that of the server.
pub(super) async fn read(context: &ClusterContext) -> Result<(Config, String), LiveError> {
    let (kubeconfig, name) = (&context.kubeconfig, &context.name);
    let read = match kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    if let (Ok(read), Some(name)) = (&read, name) {
        let names = || read.contexts.iter().map(|known| known.name.as_str());
        if !names().any(|known| known == name) {
            return Err(no_context(name, closest_match(name, names())));
        }
    }
    let options = KubeConfigOptions {
        context: name.clone(),
        ..KubeConfigOptions::default()
    };
    let own = read.as_ref().ok();
    let own = own.and_then(|read| proxy::of_kubeconfig(read, name.as_deref()));
    let config = match read {
        Ok(read) => Config::from_custom_kubeconfig(read, &options).await,
        Err(error) => Err(error),
    };
    let is_named = kubeconfig.is_some() || name.is_some();
    let (mut config, own) = match config {
        Ok(config) => (config, own),
        Err(error) if is_named => return Err(problem(&error)),
        Err(error) => (Config::incluster().map_err(|_| problem(&error))?, None),
    };
    config.cluster_url = without_user(config.cluster_url);
    let proxy = proxy::select(&mut config, own)?;
    Ok((config, proxy))
}

/// Removes user and password from a URL: kube does not send them, but they would be printed.
fn without_user(url: Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    let authority = parts.authority.take();
    let host = authority
        .as_ref()
        .and_then(|it| it.as_str().rsplit_once('@'));
    let Some(host) = host.and_then(|(_, host)| host.parse::<Authority>().ok()) else {
        return url;
    };
    parts.authority = Some(host);
    Uri::from_parts(parts).unwrap_or(url)
}

/// Error for a kubeconfig, in one line, because the text of these errors contains their causes.
fn problem(error: &KubeconfigError) -> LiveError {
    let usage = |problem: String, hint: &str| {
        let problem = Problem::request("usage/proxy", problem);
        LiveError::from(problem.hint(hint))
    };
    match error {
        KubeconfigError::ParseProxyUrl(_) => usage(
            "HTTPS_PROXY, or proxy-url of the kubeconfig, is not the URL of a proxy".to_owned(),
            "expected http://[USER:PASSWORD@]HOST:PORT; or unset HTTPS_PROXY for this command",
        ),
        KubeconfigError::ParseNoProxy(error) => usage(
            format!("invalid NO_PROXY: {error}"),
            "list hosts, addresses and networks, separated by commas, without empty entries",
        ),
        KubeconfigError::ReadConfig(error, path) => {
            LiveError::Config(format!("cannot read {}: {error}", path.display()).into())
        }
        other => {
            let text = other.to_string();
            LiveError::Config(text.lines().next().unwrap_or_default().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_kept_without_its_user() {
        for (url, kept) in [
            (
                "https://bob:s3cr3t@api.lan:6443/k8s/@x",
                "https://api.lan:6443/k8s/@x",
            ),
            ("https://token@[::1]:6443", "https://[::1]:6443/"),
            ("https://api.lan/k8s/@x", "https://api.lan/k8s/@x"),
        ] {
            let url: Uri = url.parse().unwrap();
            assert_eq!(without_user(url).to_string(), kept);
        }
    }
}
