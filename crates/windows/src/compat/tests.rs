use super::*;

fn version(text: &str) -> WindowsVersion {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn under(isolation: Isolation, host: &str, image: &str) -> CompatVerdict {
    check(
        Some(HostBuild::new(version(host))),
        Some(version(image)),
        isolation,
    )
}

/// A host with Windows Server, whatever has its build.
fn server(version: WindowsVersion) -> HostBuild {
    HostBuild {
        edition: WindowsEdition::Server,
        ..HostBuild::new(version)
    }
}

fn process(host: &str, image: &str) -> CompatVerdict {
    under(Isolation::Process, host, image)
}

/// Every expected version of a host or an image: all listed updates, and the first revision of
/// releases without any.
fn listed_versions() -> Vec<WindowsVersion> {
    let mut versions: Vec<_> = Updates::embedded()
        .all()
        .iter()
        .map(Update::version)
        .collect();
    versions.extend(
        release::all()
            .iter()
            .filter(|release| Updates::embedded().newest(release.build).is_none())
            .map(|release| WindowsVersion::new(release.build, 1)),
    );
    versions
}

/// Hosts and images: all pairs of one build, and a tenth of the others, with each build in each host's.
fn listed_pairs() -> Vec<(WindowsVersion, WindowsVersion)> {
    let versions = listed_versions();
    let mut pairs = Vec::new();
    for (number, host) in versions.iter().enumerate() {
        let mut build = 0;
        for (other, image) in versions.iter().enumerate() {
            let is_first = image.build != build;
            build = image.build;
            if is_first || image.build == host.build || (number + other).is_multiple_of(10) {
                pairs.push((*host, *image));
            }
        }
    }
    pairs
}

#[test]
fn known_pairs_are_decided_by_the_rule_that_documents_them() {
    for (host, image, rule) in [
        ("17763.973", "17763.973", CompatRule::BuildMatch),
        ("17763.973", "17763.1158", CompatRule::Baseline202002),
        ("17763.1039", "17763.1040", CompatRule::BuildMatch),
        ("17763.1012", "17763.1040", CompatRule::Baseline202002),
        ("18363.900", "18363.476", CompatRule::Baseline202002),
        ("17763.973", "18362.1", CompatRule::BuildMismatch),
        ("17763.973", "14393.3504", CompatRule::BuildMismatch),
        ("14393.3504", "14393.3504", CompatRule::RevisionMatch2016),
        ("14393.3504", "14393.3503", CompatRule::RevisionMismatch2016),
        ("20348.1", "20348.2402", CompatRule::ImageNewerRevision),
        ("20348.2402", "20348.1", CompatRule::BuildMatch),
        ("26100.2894", "26100.3194", CompatRule::ImageNewerRevision),
        ("17763.1039", "17763.1158", CompatRule::ImageNewerRevision),
        ("26100.33296", "26100.99999", CompatRule::ImageNewerRevision),
        ("26300.1", "26100.1", CompatRule::DownlevelLtsc),
        ("28000.1", "26100.1", CompatRule::DownlevelLtsc),
        ("20348.2402", "17763.5696", CompatRule::TooOldForHost),
        ("20348.2402", "22000.1", CompatRule::ImageNewerThanHost),
        ("26100.2314", "20348.1", CompatRule::DownlevelLtsc),
        ("25398.1", "20348.1", CompatRule::DownlevelLtsc),
        ("26200.1", "20348.1", CompatRule::DownlevelLtsc),
        ("26200.1", "26100.1", CompatRule::HostReportedBroken),
        ("19045.1", "19045.1", CompatRule::ClientProcessIsolation),
        ("14393", "14393.3504", CompatRule::UnknownBuild),
        ("17763", "17763.1158", CompatRule::UnknownBuild),
        ("20348", "20348", CompatRule::BuildMatch),
    ] {
        let verdict = process(host, image);
        assert_eq!(verdict.rule, rule, "host {host}, image {image}");
        assert_eq!(verdict.outcome, rule.outcome());
    }
}

#[test]
fn hyper_v_takes_everything_that_is_not_newer() {
    let rule = |host, image| under(Isolation::HyperV, host, image).rule;
    assert_eq!(rule("20348.2402", "17763.5696"), CompatRule::HypervOk);
    assert_eq!(rule("19045.1", "14393.1"), CompatRule::HypervOk);
    assert_eq!(rule("17763.1", "20348.1"), CompatRule::HypervImageNewer);
}

#[test]
fn fixes_say_what_to_do_next() {
    let fix = |host, image| {
        process(host, image)
            .fix
            .map(|fix| fix.to_string())
            .unwrap_or_default()
    };
    assert_eq!(
        fix("17763.973", "17763.1158"),
        "update the host to 17763.1158 with KB4549949"
    );
    assert_eq!(
        fix("17763.1158", "17763.973"),
        "build the image again on a base that fits the host: tag 10.0.17763.1158; or \
         run it with Hyper-V isolation"
    );
    assert_eq!(
        fix("17763.973", "20348.1"),
        "build the image again on a base that fits the host: tag 10.0.17763.973",
        "the floating tag is past the line that this host is before"
    );
    assert_eq!(
        fix("22621.1", "26100.1"),
        "build the image again on a base that fits the host: tag ltsc2022"
    );
    assert_eq!(fix("19045.1", "17763.1"), "run it with Hyper-V isolation");
    assert_eq!(
        fix("19045.1", "20348.1"),
        "build the image again on a base that is not newer than build 19045, and run it with \
         Hyper-V isolation",
        "there is no base of the client's own build, and it would need Hyper-V isolation as well"
    );
    assert_eq!(fix("20348.1", "20348.1"), "");
    assert_eq!(
        fix("17763.973", "17763.1040"),
        "update the host to 17763.1075 with KB4537818",
        "no update brings a host to the image's own revision"
    );
    assert_eq!(
        fix("14393.3474", "14393.3505"),
        "build the image again on a base that fits the host: tag 10.0.14393.3474; \
         or run it with Hyper-V isolation",
        "the next update goes past the image, and Server 2016 would refuse it again"
    );
}

#[test]
fn a_fix_that_keeps_the_image_makes_it_start() {
    for (version, image) in listed_pairs() {
        for edition in [WindowsEdition::Server, WindowsEdition::Client] {
            let on = |version, isolation| {
                let host = HostBuild {
                    edition,
                    ..HostBuild::new(version)
                };
                check(Some(host), Some(image), isolation)
            };
            let fixed = match on(version, Isolation::Process).fix {
                Some(Fix::PatchHost { to, .. }) => on(to, Isolation::Process),
                Some(Fix::UseHyperV) => on(version, Isolation::HyperV),
                _ => continue,
            };
            assert!(
                fixed.outcome == VerdictOutcome::Compatible
                    || fixed.rule == CompatRule::HostReportedBroken,
                "{edition:?} {version}, image {image}: {fixed:?}"
            );
        }
    }
}

#[test]
fn every_reason_names_both_versions() {
    for host in listed_versions().into_iter().step_by(7) {
        for image in listed_versions().into_iter().step_by(11) {
            for isolation in [Isolation::Process, Isolation::HyperV] {
                let reason = check(Some(HostBuild::new(host)), Some(image), isolation).reason();
                assert!(reason.contains(&host.to_string()), "{reason}");
                assert!(reason.contains(&image.to_string()), "{reason}");
            }
        }
    }
}

#[test]
fn a_missing_version_is_unknown_and_says_which() {
    let host = HostBuild::new(version("17763.973"));
    let verdict = check(Some(host), None, Isolation::Process);
    assert_eq!(verdict.outcome, VerdictOutcome::Unknown);
    assert_eq!(verdict.reason(), "the image's Windows version is unknown");
    let verdict = check(None, Some(version("17763.973")), Isolation::HyperV);
    assert_eq!(verdict.reason(), "the host's Windows version is unknown");
}

#[test]
fn the_invariants_hold_for_pairs_of_listed_versions() {
    let mut crossings = 0_u32;
    for (host, image) in listed_pairs() {
        let process = check(Some(server(host)), Some(image), Isolation::Process);
        let hyperv = check(Some(server(host)), Some(image), Isolation::HyperV);
        let runs = process.is_startable();
        let pair = || format!("host {host}, image {image}: {process:?}");

        assert_ne!(process.outcome, VerdictOutcome::Unknown, "{}", pair());
        assert_eq!(
            process.fix.is_none(),
            process.outcome == VerdictOutcome::Compatible,
            "{}",
            pair()
        );
        assert!(
            host != image || runs,
            "a host runs its own version: {}",
            pair()
        );
        assert!(
            image.build <= host.build || (!runs && !hyperv.is_startable()),
            "nothing newer than the host ever runs: {}",
            pair()
        );
        assert!(
            host.build != 14393 || runs == (host == image),
            "Server 2016 runs only its own revision: {}",
            pair()
        );
        assert!(
            !runs || hyperv.is_startable(),
            "Hyper-V never refuses what process isolation accepts: {}",
            pair()
        );
        if process.rule == CompatRule::Baseline202002 {
            crossings += 1;
            let other_way = check(Some(server(image)), Some(host), Isolation::Process);
            assert_eq!(other_way.rule, CompatRule::Baseline202002, "{}", pair());
        }
    }
    assert!(
        crossings > 1000,
        "the line of 2020-02 was met {crossings} times"
    );
}

#[test]
fn the_edition_comes_from_the_product_name_or_the_build() {
    use WindowsEdition::{Client, Server};

    let daemon = "Microsoft Windows Version 23H2 (OS Build 22631.3447)";
    for (name, edition) in [
        ("Windows Server 2019 Datacenter", Some(Server)),
        ("Windows 10 Enterprise", Some(Client)),
        (daemon, Some(Client)),
        // What `ver` prints, which old kubelets pass on.
        ("Microsoft Windows [Version 10.0.14393]", None),
        ("Ubuntu 22.04 LTS", None),
    ] {
        assert_eq!(WindowsEdition::from_product_name(name), edition, "{name}");
    }
    for (build, edition) in [("19045", Client), ("17763", Server)] {
        assert_eq!(HostBuild::new(version(build)).edition, edition, "{build}");
    }
}

#[test]
fn host_processes_start_whatever_the_versions_are() {
    let verdict = under(Isolation::HostProcess, "17763.973", "26100.1");
    assert_eq!(verdict.rule, CompatRule::HostProcess);
    let (outcome, fix) = (verdict.outcome, verdict.fix);
    assert_eq!((outcome, fix), (VerdictOutcome::Compatible, None));
    let reason = check(None, None, Isolation::HostProcess).reason();
    assert!(reason.contains("on the host"), "{reason}");
}

#[test]
fn versions_of_one_build_work_together_where_their_generations_are_equal() {
    let listed = listed_versions();
    for host in &listed {
        let same_build = listed.iter().filter(|image| image.build == host.build);
        for image in same_build {
            let build = HostBuild::new(*host);
            let verdict = check(Some(build), Some(*image), Isolation::Process);
            if verdict.rule != CompatRule::ClientProcessIsolation {
                let is_fine = verdict.is_startable();
                let is_same = generation(*host) == generation(*image);
                assert_eq!(is_fine, is_same, "{host} {image}");
                let alike = revisions_alike(*image).unwrap();
                let own = host.revision.unwrap();
                assert_eq!(is_fine, alike.contains(&own), "{host} {image}");
            }
        }
    }
    assert_eq!(generation(version("17763")), None);
    assert_eq!(generation(version("20348")), Some(0));
}

#[test]
fn a_host_that_lags_is_to_be_patched_first() {
    let verdict = process("26100.2894", "26100.3194");
    assert_eq!(verdict.outcome, VerdictOutcome::Warning);
    let reason = verdict.reason();
    for words in ["0xc0370106", "actions/runner-images/issues/11582"] {
        assert!(reason.contains(words), "{reason}");
    }
    let fix = verdict.fix.unwrap().to_string();
    assert_eq!(fix, "update the host to 26100.3194 with KB5051987");
    let reason = process("20348.1", "20348.2402").reason();
    assert!(reason.contains("documented to work"), "{reason}");
    let hyperv = under(Isolation::HyperV, "26100.2894", "26100.3194");
    assert_eq!(hyperv.rule, CompatRule::HypervOk);
}

#[test]
fn windows_11_25h2_is_reported_to_refuse_images_of_server_2025_in_both_isolations() {
    for isolation in [Isolation::Process, Isolation::HyperV] {
        let verdict = under(isolation, "26200.7171", "26100.7171");
        assert_eq!(verdict.rule, CompatRule::HostReportedBroken);
        assert_eq!(verdict.outcome, VerdictOutcome::Warning);
        let reason = verdict.reason();
        assert!(reason.contains("hcsshim/issues/2566"), "{reason}");
    }
    let older = under(Isolation::HyperV, "26200.7171", "20348.1");
    assert_eq!(older.rule, CompatRule::HypervOk);
}

#[test]
fn no_host_that_lags_is_offered_a_floating_tag() {
    for host in listed_versions() {
        let host = HostBuild::new(host);
        let (Some(_), Some(release)) =
            (floating_tag_for(host), base_release_for(host.version.build))
        else {
            continue;
        };
        let newest = Updates::embedded()
            .newest(release.build)
            .map(Update::version);
        assert!(
            release.build < host.version.build || newest <= Some(host.version),
            "{host}"
        );
    }
    let tag = |host| floating_tag_for(HostBuild::new(version(host)));
    assert_eq!(tag("17763.1158"), None);
    assert_eq!(tag("22621.1"), Some("ltsc2022"));
}

/// The rule of containerd/platforms 1.0.0-rc.5, from its documentation: below Windows Server 2022
/// builds must be equal; from there on an image may be as old as the LTSC release before the host's
/// generation. Revisions and editions are undefined.
fn platforms_start(host: u32, image: u32) -> bool {
    match host {
        0..20348 => host == image,
        // The next LTSC release will raise the minimum.
        _ => (20348..=host).contains(&image),
    }
}

#[test]
fn every_pair_of_builds_is_judged_as_containerd_judges_it() {
    let mut builds: Vec<u32> = release::all().iter().map(|release| release.build).collect();
    // Its neighbours, and unlisted builds.
    let listed = builds.clone().into_iter();
    builds.extend(listed.flat_map(|build| [build - 1, build + 1]));
    builds.extend([10240, 30000]);
    for &build in &builds {
        let host = server(WindowsVersion::new(build, 100_000));
        for &image in &builds {
            let version = WindowsVersion::new(image, 100_000);
            let verdict = check(Some(host), Some(version), Isolation::Process);
            let accepts = accepted_builds(build).contains(&image);
            let expected = platforms_start(build, image);
            let found = (verdict.is_startable(), accepts);
            assert_eq!(found, (expected, expected), "host {build}: {verdict:?}");
        }
    }
}

#[test]
fn the_tables_have_what_was_published_up_to_november_2026() {
    for (build, end) in [(26200, "2028-10-10"), (28000, "2029-03-13")] {
        let release = release::from_build(build).unwrap();
        assert_eq!(release.extended_end, Some(end.parse().unwrap()), "{build}");
    }
    for newest in ["17763.9487", "20348.5870"] {
        let newest = version(newest);
        let update = Updates::embedded().exact(newest).unwrap();
        assert!(update.date >= "2026-11-10".parse().unwrap(), "{newest}");
    }
}

#[test]
fn a_reason_states_what_is_so() {
    let hyperv = under(Isolation::HyperV, "26100.1", "26100.3194").reason();
    assert!(hyperv.contains("whose build is not newer"), "{hyperv}");
    let windows_10 = HostBuild::of_product(version("17763.973"), "Windows 10 Enterprise LTSC");
    let verdict = check(windows_10, Some(version("17763.973")), Isolation::Process);
    assert!(!verdict.reason().contains("Server"), "{}", verdict.reason());
    // The first images with the update of 2020-02-11 are 17763.1040.
    let fix = process("17763.1039", "17763.973").fix.unwrap().to_string();
    assert!(fix.contains("tag 10.0.17763.1040"), "{fix}");
    let error = "9600.1".parse::<WindowsVersion>().unwrap_err().to_string();
    assert!(error.contains("from 10240 on"), "{error}");
}
