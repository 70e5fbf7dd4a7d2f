//! An HTTP exchange as a value: the request, and the responses it accepts.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    AUTHORIZATION, AsHeaderName, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
};
use reqwest::{Method, Response, Url};
use wincimg_common::diagnose::Problem;
use wincimg_common::progress::Task;

use super::addresses::AddressPolicy;
use super::blob_source::{BlobSource, CachedReader};
use super::error::HttpError;
use super::urls::{host_of, redacted};

/// A request that can be repeated.
#[derive(Clone)]
pub struct Exchange<'a> {
    /// The purpose, to follow "failed to".
    pub what: String,
    /// HTTP method.
    pub method: Method,
    /// Target URL.
    pub url: Url,
    /// Headers, except those derived from other fields.
    pub headers: HeaderMap,
    /// The body.
    pub payload: Payload<'a>,
    /// Redirects that are followed.
    pub redirects: RedirectPolicy,
    /// Authentication of the received content.
    pub vouched: TrustSource,
    /// Addresses that it may go to.
    pub addresses: AddressPolicy,
    /// True if the server responds only after it has stored the content; extends the idle timeout.
    pub commits: bool,
}

/// A request's body.
#[derive(Clone)]
pub enum Payload<'a> {
    /// In memory; without bytes, none.
    Bytes(Bytes),
    /// Read while it is sent.
    Stream(SourceRange<'a>),
}

/// A range of a source, read each time it is sent.
#[derive(Clone, Copy)]
pub struct SourceRange<'a> {
    /// The whole source.
    pub source: &'a dyn BlobSource,
    /// The open reader of the source.
    pub reader: &'a CachedReader,
    /// Progress that counts its bytes.
    pub task: &'a dyn Task,
    /// Offset of the first byte.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// Policy for redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// To every allowed host; `Authorization` is not sent to another host. A request that writes is
    /// repeated only for 307 and 308.
    Anywhere,
    /// To the same scheme, host and port. A form may be redirected to a page.
    SameOrigin,
    /// None: a redirect is an error.
    Nowhere,
}

/// Authentication of received content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustSource {
    /// By the connection: TLS, unless the user listed the host.
    ByConnection,
    /// By a digest from elsewhere, whatever the connection.
    ByDigest,
}

impl Exchange<'_> {
    /// A GET without headers, to another machine, that follows redirects only to the same origin.
    pub fn get(what: impl Into<String>, url: Url) -> Self {
        Self {
            what: what.into(),
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            payload: Payload::Bytes(Bytes::new()),
            redirects: RedirectPolicy::SameOrigin,
            vouched: TrustSource::ByConnection,
            addresses: AddressPolicy::OtherMachines,
            commits: false,
        }
    }

    /// A POST of a form.
    pub fn form(what: impl Into<String>, url: Url, fields: &[(String, String)]) -> Self {
        // Forms and URL queries have the same encoding.
        let mut encoder = url.clone();
        encoder.set_query(None);
        encoder.query_pairs_mut().extend_pairs(fields);
        let body = encoder.query().unwrap_or_default().to_owned();
        let mut exchange = Self::get(what, url);
        exchange.method = Method::POST;
        exchange.payload = Payload::Bytes(body.into());
        exchange.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        exchange
    }

    /// Returns true if the request changes nothing on the server.
    pub(super) fn is_safe(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Turns this into the redirected request; returns false if the response is not a redirect.
    pub(super) fn follow_redirect(&mut self, response: &Response) -> Result<bool, HttpError> {
        let status = response.status().as_u16();
        let becomes_get = match (status, self.redirects) {
            (307 | 308, _) => false,
            (301..=303, _) if self.is_safe() => false,
            (301..=303, RedirectPolicy::SameOrigin) => true,
            _ => return Ok(false),
        };
        let target = location(&self.what, response)?;
        if self.redirects == RedirectPolicy::Nowhere {
            return Err(self.not_followed(&target, "curl follows redirects only with -L"));
        }
        if target.origin() != self.url.origin() {
            if self.redirects == RedirectPolicy::SameOrigin {
                return Err(self.not_followed(&target, "it leads to another host"));
            }
            self.headers.remove(AUTHORIZATION);
        }
        if becomes_get {
            self.method = Method::GET;
            self.payload = Payload::Bytes(Bytes::new());
            self.headers.remove(CONTENT_TYPE);
        }
        self.move_to(target);
        Ok(true)
    }

    /// Continues at the target of a redirect.
    fn move_to(&mut self, target: Url) {
        if self.url.scheme() == "https" && target.scheme() != "https" {
            // Who named HTTPS did not agree to less.
            self.vouched = TrustSource::ByConnection;
        }
        if AddressPolicy::for_link(&self.url, &target) == AddressPolicy::OtherMachines {
            self.addresses = AddressPolicy::OtherMachines;
        }
        self.url = target;
    }

    pub(super) fn not_followed(&self, target: &Url, reason: &'static str) -> HttpError {
        let (host, what, target) = (host_of(&self.url), &self.what, redacted(target));
        let problem = format!(
            "{host} redirected the request to {what} to {target}, which is not followed: {reason}"
        );
        Problem::new("network/answer", problem).into()
    }

    pub(super) fn stall_error(&self, after: Duration) -> HttpError {
        HttpError::stalled(&host_of(&self.url), &self.what, after)
    }

    pub(super) fn no_answer(&self, error: reqwest::Error) -> HttpError {
        HttpError::no_answer(&self.url, &self.what, error)
    }
}

