//! The client of a cluster's API: kube's, with the token of a credential plugin and limits on
//! responses.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{AUTHORIZATION, LOCATION};
use http::{Request, Response};
use hyper::body::{Bytes, Frame};
use kube::client::{Body, Client};
use kube::config::Config;
use tower::{BoxError, service_fn};
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::{UntrustedText, public_url};

use super::plugin::Plugin;

/// Maximum size of a response, and of an event of a watch: far above that of a page with 500 usual
/// objects.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A response above its limit.
#[derive(Debug, thiserror::Error)]
#[error("the response is too large")]
struct TooLarge;

/// Returns true if a response was above its limit.
pub(super) fn is_too_large(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<TooLarge>() {
            return true;
        }
        cause = error.source();
    }
    false
}

pub(super) fn client(config: Config, plugin: Option<Plugin>) -> Result<Client, kube::Error> {
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config)?;
    let plugin = plugin.map(Arc::new);
    let service = service_fn(move |mut request: Request<Body>| {
        let (client, plugin) = (client.clone(), plugin.clone());
        async move {
            if let Some(plugin) = plugin {
                let token = plugin.header().await?;
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            let query = request.uri().query().unwrap_or_default();
            let is_watch = query.split('&').any(|pair| pair == "watch=true");
            let response = client.send(request).await?;
            if let Some(problem) = redirect_problem(&response) {
                return Err(BoxError::from(problem));
            }
            Ok::<_, BoxError>(response.map(|body| LimitedBody {
                body,
                is_watch,
                size: 0,
            }))
        }
    });
    Ok(Client::new(service, namespace))
}

/// The problem of a redirect, which is not followed: its target would get the token.
fn redirect_problem<B>(response: &Response<B>) -> Option<Problem> {
    let target = response.headers().get(LOCATION)?;
    if !response.status().is_redirection() {
        return None;
    }
    let target = String::from_utf8_lossy(target.as_bytes());
    let problem = format!(
        "the API server redirects to {}, which is not followed",
        UntrustedText(public_url(&target))
    );
    let hint = "name the address of the API server itself in the kubeconfig";
    Some(Problem::new("cluster/answer", problem).hint(hint))
}

/// The body of a response, up to its limit.
struct LimitedBody {
    body: Body,
    /// True for events, one a line.
    is_watch: bool,
    /// Size of what has arrived; of a watch, since the last line.
    size: usize,
}

impl LimitedBody {
    /// Counts what has arrived, and returns true up to the limit.
    fn accept(&mut self, data: &[u8]) -> bool {
        self.size += data.len();
        if self.is_watch && data.contains(&b'\n') {
            let line = data.iter().rev().take_while(|byte| **byte != b'\n');
            self.size = line.count();
        }
        self.size <= MAX_RESPONSE_BYTES
    }
}

impl hyper::body::Body for LimitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            // kube wraps the error again.
            Some(Err(kube::Error::Service(cause))) => return Poll::Ready(Some(Err(cause))),
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let is_accepted = frame.data_ref().is_none_or(|data| self.accept(data));
        Poll::Ready(Some(if is_accepted {
            Ok(frame)
        } else {
            Err(TooLarge.into())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(is_watch: bool, pieces: &[&[u8]]) -> bool {
        let mut body = LimitedBody {
            body: Body::empty(),
            is_watch,
            size: 0,
        };
        pieces.iter().all(|piece| body.accept(piece))
    }

    #[test]
    fn a_response_is_limited_and_a_watch_by_line() {
        let half = vec![b' '; MAX_RESPONSE_BYTES / 2];
        assert!(accepts(false, &[&half, &half]));
        assert!(!accepts(false, &[&half, &half, b"\n"]));
        assert!(accepts(true, &[&half, &half, b"{}\n{", &half]));
        assert!(!accepts(true, &[&half, b"\n{", &half, &half]));
    }

    #[test]
    fn a_redirect_is_named() {
        let answer = |status: u16| {
            let answer = Response::builder().status(status);
            let answer = answer.header(LOCATION, "https://other.lan/api?token=secret");
            redirect_problem(&answer.body(()).unwrap()).map(|problem| problem.to_string())
        };
        let problem = answer(307).unwrap();
        assert!(
            problem.contains("redirects to https://other.lan/api"),
            "{problem}"
        );
        assert!(!problem.contains("secret"), "{problem}");
        assert_eq!(answer(201), None);
    }

    #[test]
    fn the_limit_is_found_behind_the_errors_of_kube() {
        let cause = || kube::Error::Service(TooLarge.into());
        assert!(is_too_large(&cause()));
        let event = std::io::Error::other(cause());
        assert!(is_too_large(&kube::Error::ReadEvents(event)));
        let other = kube::Error::Service("closed".into());
        assert!(!is_too_large(&other));
    }
}
