use wincimg_common::diagnose::Diagnose as _;

use super::*;

/// Hits with these titles; the position is the beginning of the update id.
fn hits(titles: &[&str]) -> Vec<SearchResult> {
    titles
        .iter()
        .enumerate()
        .map(|(number, title)| SearchResult {
            title: (*title).to_owned(),
            products: String::new(),
            classification: "Security Updates".to_owned(),
            date: None,
            version: None,
            size: None,
            update_id: format!("{number:08x}-0000-0000-0000-000000000000"),
        })
        .collect()
}

fn wanted(kb: &str, build: Option<u32>) -> Criteria {
    Criteria {
        kb: kb.parse().unwrap(),
        product: build.and_then(Product::for_build),
        arch: Arch::X64,
        update_id: None,
        flags: String::new(),
    }
}

/// Search results for one article of 2020.
const APRIL_2020: [&str; 9] = [
    "2020-04 Cumulative Update for Windows 10 Version 1809 for x64-based Systems (KB4549949)",
    "2020-04 Cumulative Update for Windows 10 Version 1809 for ARM64-based Systems (KB4549949)",
    "2020-04 Cumulative Update for Windows 10 Version 1809 for x86-based Systems (KB4549949)",
    "2020-04 Dynamic Cumulative Update for Windows 10 Version 1809 for x64-based Systems (KB4549949)",
    "2020-04 Dynamic Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)",
    "2020-04 Cumulative Update for Windows Server 2019 for ARM64-based Systems (KB4549949)",
    "2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)",
    "2020-04 Cumulative Update for .NET Framework 3.5 and 4.7.2 for Windows Server 2019 for x64 (KB4549949)",
    "2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549950)",
];

#[test]
fn the_server_edition_of_the_build_is_picked_among_its_look_alikes() {
    let of_2025 = [
        "2026-07 Cumulative Update for Windows 11 Version 24H2 for x64-based Systems (KB5101650)",
        "2026-07 Cumulative Update for Microsoft server operating system version 24H2 for x64-based Systems (KB5101650)",
        "2026-07 Cumulative Update for Windows 11, version 25H2 for x64-based Systems (KB5101650)",
    ];
    let previews = [
        "2021-10 Cumulative Update Preview for Windows 10 Version 1809 for x64-based Systems (KB5006744)",
        "2021-10 Cumulative Update Preview for Windows Server 2019 for x64-based Systems (KB5006744)",
    ];
    let hotpatch = [
        "2025-02 Hotpatch for Microsoft server operating system version 24H2 for x64-based Systems (KB5052105)",
    ];
    let delta = ["2018-03 Delta Update for Windows Server 2016 for x64-based Systems (KB4088787)"];
    let unsaid = ["2018-03 Cumulative Update for Windows Server 2016 (KB4088787)"];
    for (titles, kb, build, expected) in [
        (&APRIL_2020[..], "KB4549949", 17763, Ok(6)),
        (&of_2025, "KB5101650", 26100, Ok(1)),
        (&previews, "KB5006744", 17763, Ok(1)),
        (&previews[..1], "KB5006744", 17763, Err("another product")),
        (&hotpatch, "KB5052105", 26100, Ok(0)),
        (&delta, "KB4088787", 14393, Err("delta")),
        (&unsaid, "KB4088787", 14393, Err("names no architecture")),
    ] {
        let hits = hits(titles);
        let found = select(&hits, &wanted(kb, Some(build)));
        match expected {
            Ok(number) => assert_eq!(found.unwrap().title, titles[number]),
            Err(words) => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(words), "{error}");
            }
        }
    }
}

#[test]
fn a_product_of_the_users_overrides_the_builds() {
    let hits = hits(&APRIL_2020);
    let mut wanted = wanted("KB4549949", Some(17763));
    wanted.product = Some(Product::from_name("windows 10 version 1809"));
    wanted.arch = Arch::Arm64;
    assert_eq!(select(&hits, &wanted).unwrap().title, APRIL_2020[1]);
}

