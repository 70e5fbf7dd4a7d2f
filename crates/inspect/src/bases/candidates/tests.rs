use proptest::prelude::*;
use wincimg_windows::update::{Update, UpdateKind, Updates};

use super::*;

fn pool(host: &str, tags: &[&str]) -> CandidateQueue<()> {
    let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
    CandidateQueue::new(
        &tags,
        HostBuild::new(host.parse().unwrap()),
        BaseMatch::Nearest,
    )
}

/// The candidates in the order of removal, if every estimate resolves to `truth`.
fn asked(host: &str, tags: &[&str], truth: &[(&str, &str)]) -> Vec<String> {
    let mut pool = pool(host, tags);
    let mut asked = Vec::new();
    while let Some(offer) = pool.pop_best() {
        match offer.basis {
            VersionSource::Guessed => {
                asked.push(offer.tag.text.clone());
                let of_tag = truth.iter().filter(|(tag, _)| *tag == offer.tag.text);
                for (_, version) in of_tag {
                    pool.add(offer.tag.clone(), version.parse().unwrap(), ());
                }
            }
            VersionSource::Promised(version) | VersionSource::Seen(version, ()) => {
                asked.push(format!("{version} as {}", offer.tag.text));
                break;
            }
        }
    }
    asked
}

#[test]
fn a_named_version_is_taken_without_a_question() {
    let tags = [
        "ltsc2019", "1809", "1809-KB4534273", "10.0.17763.973-amd64", "10.0.17763.973",
        "10.0.17763.914",
    ];
    let named = ["17763.973 as 10.0.17763.973"];
    assert_eq!(asked("17763.973", &tags, &[]), named);
}

#[test]
fn a_floating_tag_is_asked_about_only_by_a_host_newer_than_all_named_versions() {
    let tags = [
        "ltsc2022", "ltsc2022-amd64", "10.0.20348.100", "10.0.20348.200",
    ];
    let older = ["20348.100 as 10.0.20348.100"];
    assert_eq!(asked("20348.150", &tags, &[]), older);
    let newer = ["ltsc2022", "20348.200 as 10.0.20348.200"];
    let truth = [("ltsc2022", "20348.200")];
    assert_eq!(asked("20348.300", &tags, &truth), newer);
}

#[test]
fn a_kb_that_another_tag_gives_a_version_is_not_asked_about() {
    let tags = ["1809-KB4546852", "1809-KB4532691", "10.0.17763.1040"];
    let named = ["17763.1040 as 10.0.17763.1040"];
    assert_eq!(asked("17763.1039", &tags, &[]), named);
}

#[test]
fn kb_tags_alone_are_asked_about_where_they_may_fit() {
    let tags = ["1809-KB4534273", "1809-KB4530715", "1809-KB4532691"];
    let truth = [("1809-KB4534273", "17763.973")];
    let expected = ["1809-KB4534273", "17763.973 as 1809-KB4534273"];
    assert_eq!(asked("17763.973", &tags, &truth), expected);
}

#[test]
fn of_dated_tags_the_hosts_month_is_asked_about_first() {
    let tags = [
        "4.8-windowsservercore-ltsc2019",
        "4.8-20191210-windowsservercore-ltsc2019",
        "4.8-20200114-windowsservercore-ltsc2019",
        "4.7.2-20200114-windowsservercore-ltsc2019",
        "4.8-20200211-windowsservercore-ltsc2019",
        "4.8",
        "latest",
    ];
    let january = "4.8-20200114-windowsservercore-ltsc2019";
    let found = format!("17763.973 as {january}");
    let asked = asked("17763.973", &tags, &[(january, "17763.973")]);
    assert_eq!(asked, [january, &found]);
}

#[test]
fn a_guess_that_was_wrong_yields_to_the_next() {
    let december = "20191210-windowsservercore-ltsc2019";
    let january = "20200114-windowsservercore-ltsc2019";
    let truth = [(january, "17763.1040"), (december, "17763.914")];
    let found = format!("17763.914 as {december}");
    let asked = asked("17763.973", &[december, january], &truth);
    assert_eq!(asked, [january, december, &found]);
}

