//! URLs and headers: whom they may go to, and those that answers give.

use reqwest::header::{HeaderValue, LOCATION};
use reqwest::{Response, Url};

use super::RegistryError;
use crate::net::{InsecureHosts, Trust, host_of, shown};

/// The `Location` of an answer, which may be relative.
pub(super) fn location(what: &str, response: &Response) -> Result<Url, RegistryError> {
    let broken = |reason: &str| RegistryError::Protocol {
        host: host_of(response.url()),
        what: what.to_owned(),
        reason: reason.to_owned(),
    };
    response
        .headers()
        .get(LOCATION)
        .ok_or_else(|| broken("it has no Location header"))?
        .to_str()
        .ok()
        .and_then(|text| response.url().join(text).ok())
        .ok_or_else(|| broken("its Location header is no URL"))
}

/// The `Location` of an upload. A registry behind a proxy may not know that it is reached
/// by TLS; its own host is not left for plain HTTP because of that.
pub(super) fn upload_location(what: &str, response: &Response) -> Result<Url, RegistryError> {
    let mut url = location(what, response)?;
    let here = response.url();
    let same_host = url.host_str() == here.host_str();
    if same_host && here.scheme() == "https" && url.scheme() == "http" {
        let port = url.port().or(here.port());
        // Neither can fail: both are http(s) URLs with a host.
        let _ = url.set_scheme("https");
        let _ = url.set_port(port);
    }
    Ok(url)
}

/// The trust that a URL needs; an error where it has no TLS and its host is not listed.
pub(super) fn trust_of(url: &Url, insecure: &InsecureHosts) -> Result<Trust, RegistryError> {
    Trust::of(url, insecure).ok_or_else(|| RegistryError::InsecureUrl {
        url: shown(url),
        host: host_of(url),
    })
}

/// The header of a text that came from the network or the user.
pub(super) fn header(text: &str) -> Result<HeaderValue, RegistryError> {
    HeaderValue::from_str(text).map_err(|error| RegistryError::Client(error.into()))
}
