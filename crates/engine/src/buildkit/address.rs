//! Addresses of `BuildKit`'s daemon.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;
use wincimg_common::is_loopback;

use crate::docker::Environment;

/// Scheme of the address of a TCP port; with `+`, the beginning of other addresses.
pub(crate) const SCHEME: &str = "buildkit";

/// Other schemes of `buildctl`; those for containers on this machine are for Linux.
const SCHEMES: [&str; 3] = ["unix", "npipe", "kube-pod"];

/// Address of a daemon: `buildkit://HOST:PORT`, or `buildkit+` and another address of `buildctl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildkitAddress {
    scheme: String,
    rest: String,
}

impl BuildkitAddress {
    /// Returns true if a text has the scheme of such an address.
    pub fn is_meant(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| it == SCHEME || it.starts_with(&format!("{SCHEME}+")))
    }

    pub(super) fn for_buildctl(&self) -> String {
        format!("{}://{}", self.scheme, self.rest)
    }

    /// The host of a TCP port.
    fn host(&self) -> Option<&str> {
        let host = self.rest.rsplit_once(':').map(|(host, _)| host);
        host.filter(|_| self.scheme == "tcp")
    }

    /// Returns true if `localhost` is the same for the daemon, as far as its address shows.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        match self.host() {
            Some(host) => is_loopback(host),
            None => matches!(self.scheme.as_str(), "unix" | "npipe"),
        }
    }

    /// Returns true if other machines can read the connection.
    pub(super) fn is_readable(&self, has_tls: bool) -> bool {
        !has_tls && self.host().is_some_and(|host| !is_loopback(host))
    }

    /// The flags of `buildctl` with the TLS files of Docker's variables, if the daemon listens on
    /// TCP. The files have Docker's names or those of a secret of Kubernetes.
    pub(super) fn tls(&self, environment: &Environment) -> Vec<(&'static str, PathBuf)> {
        let is_set = environment.tls_verify || environment.tls;
        let folder = environment.certificates.as_ref();
        let folder = folder.or(environment.config.as_ref());
        let Some(folder) = folder.filter(|_| is_set && self.host().is_some()) else {
            return Vec::new();
        };
        let file = |names: [&str; 2]| {
            let paths = names.map(|name| folder.join(name));
            paths.into_iter().find(|path| path.is_file())
        };
        let authority = file(["ca.pem", "ca.crt"]).unwrap_or_else(|| folder.join("ca.pem"));
        let mut flags = vec![("--tlscacert", authority)];
        let identity = file(["cert.pem", "tls.crt"]).zip(file(["key.pem", "tls.key"]));
        if let Some((certificate, key)) = identity {
            flags.extend([("--tlscert", certificate), ("--tlskey", key)]);
        }
        flags
    }
}

impl FromStr for BuildkitAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "invalid address of BuildKit: expected {SCHEME}://HOST:PORT, \
                 {SCHEME}+unix:///run/buildkit/buildkitd.sock or {SCHEME}+npipe:////./pipe/buildkitd"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
        let scheme = match scheme.strip_prefix(SCHEME).ok_or_else(expected)? {
            "" | "+tcp" => "tcp",
            other => other.strip_prefix('+').ok_or_else(expected)?,
        };
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '@';
        let is_known = if scheme == "tcp" {
            let url = Url::parse(&format!("tcp://{rest}")).ok();
            url.is_some_and(|url| {
                url.port().is_some() && url.path().is_empty() && !rest.contains(['?', '#'])
            })
        } else {
            SCHEMES.contains(&scheme) && !rest.is_empty()
        };
        if !is_known || !rest.chars().all(is_plain) {
            return Err(expected());
        }
        Ok(Self {
            scheme: scheme.to_owned(),
            rest: rest.to_owned(),
        })
    }
}

impl fmt::Display for BuildkitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme.as_str() {
            "tcp" => write!(f, "{SCHEME}://{}", self.rest),
            other => write!(f, "{SCHEME}+{other}://{}", self.rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wincimg_windows::table::read_rows;

    use super::*;

    fn read(text: &str) -> BuildkitAddress {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_those_of_buildctl() {
        let table = include_str!("../../tests/data/buildkit-addresses.tsv");
        let rows = read_rows(table, |row| {
            let (text, expected) = (row.text("address")?, row.text("buildctl")?);
            let is_here = row.value::<bool>("here")?;
            Ok((text, expected, is_here, row.value::<bool>("readable")?))
        });
        for (text, expected, is_here, is_readable) in rows.unwrap() {
            let address = read(text);
            assert!(BuildkitAddress::is_meant(text), "{text}");
            assert_eq!(address.for_buildctl(), expected);
            assert_eq!(address.is_on_this_machine(), is_here, "{text}");
            assert_eq!(address.is_readable(false), is_readable, "{text}");
            assert_eq!(read(&address.to_string()), address);
        }
        for text in [
            "buildkit://",
            "buildkit://win01",
            "buildkit://bob:secret@win01:1234",
            "buildkit://win01:1234/x",
            "buildkit://win01:1234 --debug",
            "buildkit+unix://",
            "buildkit+http://win01:1",
            "buildkit-unix:///x",
            "tcp://win01:1234",
        ] {
            let error = text.parse::<BuildkitAddress>().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!BuildkitAddress::is_meant("kube://ci/buildkit"));
    }

    #[test]
    fn tls_files_are_found_under_both_kinds_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment {
            certificates: Some(folder.path().to_owned()),
            tls_verify: true,
            ..Environment::default()
        };
        let flags = |address: &str| {
            let tls = read(address).tls(&environment);
            let name = |path: &PathBuf| path.file_name()?.to_str().map(str::to_owned);
            let named = tls
                .iter()
                .map(|(flag, path)| format!("{flag} {}", name(path).unwrap()));
            let named = named.collect::<Vec<_>>().join(" ");
            (!named.is_empty()).then_some(named)
        };
        let tcp = "buildkit://win01:1234";
        assert_eq!(flags(tcp).unwrap(), "--tlscacert ca.pem");
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let expected = "--tlscacert ca.crt --tlscert tls.crt --tlskey tls.key";
        assert_eq!(flags(tcp).unwrap(), expected);
        fs::write(folder.path().join("cert.pem"), "").unwrap();
        assert!(flags(tcp).unwrap().contains("cert.pem"));
        assert_eq!(flags("buildkit+unix:///x"), None);
        let tls = read(tcp).tls(&environment);
        assert!(!read(tcp).is_readable(!tls.is_empty()));
    }
}
