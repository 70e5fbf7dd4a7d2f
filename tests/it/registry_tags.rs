//! The tags of a large repository, page by page.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::support::serve::serve;
use crate::support::{options, repository};

/// How a server of many tags tells where the next page is.
#[derive(Clone, Copy, PartialEq)]
enum Paging {
    Link,
    LastOnly,
    Loop,
}

/// A server of 5,000 tags, and a counter of the requests for them.
fn many_tags(paging: Paging) -> (support::serve::Served, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let list = move |RawQuery(query): RawQuery| {
        counter.fetch_add(1, Ordering::Relaxed);
        let query = query.unwrap_or_default();
        let last = query
            .split('&')
            .find_map(|field| field.strip_prefix("last="));
        let start = match last {
            Some(last) if paging != Paging::Loop => last.parse::<usize>().unwrap() + 1,
            _ => 0,
        };
        let page: Vec<_> = (start..5000)
            .take(1000)
            .map(|tag| format!("{tag:04}"))
            .collect();
        let mut headers = HeaderMap::new();
        if let (Some(last), true) = (
            page.last(),
            paging != Paging::LastOnly && start + 1000 < 5000,
        ) {
            let link = format!("</v2/a/tags/list?n=1000&last={last}>; rel=\"next\"");
            headers.insert("Link", link.parse().unwrap());
        }
        let body = serde_json::json!({ "name": "a", "tags": page }).to_string();
        async move { (headers, body).into_response() }
    };
    let router = Router::new()
        .route("/v2/", get(|| async { "{}" }))
        .route("/v2/a/tags/list", get(list));
    (serve(router), requests)
}

#[tokio::test]
async fn five_thousand_tags_take_one_request_a_page() {
    for (paging, pages) in [(Paging::Link, 5), (Paging::LastOnly, 6)] {
        let (server, requests) = many_tags(paging);
        let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
        let tags = repository.tags().await.unwrap();
        assert_eq!((tags.len(), tags[4999].as_str()), (5000, "4999"));
        assert_eq!(requests.load(Ordering::Relaxed), pages);
    }
}

#[tokio::test]
async fn pages_that_lead_back_to_themselves_are_an_error() {
    let (server, _) = many_tags(Paging::Loop);
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    assert!(error.to_string().contains("leads nowhere new"), "{error}");
}