#[test]
fn servers_named_by_version_are_distinguished() {
    let article = |product: &str| {
        format!("2022-08 Cumulative Update for {product} for x64-based Systems (KB5016627)")
    };
    let titles = [
        article("Microsoft server operating system version 21H2"),
        article("Microsoft server operating system, version 22H2"),
        article("Microsoft server operating system version 23H2"),
        article("Windows Server 2019"),
        article("Windows Server 2016"),
        article("Windows Server 2016 (1803)"),
        article("Windows Server, version 20H2"),
        article("Windows 10 Version 21H2"),
        article("Microsoft server operating system version 24H2"),
    ];
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let hits = hits(&titles);
    let builds = [20348, 25398, 17763, 14393, 17134, 19042, 26100];
    for (build, index) in builds.into_iter().zip([0, 2, 3, 4, 5, 6, 8]) {
        let hit = select(&hits, &wanted("5016627", Some(build))).unwrap();
        assert_eq!(hit.title, titles[index], "{build}");
    }
}

/// The flags that an error suggests.
fn flags_of(error: &Problem) -> Vec<String> {
    let diagnosis = error.diagnosis();
    assert_eq!(diagnosis.code, "updates/ambiguous");
    let hint = diagnosis.hint.unwrap();
    // A hint is printed on one line.
    assert!(!hint.contains('\n'), "{hint}");
    let flags = hint.strip_prefix("add ").unwrap().split(", or ");
    let flag = |text: &str| text.split(" for ").next().unwrap().to_owned();
    flags.map(flag).collect()
}

#[test]
fn without_a_product_several_products_are_an_error_that_names_the_flags() {
    let hits = hits(&APRIL_2020);
    let error = select(&hits, &wanted("KB4549949", None)).unwrap_err();
    let problem = "the catalog has 2 updates that are KB4549949 (x64)";
    assert_eq!(error.to_string(), problem);
    let flags = r#"--product "Windows 10 Version 1809" or --product "Windows Server 2019""#;
    assert_eq!(flags_of(&error).join(" or "), flags);
}

#[test]
fn twins_are_distinguished_by_their_update_ids() {
    let twins = hits(&[APRIL_2020[6], APRIL_2020[6]]);
    let mut wanted = wanted("KB4549949", Some(17763));
    let error = select(&twins, &wanted).unwrap_err();
    let id = "00000001-0000-0000-0000-000000000000";
    assert_eq!(flags_of(&error)[1], format!("--update-id {id}"));
    wanted.update_id = Some(id.to_owned());
    assert_eq!(select(&twins, &wanted).unwrap(), &twins[1]);
}

#[test]
fn an_update_that_two_pages_list_is_one() {
    let mut hits = hits(&[APRIL_2020[6], APRIL_2020[6]]);
    hits[1].update_id = hits[0].update_id.clone();
    assert!(select(&hits, &wanted("KB4549949", Some(17763))).is_ok());
}

#[test]
fn an_update_id_does_not_lead_to_another_article() {
    let hits = hits(&APRIL_2020);
    let mut wanted = wanted("KB4549949", Some(17763));
    wanted.update_id = Some(hits[8].update_id.clone());
    let error = select(&hits, &wanted).unwrap_err();
    assert_eq!(error.diagnosis().code, "updates/not-found");
}

#[test]
fn update_ids_are_read_in_either_case() {
    let id = "D001CA72-CE16-4700-9A6D-B2BB28974002";
    assert_eq!(parse_update_id(id).unwrap(), id.to_ascii_lowercase());
    for text in [
        "",
        "d001ca72",
        "d001ca72-ce16-4700-9a6d-b2bb2897400g",
        "d001ca7-2ce16-4700-9a6d-b2bb28974002",
    ] {
        assert!(parse_update_id(text).is_err(), "{text}");
    }
}
