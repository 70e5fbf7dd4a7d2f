use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

const CVE: &str = "CVE-2024-0002";
const DIGEST: &str = "sha256:aabb";

fn subject() -> VexSubject<'static> {
    VexSubject {
        name: "repo.lan:8888/apps/web",
        tag: Some("1.4"),
        digests: vec![DIGEST],
        architecture: "amd64",
        cpe: Some("cpe:2.3:o:microsoft:windows_server_2022:10.0.20348.2340:*:*:*:*:*:*:*"),
    }
}

fn document(value: &Value) -> VexDocument {
    VexDocument::read(value.to_string().as_bytes()).unwrap()
}

/// The status and reason that settle the vulnerability.
fn settled(documents: &[Value]) -> Option<(VexStatus, Option<String>)> {
    let documents: Vec<VexDocument> = documents.iter().map(document).collect();
    let subject = subject();
    let found = settling_statement(documents.iter(), CVE, &subject);
    found.map(|(_, statement)| (statement.status, statement.reason.clone()))
}

fn openvex(products: &Value) -> Value {
    json!({
        "@context": "https://openvex.dev/ns/v0.2.0",
        "timestamp": "2024-05-01T10:00:00Z",
        "statements": [{
            "vulnerability": {"name": CVE},
            "products": products,
            "status": "not_affected",
            "justification": "vulnerable_code_not_present",
            "impact_statement": "no printing",
        }],
    })
}

fn csaf(status: &str, product: &Value) -> Value {
    json!({
        "document": {"category": "csaf_vex", "csaf_version": "2.0",
            "tracking": {"current_release_date": "2024-05-01T10:00:00Z"}},
        "product_tree": product,
        "vulnerabilities": [{
            "cve": CVE,
            "product_status": {status: ["P"]},
            "flags": [{"label": "component_not_present", "product_ids": ["P"]}],
            "threats": [{"category": "impact", "details": "no printing", "product_ids": ["P"]}],
        }],
    })
}

fn product(helper: &Value) -> Value {
    json!({"product_id": "P", "name": "it", "product_identification_helper": helper})
}

#[test]
fn a_statement_counts_for_exactly_what_it_names() {
    let settled_for = |id: &str| settled(&[openvex(&json!([{"@id": id}]))]);
    for id in [
        "repo.lan:8888/apps/web",
        "repo.lan:8888/apps/web:1.4",
        "repo.lan:8888/apps/web:1.4@sha256:AABB",
        DIGEST,
        "pkg:oci/web",
        "pkg:oci/web@sha256%3Aaabb?repository_url=repo.lan%3A8888/apps/web",
        "pkg:oci/web?tag=1.4",
        "cpe:2.3:o:microsoft:windows_server_2022:*:*:*:*:*:*:x64:*",
        "cpe:/o:microsoft:windows_server_2022:10.0.20348.2340",
    ] {
        let reason = "vulnerable_code_not_present: no printing".to_owned();
        let expected = Some((VexStatus::NotAffected, Some(reason)));
        assert_eq!(settled_for(id), expected, "{id}");
    }
    for id in [
        "repo.lan:8888/apps/web:1.5",
        "repo.lan:8888/apps/web2",
        "repo.lan:8888/apps/web@sha256:ccdd",
        "sha256:ccdd",
        "pkg:oci/web@sha256%3Accdd",
        "pkg:oci/web?repository_url=other.lan/web",
        "pkg:oci/web?tag=1.5",
        "pkg:npm/web",
        "cpe:2.3:o:microsoft:windows_server_2019:*:*:*:*:*:*:*:*",
        "cpe:2.3:o:microsoft:windows_server_2022:10.0.20348.2402:*",
        "cpe:2.3:o:microsoft:windows_server_2022:*:*:*:*:*:*:arm64:*",
        "",
    ] {
        assert_eq!(settled_for(id), None, "{id}");
    }
    let by_hash = json!([{"@id": "https://example.com/x", "hashes": {"sha-256": "aabb"}}]);
    assert!(settled(&[openvex(&by_hash)]).is_some());
    // A product for all images.
    assert!(settled(&[openvex(&json!([]))]).is_some());
}

#[test]
fn an_architecture_is_that_of_the_image() {
    for (architecture, names) in [
        ("amd64", ["amd64", "x86_64", "x64"]),
        ("arm64", ["arm64", "aarch64", "arm64"]),
    ] {
        let image = VexSubject {
            architecture,
            ..subject()
        };
        for name in ["amd64", "x86_64", "x64", "arm64", "aarch64", "386"] {
            let is_own = names.contains(&name);
            let purl = format!("pkg:oci/web?arch={name}");
            assert_eq!(image.is_image(&purl), is_own, "{architecture} {purl}");
            let cpe = format!("cpe:2.3:o:microsoft:windows_server_2022:*:*:*:*:*:*:{name}:*");
            assert_eq!(image.is_windows(&cpe), is_own, "{architecture} {cpe}");
        }
    }
}

