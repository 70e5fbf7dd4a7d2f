//! The tags of a large repository, page by page.

use wincimg_common::diagnose::Diagnose as _;
use wincimg_testkit::scripted::{RequestLog, ScriptedRequest, answer, scripted, scripted_tls};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{options, repository, trusting};

/// Form of the link to the next page.
#[derive(Clone, Copy, PartialEq)]
enum Paging {
    Link,
    LastOnly,
    Loop,
}

/// A server with 5,000 tags.
fn many_tags(paging: Paging) -> (RequestLog, TestServer) {
    scripted(move |asked: &ScriptedRequest| {
        let start = match asked.field("last") {
            Some(last) if paging != Paging::Loop => last.parse::<usize>().unwrap() + 1,
            _ => 0,
        };
        let page = start..(start + 1000).min(5000);
        let tags: Vec<_> = page.clone().map(|tag| format!("{tag:04}")).collect();
        let body = serde_json::json!({ "name": "a", "tags": tags }).to_string();
        let link = tags
            .last()
            .map(|last| format!("</v2/a/tags/list?n=1000&last={last}>; rel=\"next\""));
        match link {
            Some(link) if paging != Paging::LastOnly && page.end < 5000 => {
                answer(200, &[("Link", &link)], body)
            }
            _ => answer(200, &[], body),
        }
    })
}

#[test]
async fn five_thousand_tags_take_one_request_a_page() {
    for (paging, pages) in [(Paging::Link, 5), (Paging::LastOnly, 6)] {
        let (log, server) = many_tags(paging);
        let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
        let tags = repository.tags().await.unwrap();
        assert_eq!((tags.len(), tags[4999].as_str()), (5000, "4999"));
        assert_eq!(log.count("GET", "/tags/list"), pages);
    }
}

#[test]
async fn pages_that_lead_back_to_themselves_are_an_error() {
    let (_, server) = many_tags(Paging::Loop);
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    assert_eq!(error.diagnosis().code, "network/answer");
    assert_contains!(error, &format!("{}/a", server.host()));
}

/// A server with pages of two tags, whose links are derived from the next page's query.
fn linking(
    link: impl Fn(&str) -> String + Clone + Send + Sync + 'static,
) -> (RequestLog, TestServer) {
    scripted(move |asked: &ScriptedRequest| {
        let tags = ["1", "2", "3", "4", "5"];
        let start = asked.field("last").map_or(0, |last| last.parse().unwrap());
        let page: Vec<_> = tags.iter().skip(start).take(2).collect();
        if asked.path != "/v2/a/tags/list" {
            return answer(404, &[], "");
        }
        let body = serde_json::json!({ "tags": page }).to_string();
        if start + 2 < tags.len() {
            let link = link(&format!("n=2&last={}", start + 2));
            answer(200, &[("Link", &link)], body)
        } else {
            answer(200, &[], body)
        }
    })
}

#[test]
async fn every_link_leads_to_all_tags() {
    let links: [fn(&str) -> String; 14] = [
        |query| format!("</v2/a/tags/list?{query}>; rel=\"next\""),
        |query| format!("</v2/a/tags/list?{query}>; rel='next'"),
        |query| format!("</v2/a/tags/list?{query}>; rel = \"next\""),
        |query| format!("</v2/a/tags/list?{query}>; rel=\"last next\""),
        |query| format!("</v2/a/tags/list?{query}>; title=\"a, b\"; rel=next"),
        |query| format!("</docs>; rel=help, </v2/a/tags/list?{query}>; rel=next"),
        |query| format!("</v2/a/tags/list?{query}>"),
        |query| format!("/v2/a/tags/list?{query}; rel=next"),
        |query| format!("<tags/list?{query}>; rel=next"),
        |query| format!("<?{query}>; rel=next"),
        |query| format!("<http://registry.internal:8080/v2/a/tags/list?{query}>; rel=next"),
        |query| format!("</repository/docker/v2/a/tags/list?{query}>; rel=next"),
        |query| {
            format!("<https://repo.lan/artifactory/api/docker/x/v2/a/tags/list?{query}>; rel=next")
        },
        |_| "<https://elsewhere.lan/next-page>; rel=next".to_owned(),
    ];
    for link in links {
        let (log, server) = linking(link);
        let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
        let tags = repository.tags().await.unwrap();
        assert_eq!(tags, ["1", "2", "3", "4", "5"], "{}", link("QUERY"));
        assert_eq!(log.count("GET", "/tags/list"), 3, "{}", link("QUERY"));
    }
}