#[test]
fn tags_that_say_nothing_are_the_last_resort() {
    let truth = [("latest", "17763.973"), ("latest", "20348.1")];
    let asked = asked("17763.973", &["latest", "ltsc2022"], &truth);
    assert_eq!(asked, ["latest", "17763.973 as latest"]);
}

#[test]
fn previews_and_other_architectures_are_not_offered() {
    let tags = [
        "10.0.26100.1742-arm64",
        "ltsc2025-arm64",
        "10.0.26100.1742-preview",
        "v1",
    ];
    assert!(pool("26100.1742", &tags).pop_best().is_none());
}

#[test]
fn neighbours_are_the_nearest_on_both_sides() {
    let tags = [
        "10.0.14393.3326", "10.0.14393.3384", "10.0.14393.3504", "10.0.17763.973",
    ];
    let pool = pool("14393.3443", &tags);
    let (below, above) = pool.nearest_versions();
    let (below, above) = (below.unwrap().to_string(), above.unwrap().to_string());
    assert_eq!(below, "14393.3384 (tag 10.0.14393.3384)");
    assert_eq!(above, "14393.3504 (tag 10.0.14393.3504)");
}

/// The version that is chosen.
fn found(host: &str, tags: &[String], truth: &[(String, String)]) -> Option<String> {
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let truth = truth.iter().map(|(tag, version)| (&**tag, &**version));
    let asked = asked(host, &tags, &truth.collect::<Vec<_>>());
    let (version, _) = asked.last()?.split_once(" as ")?;
    Some(version.to_owned())
}

/// The best version if all were known.
fn best(host: &str, versions: &[WindowsVersion]) -> Option<String> {
    let host = HostBuild::new(host.parse().unwrap());
    versions
        .iter()
        .filter_map(|version| Some((Fit::of(*version, host, BaseMatch::Nearest)?, version)))
        .max()
        .map(|(_, version)| version.to_string())
}

proptest! {
    #[test]
    fn an_image_that_only_a_floating_tag_names_is_found_where_it_is_best(
        host in 900_u32..1300,
        build in proptest::sample::select(vec![(17763, "ltsc2019"), (20348, "ltsc2022")]),
        revisions in proptest::collection::btree_set(900_u32..1300, 1..12),
    ) {
        let (build, floating) = build;
        let versions: Vec<WindowsVersion> =
            revisions.iter().map(|revision| WindowsVersion::new(build, *revision)).collect();
        let (newest, named) = versions.split_last().unwrap();
        let mut tags: Vec<String> = named.iter().map(WindowsVersion::os_version).collect();
        tags.push(floating.to_owned());
        let truth = [(floating.to_owned(), newest.to_string())];
        let host = format!("{build}.{host}");
        prop_assert_eq!(found(&host, &tags, &truth), best(&host, &versions));
    }

    #[test]
    fn of_monthly_images_with_dates_the_best_is_found(
        host in 0_usize..30,
        days_late in proptest::collection::vec(0_i32..10, 30),
    ) {
        let monthly = || {
            let updates = Updates::embedded().by_build(17763).iter();
            updates.filter(|update| update.kind == UpdateKind::Week('B')).take(30)
        };
        let truth: Vec<(String, String)> = monthly()
            .zip(days_late)
            .map(|(update, late)| {
                let day = update.date.saturating_add(jiff::Span::new().days(late));
                let tag = format!("{}-windowsservercore-ltsc2019", day.strftime("%Y%m%d"));
                (tag, update.version().to_string())
            })
            .collect();
        let tags: Vec<String> = truth.iter().map(|(tag, _)| tag.clone()).collect();
        let versions: Vec<WindowsVersion> = monthly().map(Update::version).collect();
        let all = Updates::embedded().by_build(17763);
        let host = all[host % all.len()].version().to_string();
        prop_assert_eq!(found(&host, &tags, &truth), best(&host, &versions));
    }
}