#[test]
fn a_statement_on_parts_of_an_image_counts_for_windows_alone() {
    let of = |part: &str| {
        settled(&[openvex(&json!([
            {"@id": "pkg:oci/web", "subcomponents": [{"@id": part}]},
        ]))])
    };
    assert!(of("cpe:2.3:o:microsoft:windows_server_2022:-").is_some());
    assert!(of("pkg:npm/left-pad@1.0.0").is_none());
}

#[test]
fn the_newest_statement_decides() {
    let statement = |status: &str, time: &str| {
        json!({
            "@context": "https://openvex.dev/ns",
            "timestamp": time,
            // As version 0.0.1 has it.
            "statements": [{"vulnerability": CVE, "products": ["pkg:oci/web"], "status": status}],
        })
    };
    let old = statement("not_affected", "2024-05-01T10:00:00Z");
    let new = statement("affected", "2024-06-01T10:00:00+02:00");
    assert!(settled(std::slice::from_ref(&old)).is_some());
    assert!(settled(&[new.clone(), old.clone()]).is_none());
    let newest = statement("fixed", "2024-07-01T10:00:00Z");
    let found = settled(&[newest, old, new]).unwrap();
    assert_eq!(found, (VexStatus::Fixed, None));
}

#[test]
fn a_statement_without_a_time_is_as_old_as_the_first_issue_of_its_document() {
    let statement = |status: &str| json!({"vulnerability": {"name": CVE}, "status": status});
    let mut newer = statement("affected");
    newer["timestamp"] = json!("2025-02-01T00:00:00Z");
    let mut document = json!({
        "@context": "https://openvex.dev/ns/v0.2.0",
        "timestamp": "2025-01-01T00:00:00Z",
        "last_updated": "2025-03-01T00:00:00Z",
        "statements": [newer, statement("not_affected")],
    });
    assert!(settled(std::slice::from_ref(&document)).is_none());
    // A change of its wording does not make a statement newer.
    document["statements"][1]["timestamp"] = json!("2025-01-15T00:00:00Z");
    document["statements"][1]["last_updated"] = json!("2025-03-01T00:00:00Z");
    assert!(settled(std::slice::from_ref(&document)).is_none());
    document["statements"][1]["timestamp"] = json!("2025-03-01T00:00:00Z");
    assert!(settled(&[document]).is_some());
}

#[test]
fn csaf_names_products_in_its_tree() {
    let helper = json!({"purl": "pkg:oci/web@sha256:aabb"});
    let tree = json!({"full_product_names": [product(&helper)]});
    let found = settled(&[csaf("known_not_affected", &tree)]).unwrap();
    let reason = "component_not_present: no printing".to_owned();
    assert_eq!(found, (VexStatus::NotAffected, Some(reason)));
    assert!(settled(&[csaf("fixed", &tree)]).is_some());
    assert!(settled(&[csaf("known_affected", &tree)]).is_none());
    let several = json!({"purls": ["pkg:npm/web@1.0.0", "pkg:oci/web"]});
    let version_2_1 = json!({"full_product_names": [product(&several)]});
    assert!(settled(&[csaf("fixed", &version_2_1)]).is_some());
    let unnamed = json!({"full_product_names": [product(&json!({}))]});
    assert!(settled(&[csaf("known_not_affected", &unnamed)]).is_none());
}

#[test]
fn every_status_of_csaf_counts() {
    let tree = json!({"full_product_names": [product(&json!({"purl": "pkg:oci/web"}))]});
    assert!(settled(&[csaf("first_fixed", &tree)]).is_some());
    let settling = csaf("known_not_affected", &tree);
    for status in [
        "known_affected", "first_affected", "last_affected", "under_investigation", "unknown",
    ] {
        let mut newer = csaf(status, &tree);
        newer["document"]["tracking"]["current_release_date"] = json!("2024-06-01T10:00:00Z");
        assert!(settled(&[settling.clone(), newer]).is_none(), "{status}");
    }
}

#[test]
fn a_reason_in_csaf_is_that_of_the_products_and_groups_that_it_names() {
    let tree = json!({
        "full_product_names": [product(&json!({"purl": "pkg:oci/web"}))],
        "product_groups": [
            {"group_id": "G", "product_ids": ["Q", "R"]},
            {"group_id": "H", "product_ids": ["O", "P"]},
        ],
    });
    let reason_with = |flags: Value, threats: Value| {
        let mut document = csaf("known_not_affected", &tree);
        document["vulnerabilities"][0]["flags"] = flags;
        document["vulnerabilities"][0]["threats"] = threats;
        settled(&[document]).unwrap().1
    };
    let flag = |label: &str, group: &str| json!({"label": label, "group_ids": [group]});
    let threat = |details: &str, group: &str| {
        let groups = [group];
        json!({"category": "impact", "details": details, "group_ids": groups})
    };
    let flags = json!([flag("of_q", "G"), flag("of_p", "H")]);
    let threats = json!([threat("about Q", "G"), threat("about P", "H")]);
    let of_p = reason_with(flags, threats);
    assert_eq!(of_p.as_deref(), Some("of_p: about P"));
    let others = json!([flag("of_q", "G"), flag("of_none", "missing")]);
    assert_eq!(reason_with(others, json!([])), None);
    let of_all = json!([{"category": "impact", "details": "about all"}]);
    assert_eq!(reason_with(json!([]), of_all).as_deref(), Some("about all"));
}

