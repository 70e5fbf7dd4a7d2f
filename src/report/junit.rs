//! The report as JUnit XML: a test case for each workload, and for each directly named image on
//! each host.

use std::io::{self, Write};

use wincimg_cluster::rollout::{Finding, Placement, Rollout, WorkloadOutcome, host_label};
use wincimg_windows::compat::VerdictOutcome as Verdict;
use wincimg_windows::missing_fixes::MissingFixes;

use super::matrix::HOSTS_BY_NAME;
use super::names::escape_untrusted;
use super::suites::{Failure, Outcome, TestCase, TestSuite, write_suites};
use super::summary::{Cause, causes, fixes, outlook};
use super::{NO_TEMPLATE, behind_in_words, image_in_words, in_words, what_if, workload_outcomes};

/// Grouping of the cases.
const CLASS: Option<&str> = Some("wincimg.check-compat");

/// Writes the report as JUnit XML; under `strict` a warning is a failure.
pub(crate) fn write_junit(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let name = match what_if(rollout) {
        Some(what_if) => format!("wincimg check-compat: {}", escape_untrusted(what_if)),
        None => "wincimg check-compat".to_owned(),
    };
    let workloads = workload_outcomes(rollout);
    let workloads =
        workloads.map(|(workload, prospect)| workload_case(rollout, &prospect, workload, strict));
    let mut suites = vec![suite("workloads", workloads)];
    let placements = rollout.placements.iter();
    for placement in placements.filter(|placement| placement.workload.is_none()) {
        suites.extend(host_suites(rollout, placement, strict));
    }
    suites.push(suite("images", notices(rollout, strict)));
    let skipped = rollout.skipped.iter().map(|skipped| TestCase {
        name: escape_untrusted(skipped),
        failure: Some(Failure {
            outcome: Outcome::Skipped,
            message: NO_TEMPLATE.to_owned(),
            rule: None,
            description: None,
        }),
        ..TestCase::default()
    });
    suites.push(suite("skipped", skipped));
    let behind = rollout.outdated_images();
    // They do not fail: nothing is broken yet.
    let behind = behind
        .iter()
        .map(|it| remark(&behind_in_words(rollout, it)));
    suites.push(suite("updates", behind));
    let missing = rollout.missing_fixes.iter().flat_map(MissingFixes::lacking);
    let missing = missing.map(|image| remark(&image_in_words(image)));
    suites.push(suite("security", missing));
    suites.retain(|suite| !suite.cases.is_empty());
    write_suites(&name, &suites, &mut out)
}

/// A case that only says something.
fn remark(words: &str) -> TestCase {
    let words = escape_untrusted(words);
    TestCase {
        name: words.clone(),
        class: CLASS,
        failure: None,
        output: Some(words),
    }
}

fn suite(name: impl Into<String>, cases: impl Iterator<Item = TestCase>) -> TestSuite {
    TestSuite {
        name: name.into(),
        cases: cases.collect(),
    }
}

/// Directly named images, on each host.
fn host_suites(rollout: &Rollout, placement: &Placement, strict: bool) -> Vec<TestSuite> {
    let places = places(rollout, placement).into_iter();
    let suites = places.map(|(group, hosts)| {
        let cases = placement.images.iter().map(|placed| {
            let image = escape_untrusted(rollout.images[placed.image].label());
            let name = format!("{image} starts on {hosts}");
            case(name, &placed.findings[group], strict)
        });
        suite(hosts.clone(), cases)
    });
    suites.collect()
}

/// Hosts of a placement: each one by name, or many by kind. Each has the number of its group and
/// its label.
fn places(rollout: &Rollout, placement: &Placement) -> Vec<(usize, String)> {
    let label = |host: u32| escape_untrusted(host_label(&rollout.hosts[host as usize]));
    let selection = &placement.selection;
    if rollout.hosts.len() <= HOSTS_BY_NAME {
        return selection
            .hosts
            .iter()
            .map(|&(host, group)| (group as usize, label(host)))
            .collect();
    }
    let groups = selection.groups.iter().enumerate();
    groups
        .map(|(index, group)| (index, in_words(group.hosts.iter().map(|&host| label(host)))))
        .collect()
}

/// Case of one workload: passed, or the findings of each image and kind of host.
fn workload_case(
    rollout: &Rollout,
    prospect: &WorkloadOutcome<'_>,
    workload: usize,
    strict: bool,
) -> TestCase {
    let own = &rollout.workloads[workload];
    let causes = causes(rollout, prospect, workload);
    let outlook = outlook(prospect);
    let reason = |cause: &Cause<'_>| {
        let (text, rule) = (cause.describe(rollout), cause.finding.rule);
        escape_untrusted(format!("{text} ({rule})"))
    };
    let mut lines: Vec<String> = causes.iter().map(reason).collect();
    if let (Some(manifest), false) = (own.manifest(), lines.is_empty()) {
        lines.insert(0, format!("in: {}", escape_untrusted(manifest)));
    }
    for (fix, commands) in fixes(&causes) {
        lines.push(format!("fix: {}", escape_untrusted(fix)));
        lines.extend(
            commands
                .iter()
                .map(|command| format!("run: {}", escape_untrusted(command))),
        );
    }
    let details = lines.join("\n");
    let worst = causes.first().map(|cause| cause.finding);
    let outcome = worst.map_or(Verdict::Compatible, |finding| finding.outcome);
    let failure = failed(outcome, strict).zip(worst);
    let failure = failure.map(|(outcome, finding)| Failure {
        outcome,
        message: escape_untrusted(&outlook),
        rule: Some(finding.rule),
        description: Some(details.clone()),
    });
    let is_told = failure.is_none() && !details.is_empty();
    TestCase {
        name: format!("{} starts", escape_untrusted(&own.id)),
        class: CLASS,
        failure,
        output: is_told.then(|| format!("{}\n{details}", escape_untrusted(outlook))),
    }
}

/// Warnings about images, independent of workloads.
fn notices(rollout: &Rollout, strict: bool) -> impl Iterator<Item = TestCase> {
    let notices = rollout.notices.iter();
    let notices = notices.filter(|notice| notice.workload.is_none());
    notices.map(move |notice| {
        let finding = &notice.finding;
        let name = match notice.image {
            Some(image) => format!(
                "{}: {}",
                escape_untrusted(rollout.images[image].label()),
                finding.rule
            ),
            None => finding.rule.to_owned(),
        };
        case(name, finding, strict)
    })
}

fn case(name: String, finding: &Finding, strict: bool) -> TestCase {
    let failure = failed(finding.outcome, strict).map(|outcome| Failure {
        outcome,
        message: escape_untrusted(&finding.reason),
        rule: Some(finding.rule),
        description: Some(explained(finding)),
    });
    let is_told = finding.outcome == Verdict::Warning && !strict;
    TestCase {
        name,
        class: CLASS,
        failure,
        output: is_told.then(|| explained(finding)),
    }
}

/// Kind of failure of a verdict; none if the case passed.
fn failed(verdict: Verdict, strict: bool) -> Option<Outcome> {
    match verdict {
        Verdict::Compatible => None,
        Verdict::Warning if !strict => None,
        Verdict::Warning | Verdict::Incompatible => Some(Outcome::Failure),
        Verdict::Unknown => Some(Outcome::Error),
    }
}

fn explained(finding: &Finding) -> String {
    let reason = escape_untrusted(&finding.reason);
    match finding.advice() {
        Some(fix) => {
            let lines: Vec<String> = fix.lines().map(escape_untrusted).collect();
            format!("{reason}\nfix: {}", lines.join("\n"))
        }
        None => reason,
    }
}