/// The text of a header.
pub fn header_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The media type of a body, without its parameters.
pub fn content_type(headers: &HeaderMap) -> Option<&str> {
    let kind = header_text(headers, CONTENT_TYPE)?.split(';').next()?;
    Some(kind.trim())
}

/// Returns the `Location` of a response, which may be relative, but not of another scheme.
pub fn location(what: &str, response: &Response) -> Result<Url, HttpError> {
    let invalid = |reason| HttpError::protocol(&host_of(response.url()), what, reason);
    response
        .headers()
        .get(LOCATION)
        .ok_or_else(|| invalid("it has no Location header"))?
        .to_str()
        .ok()
        .and_then(|text| response.url().join(text).ok())
        .filter(|url| ["http", "https"].contains(&url.scheme()))
        .ok_or_else(|| invalid("its Location header is not an HTTP or HTTPS URL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_loses_no_protection_on_the_way() {
        let after = |hops: &[&str]| {
            let mut exchange = Exchange::get("read it", hops[0].parse().unwrap());
            exchange.vouched = TrustSource::ByDigest;
            exchange.addresses = AddressPolicy::ThisMachineToo;
            for hop in &hops[1..] {
                exchange.move_to(hop.parse().unwrap());
            }
            (exchange.vouched, exchange.addresses)
        };
        let hops = [
            "https://repo.lan/x", "http://other.lan/x", "http://127.0.0.1/x",
        ];
        // A second hop gives nothing back.
        let lost = (TrustSource::ByConnection, AddressPolicy::OtherMachines);
        assert_eq!([after(&hops[..2]), after(&hops)], [lost; 2]);
        let (vouched, _) = after(&["http://repo.lan/x", "http://other.lan/x"]);
        assert_eq!(vouched, TrustSource::ByDigest);
        let (_, addresses) = after(&["http://127.0.0.1:1/x", "http://127.0.0.1:2/x"]);
        assert_eq!(addresses, AddressPolicy::ThisMachineToo);
        // A download of a listed host may go to other machines alone.
        let mut download = Exchange::get("read it", "http://127.0.0.1:1/x".parse().unwrap());
        for hop in [
            "http://127.0.0.1:22/x", "http://0.0.0.0:22/x", "http://localhost:22/x",
        ] {
            download.move_to(hop.parse().unwrap());
            assert_eq!(download.addresses, AddressPolicy::OtherMachines, "{hop}");
        }
    }

    #[test]
    fn a_form_is_encoded_as_browsers_do() {
        let fields = [("a b".to_owned(), "ä&=".to_owned())];
        let url = "https://catalog.lan/x?old=1".parse().unwrap();
        let exchange = Exchange::form("send it", url, &fields);
        let Payload::Bytes(body) = exchange.payload else {
            panic!("no body");
        };
        assert_eq!(body, "a+b=%C3%A4%26%3D");
    }
}
