//! Settings in Docker's `config.json` besides credentials: the selected context, headers for every
//! request to a daemon, and proxies for builds.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, io};

use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
    USER_AGENT,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wincimg_common::diagnose::Problem;
use wincimg_common::files;
use wincimg_common::files::LARGEST_TEXT;

use super::error::unusable;

/// Entry of `proxies` for all other daemons.
const DEFAULT: &str = "default";

/// Headers that the HTTP client sets itself.
const OWN_HEADERS: [HeaderName; 5] = [
    HOST, USER_AGENT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
];

/// Configuration for a daemon. Headers and proxies may contain passwords, so `Debug` does not show
/// them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DockerConfig {
    /// Added to every request that lacks the header.
    pub(super) headers: HeaderMap,
    /// By the names of the variables.
    proxies: BTreeMap<String, String>,
}

impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&HeaderName> = self.headers.keys().collect();
        f.debug_struct("Settings")
            .field("headers", &headers)
            .field("proxies", &self.proxies.keys())
            .finish()
    }
}

/// The used parts of the file. Each may be absent or null.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfigFile {
    #[serde(rename = "currentContext")]
    pub(super) current_context: Option<String>,
    #[serde(rename = "HttpHeaders")]
    http_headers: Option<BTreeMap<String, Option<String>>>,
    proxies: Option<BTreeMap<String, Option<Proxies>>>,
}

/// Proxies by their keys in the file.
type Proxies = BTreeMap<String, Option<String>>;

/// The keys, and the variables that programs read.
const PROXIES: [(&str, &str); 5] = [
    ("httpProxy", "HTTP_PROXY"),
    ("httpsProxy", "HTTPS_PROXY"),
    ("noProxy", "NO_PROXY"),
    ("ftpProxy", "FTP_PROXY"),
    ("allProxy", "ALL_PROXY"),
];

impl ConfigFile {
    /// Reads the file in Docker's folder, which may be absent.
    pub(super) fn read(folder: &Path) -> Result<Self, Problem> {
        let file: Option<Option<Self>> = read_json(&folder.join("config.json"))?;
        Ok(file.flatten().unwrap_or_default())
    }
}

impl DockerConfig {
    pub(super) fn read(folder: &Path, address: &str) -> Result<Self, Problem> {
        let file = ConfigFile::read(folder)?;
        let mut headers = HeaderMap::new();
        for (name, value) in file.http_headers.into_iter().flatten() {
            let header = HeaderName::try_from(&name).ok();
            let value = HeaderValue::try_from(value.unwrap_or_default()).ok();
            let Some((header, mut value)) = header.zip(value) else {
                let problem = format!("invalid header {name:?} in HttpHeaders");
                return Err(unusable(&folder.join("config.json"), &problem));
            };
            value.set_sensitive(true);
            if !OWN_HEADERS.contains(&header) {
                headers.insert(header, value);
            }
        }
        let mut all = file.proxies.unwrap_or_default();
        let proxies = all.remove(address).or_else(|| all.remove(DEFAULT));
        Ok(Self {
            headers,
            proxies: variables(&proxies.flatten().unwrap_or_default()),
        })
    }

    /// Adds the proxy variables to a build's arguments, which take precedence.
    pub(crate) fn add_proxies(&self, arguments: &mut BTreeMap<String, String>) {
        for (name, value) in &self.proxies {
            arguments.entry(name.clone()).or_insert(value.clone());
        }
    }
}

/// Programs read them in upper or lower case.
fn variables(proxies: &Proxies) -> BTreeMap<String, String> {
    let set = PROXIES.iter().filter_map(|(key, name)| {
        let value = proxies.get(*key)?.clone();
        Some((*name, value.filter(|value| !value.is_empty())?))
    });
    set.flat_map(|(name, value)| {
        [
            (name.to_owned(), value.clone()),
            (name.to_ascii_lowercase(), value),
        ]
    })
    .collect()
}

/// Reads one of Docker's files, if it exists.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Problem> {
    match files::read(path, LARGEST_TEXT) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| unusable(path, &error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, address: &str) -> Result<DockerConfig, Problem> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), text).unwrap();
        DockerConfig::read(folder.path(), address)
    }

    #[test]
    fn proxies_count_as_docker_build_takes_them() {
        let text = r#"{"proxies": {
            "default": {"httpProxy": "http://p:1", "noProxy": "lan", "ftpProxy": null},
            "tcp://build01:2376": {"httpsProxy": "http://user:SECRET@q:2"}
        }}"#;
        let with = |address: &str, given: &[(&str, &str)]| {
            let given = given
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            let mut arguments = given.collect();
            read(text, address).unwrap().add_proxies(&mut arguments);
            let arguments = arguments.iter().map(|(n, v)| format!("{n}={v}"));
            arguments.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            with("unix:///s", &[("http_proxy", "own"), ("A", "b")]),
            "A=b HTTP_PROXY=http://p:1 NO_PROXY=lan http_proxy=own no_proxy=lan"
        );
        let expected = "HTTPS_PROXY=http://user:SECRET@q:2 https_proxy=http://user:SECRET@q:2";
        assert_eq!(with("tcp://build01:2376", &[]), expected);
        let shown = format!("{:?}", read(text, "tcp://build01:2376").unwrap());
        assert!(shown.contains("HTTPS_PROXY"), "{shown}");
        assert!(!shown.contains("SECRET"), "{shown}");
    }

    #[test]
    fn headers_are_taken_but_for_those_that_the_client_says_itself() {
        let text = r#"{"HttpHeaders": {"X-Meta": "SECRET", "User-Agent": "x", "Host": "y", "X-None": null}}"#;
        let settings = read(text, "unix:///s").unwrap();
        let names: Vec<&str> = settings.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-meta", "x-none"]);
        assert!(!format!("{settings:?}").contains("SECRET"));
        for broken in [
            r#"{"HttpHeaders": {"a b": "x"}}"#,
            r#"{"HttpHeaders": {"a": "x\ny"}}"#,
        ] {
            let error = read(broken, "unix:///s").unwrap_err().to_string();
            assert!(error.contains("in HttpHeaders"), "{error}");
        }
        for nothing in [
            "{}",
            "null",
            r#"{"HttpHeaders": null, "proxies": null}"#,
            r#"{"proxies": {"default": null}}"#,
        ] {
            assert_eq!(read(nothing, "unix:///s").unwrap(), DockerConfig::default());
        }
    }
}
