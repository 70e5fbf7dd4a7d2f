//! Hosts that may be reached without TLS, or with an unverified certificate.

use reqwest::Url;
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::without_password;

/// The hosts listed by the user as insecure; all others require HTTPS with a trusted certificate.
#[derive(Debug, Clone, Default)]
pub(crate) struct InsecureHosts(Vec<(String, Option<u16>)>);

impl InsecureHosts {
    /// Parses `HOST` (every port) and `HOST:PORT` entries.
    pub(crate) fn parse(entries: &[String]) -> Result<Self, Problem> {
        entries
            .iter()
            .map(|entry| {
                split_host(entry).ok_or_else(|| {
                    let entry = without_password(entry);
                    let problem = format!(
                        "invalid host {entry:?}: expected HOST or HOST:PORT, without a scheme"
                    );
                    Problem::request("usage/host", problem)
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns true if the user listed this host, or this port of it.
    pub(crate) fn contains(&self, host: &str, port: Option<u16>) -> bool {
        self.0.iter().any(|(listed, listed_port)| {
            listed.eq_ignore_ascii_case(host) && (listed_port.is_none() || *listed_port == port)
        })
    }

    /// Returns true if the URL's host is listed.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        url.host_str()
            .is_some_and(|host| self.contains(host, url.port_or_known_default()))
    }
}

/// Splits `HOST[:PORT]`; `None` if invalid.
fn split_host(text: &str) -> Option<(String, Option<u16>)> {
    if text.contains(['/', '@', '?', '#']) || text.contains(char::is_whitespace) {
        return None;
    }
    // `Url` drops the scheme's default port, so the port is detected in the text.
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let port = match text.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => Some(port.parse().ok()?),
        _ => None,
    };
    Some((url.host_str()?.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> InsecureHosts {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        InsecureHosts::parse(&entries).unwrap()
    }

    #[test]
    fn an_entry_with_a_port_is_for_that_port_alone() {
        let hosts = list(&["Repo.Lan:8888", "[::1]:80"]);
        assert!(hosts.contains("repo.lan", Some(8888)));
        assert!(!hosts.contains("repo.lan", Some(8889)));
        assert!(hosts.allows(&"http://[::1]/v2/".parse().unwrap()));
        assert!(!hosts.allows(&"https://[::1]/v2/".parse().unwrap()));
    }

    #[test]
    fn an_entry_without_a_port_is_for_every_port() {
        let hosts = list(&["repo.lan"]);
        assert!(hosts.contains("repo.lan", Some(5000)));
        assert!(!hosts.contains("other.lan", Some(5000)));
        assert!(!hosts.contains("not.repo.lan", Some(5000)));
    }

    #[test]
    fn loopback_is_not_insecure_unless_listed() {
        assert!(!list(&[]).contains("127.0.0.1", Some(5000)));
    }

    #[test]
    fn an_invalid_entry_is_refused() {
        for entry in [
            "http://repo.lan", "repo.lan:port", "repo.lan/prefix", "", "a b",
        ] {
            let parsed = InsecureHosts::parse(&[entry.to_owned()]);
            assert!(parsed.is_err(), "{entry}");
        }
    }
}