#[test]
fn csaf_with_a_flag_for_each_of_many_products_is_read_at_once() {
    let ids = || (0..60_000).map(|number| format!("P{number}"));
    let products = ids().map(|id| {
        let helper = json!({"purl": format!("pkg:oci/web-{id}")});
        json!({"product_id": id, "name": "it", "product_identification_helper": helper})
    });
    let flags = ids().map(|id| json!({"label": format!("of {id}"), "product_ids": [id]}));
    let document = json!({
        "document": {"csaf_version": "2.0"},
        "product_tree": {"full_product_names": products.collect::<Vec<_>>()},
        "vulnerabilities": [{
            "cve": CVE,
            "product_status": {"known_not_affected": ids().collect::<Vec<_>>()},
            "flags": flags.collect::<Vec<_>>(),
        }],
    });
    let started = Instant::now();
    let statements = csaf::read(document).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(statements.len(), 60_000);
    assert_eq!(statements[59_999].reason.as_deref(), Some("of P59999"));
}

#[test]
fn a_version_in_csaf_is_not_taken_for_all_versions() {
    let tree = |cpe: &str| {
        json!({"branches": [{"category": "product_name", "name": "Windows", "branches": [
            {"category": "product_version", "name": "x", "product": product(&json!({"cpe": cpe}))},
        ]}]})
    };
    let exact = tree("cpe:2.3:o:microsoft:windows_server_2022:10.0.20348.2340:*:*:*:*:*:*:*");
    assert!(settled(&[csaf("fixed", &exact)]).is_some());
    for cpe in ["*", "10.0.20348.2402"] {
        let cpe = format!("cpe:2.3:o:microsoft:windows_server_2022:{cpe}:*:*:*:*:*:*:*");
        assert!(settled(&[csaf("fixed", &tree(&cpe))]).is_none(), "{cpe}");
    }
}

#[test]
fn csaf_relates_windows_to_an_image() {
    let tree = |cpe: &str| {
        json!({
            "full_product_names": [
                {"product_id": "I", "name": "web", "product_identification_helper": {"purl": "pkg:oci/web"}},
                {"product_id": "W", "name": "Windows", "product_identification_helper": {"cpe": cpe}},
            ],
            "relationships": [{
                "category": "default_component_of",
                "product_reference": "W",
                "relates_to_product_reference": "I",
                "full_product_name": {"product_id": "P", "name": "Windows in web"},
            }],
        })
    };
    let windows = tree("cpe:/o:microsoft:windows_server_2022");
    assert!(settled(&[csaf("known_not_affected", &windows)]).is_some());
    let other = tree("cpe:/a:microsoft:edge");
    assert!(settled(&[csaf("known_not_affected", &other)]).is_none());
}

#[test]
fn statements_on_many_vulnerabilities_are_found_at_once() {
    let names = (10_000..30_000).map(|id| format!("CVE-2024-{id}"));
    let names: Vec<String> = names.collect();
    let statements = names.iter().map(|name| {
        let names = format!(r#"{{"@id": "{name}", "name": "{}"}}"#, name.to_lowercase());
        format!(r#"{{"vulnerability": {names}, "status": "fixed"}}"#)
    });
    let statements = statements.collect::<Vec<_>>().join(",");
    let text = format!(r#"{{"@context": "https://openvex.dev/ns", "statements": [{statements}]}}"#);
    let document = VexDocument::read(text.as_bytes()).unwrap();
    let subject = subject();
    let started = Instant::now();
    for name in &names {
        let found: Vec<_> = document.about(name, &subject).collect();
        assert!(matches!(found[..], [it] if it.vulnerabilities[0] == *name));
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_no_statement_is_refused() {
    for text in [
        "",
        "{}",
        r#"{"@context": "https://openvex.dev/ns", "statements": [{}]}"#,
        r#"{"@context": "https://openvex.dev/ns", "statements": [{"vulnerability": "x", "status": "fine"}]}"#,
        r#"{"document": {"csaf_version": "2.0"}, "vulnerabilities": 1}"#,
    ] {
        assert!(VexDocument::read(text.as_bytes()).is_err(), "{text}");
    }
}