/// Links of a registry behind a TLS proxy, or below a path unknown to it.
#[test]
async fn links_behind_tls_stay_there() {
    let links: [fn(&str, &str) -> String; 4] = [
        |host, query| format!("<http://{host}/v2/a/tags/list?{query}>; rel=next"),
        |_, query| format!("<http://registry:5000/v2/a/tags/list?{query}>; rel=\"next\""),
        |host, query| {
            format!("<https://{host}/repository/docker/v2/a/tags/list?{query}>; rel='next'")
        },
        |host, _| format!("<http://{host}/more>; rel=next"),
    ];
    for link in links {
        let paged = move |asked: &ScriptedRequest| {
            let tags = ["1", "2", "3"];
            let start = asked.field("last").map_or(0, |last| last.parse().unwrap());
            let page: Vec<_> = tags.iter().skip(start).take(2).collect();
            let body = serde_json::json!({ "tags": page }).to_string();
            match asked.path.as_str() {
                "/v2/a/tags/list" if start == 0 => {
                    let link = link(asked.header("host").unwrap(), "n=2&last=2");
                    answer(200, &[("Link", &link)], body)
                }
                "/v2/a/tags/list" => answer(200, &[], body),
                _ => answer(404, &[], ""),
            }
        };
        let (log, server) = scripted_tls(paged);
        let repository = repository(trusting(server.ca()), &format!("{}/a", server.host()));
        let shown = link("HOST", "QUERY");
        assert_eq!(repository.tags().await.unwrap(), ["1", "2", "3"], "{shown}");
        assert_eq!(log.lines(), ["GET /v2/a/tags/list"; 2], "{shown}");
    }
}

#[test]
async fn empty_pages_are_gone_through_and_one_that_links_to_itself_is_the_last() {
    let (log, server) = scripted(|asked: &ScriptedRequest| {
        let (tags, next) = match asked.field("last") {
            None => (r#"["1"]"#, "1"),
            Some("1") => ("[]", "2"),
            Some("2") => ("null", "3"),
            Some("3") => (r#"["4"]"#, "4"),
            Some(end) => ("[]", end),
        };
        let link = format!("</v2/a/tags/list?last={next}>; rel=\"next\"");
        answer(200, &[("Link", &link)], format!(r#"{{"tags":{tags}}}"#))
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    assert_eq!(repository.tags().await.unwrap(), ["1", "4"]);
    assert_eq!(log.count("GET", "/tags/list"), 5);
}

#[test]
async fn empty_pages_without_end_are_an_error() {
    let (_log, server) = scripted(|asked: &ScriptedRequest| {
        let last: u32 = asked.field("last").map_or(0, |last| last.parse().unwrap());
        let link = format!("</v2/a/tags/list?last={}>; rel=\"next\"", last + 1);
        answer(200, &[("Link", &link)], r#"{"tags":[]}"#)
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    assert_eq!(error.diagnosis().code, "network/answer");
    assert_contains!(error, &format!("{}/a", server.host()));
}

#[test]
async fn a_link_that_cannot_be_read_where_last_is_not_known_is_an_error() {
    let (_log, server) = scripted(|asked: &ScriptedRequest| match asked.path.as_str() {
        "/v2/a/tags/list" => answer(200, &[("Link", "<more")], r#"{"tags":["1","2"]}"#),
        _ => answer(200, &[], "{}"),
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    assert_eq!(error.diagnosis().code, "network/answer");
    assert_contains!(error, &format!("{}/a", server.host()));
}

#[test]
async fn a_registry_with_short_pages_is_asked_for_short_pages() {
    for longest in [100, 50] {
        let (log, server) = scripted(move |asked: &ScriptedRequest| {
            match (
                asked.path.as_str(),
                asked.field("n").map(|n| n.parse::<usize>().unwrap()),
            ) {
                ("/v2/a/tags/list", Some(n)) if n > longest => answer(400, &[], ""),
                ("/v2/a/tags/list", _) => answer(200, &[], r#"{"tags":["1",null,"2"]}"#),
                _ => answer(200, &[], "{}"),
            }
        });
        let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
        for _ in 0..2 {
            assert_eq!(repository.tags().await.unwrap(), ["1", "2"], "{longest}");
        }
        // The first response may be that of a TLS server, and the request is repeated.
        let expected = if longest == 100 { 4 } else { 5 };
        assert_eq!(log.count("GET", "/tags/list"), expected, "{longest}");
    }
}

#[test]
async fn a_list_without_end_is_cut_and_what_was_found_counts() {
    let (_, server) = scripted(|asked: &ScriptedRequest| {
        let last = asked.field("last").map_or(0, |last| last.parse().unwrap());
        let body = format!("{{\"tags\":[\"{}\"]}}{}", last + 1, " ".repeat(8 << 20));
        let link = format!("</v2/a/tags/list?last={}>; rel=\"next\"", last + 1);
        answer(200, &[("Link", &link)], body)
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let tags = repository.tags().await.unwrap();
    assert_eq!(tags, ["1", "2", "3", "4"]);
}
