//! The report as JUnit XML: a test case for each workload, and for each directly named image on
//! each host. CI systems follow a case over time by its name, which therefore has no version, number
//! or date: these are in its message.

use wincimg_cluster::rollout::host_name;
use wincimg_windows::compat::VerdictOutcome as Verdict;

use super::matrix::HOSTS_BY_NAME;
use super::names::workload_ids;
use super::suites::{Failure, Outcome, TestCase, TestSuite, write_suites};
use super::summary::{Cause, causes, fixes, outlook};
use super::{behind_in_words, image_in_words};
use crate::report::prelude::*;

/// Grouping of the cases.
const CLASS: Option<&str> = Some("wincimg.check-compat");

/// Writes the report as JUnit XML; under `strict` a warning is a failure.
pub(crate) fn write_junit(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let name = match what_if(rollout) {
        Some(what_if) => format!("wincimg check-compat: {}", escape_untrusted(what_if)),
        None => "wincimg check-compat".to_owned(),
    };
    let ids = workload_ids(rollout);
    let workloads = workload_outcomes(rollout);
    let workloads = workloads.map(|(workload, outcome)| {
        let name = format!("{} starts", escape_untrusted(&ids[workload]));
        workload_case(name, rollout, &outcome, workload, strict)
    });
    let mut suites = vec![suite("workloads", workloads)];
    let placements = rollout.placements.iter();
    for placement in placements.filter(|placement| placement.workload.is_none()) {
        suites.extend(host_suites(rollout, placement, strict));
    }
    suites.push(suite("images", notices(rollout, strict)));
    let skipped = rollout.skipped.iter().map(|skipped| TestCase {
        name: escape_untrusted(&skipped.id),
        failure: Some(Failure {
            outcome: Outcome::Skipped,
            message: NO_TEMPLATE.to_owned(),
            rule: None,
            description: Some(format!("in: {}", escape_untrusted(&skipped.origin))),
        }),
        ..TestCase::default()
    });
    suites.push(suite("skipped", skipped));
    // They do not fail: nothing is broken yet.
    let behind = rollout.outdated_images();
    let behind = behind.iter().map(|it| {
        let image = image_name(&rollout.images[it.image]);
        (image, behind_in_words(rollout, it))
    });
    suites.push(suite("updates", remarks("behind", behind)));
    let missing = rollout.missing_fixes.iter().flat_map(MissingFixes::lacking);
    let missing = missing.map(|image| {
        let name = image.reference.clone();
        let name = name.unwrap_or_else(|| image.build.to_string());
        (name, image_in_words(image))
    });
    suites.push(suite("security", remarks("missing-fixes", missing)));
    suites.retain(|suite| !suite.cases.is_empty());
    write_suites(&name, &suites, &mut out)
}

/// Name of an image; of one that is given by its version alone, that.
fn image_name(image: &Image) -> String {
    image.reference.clone().unwrap_or_else(|| image.label())
}

/// A passed case for each image, with what a rule says of its versions.
fn remarks(
    rule: &str,
    images: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = TestCase> {
    let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (image, said) in images {
        words.entry(image).or_default().push(escape_untrusted(said));
    }
    words.into_iter().map(move |(image, said)| TestCase {
        name: format!("{}: {rule}", escape_untrusted(image)),
        class: CLASS,
        failure: None,
        output: Some(said.join("\n")),
    })
}

fn suite(name: impl Into<String>, cases: impl Iterator<Item = TestCase>) -> TestSuite {
    TestSuite {
        name: name.into(),
        cases: cases.collect(),
    }
}

/// Directly named images, on each host, or on all of many.
fn host_suites(rollout: &Rollout, placement: &Placement, strict: bool) -> Vec<TestSuite> {
    let name_of = |image: usize| escape_untrusted(image_name(&rollout.images[image]));
    if rollout.hosts.len() > HOSTS_BY_NAME {
        let cases = placement.images.iter().map(|placed| {
            let name = format!("{} starts", name_of(placed.image));
            case_on_all(name, rollout, placement, placed.image, strict)
        });
        return vec![suite("nodes", cases)];
    }
    let hosts = placement.selection.hosts.iter();
    let suites = hosts.map(|&(host, group)| {
        let host = escape_untrusted(host_name(&rollout.hosts[host as usize]));
        let cases = placement.images.iter().map(|placed| {
            let name = format!("{} starts on {host}", name_of(placed.image));
            case(name, &placed.findings[group as usize], strict)
        });
        suite(host.clone(), cases)
    });
    suites.collect()
}

/// Case of an image on all hosts: the worst finding, and what is said on each kind of host.
fn case_on_all(
    name: String,
    rollout: &Rollout,
    placement: &Placement,
    image: usize,
    strict: bool,
) -> TestCase {
    let findings = findings(placement).filter(|(own, ..)| *own == image);
    let findings = findings.filter(|(.., finding)| finding.outcome != Verdict::Compatible);
    let findings: Vec<_> = findings.map(|(_, hosts, it)| (hosts, it)).collect();
    let worst = findings.iter().max_by_key(|(_, it)| it.outcome);
    let Some((_, worst)) = worst else {
        return TestCase {
            name,
            class: CLASS,
            ..TestCase::default()
        };
    };
    let lines = findings.iter().map(|(hosts, finding)| {
        let hosts: Vec<usize> = hosts.iter().map(|&host| host as usize).collect();
        let hosts = escape_untrusted(hosts_in_words(rollout, &hosts));
        format!("{hosts}: {}", explained(finding))
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    told(name, worst, lines, strict)
}

/// Case of one workload: passed, or the findings of each image and kind of host.
fn workload_case(
    name: String,
    rollout: &Rollout,
    outcome: &WorkloadOutcome<'_>,
    workload: usize,
    strict: bool,
) -> TestCase {
    let own = &rollout.workloads[workload];
    let causes = causes(rollout, outcome, workload);
    let outlook = outlook(outcome);
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
    let verdict = worst.map_or(Verdict::Compatible, |finding| finding.outcome);
    let failure = failed(verdict, strict).zip(worst);
    let failure = failure.map(|(outcome, finding)| Failure {
        outcome,
        message: escape_untrusted(&outlook),
        rule: Some(finding.rule),
        description: Some(details.clone()),
    });
    let is_told = failure.is_none() && !details.is_empty();
    TestCase {
        name,
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
        let image = notice.image.map(|image| &rollout.images[image]);
        let name = match image {
            Some(image) => format!("{}: {}", escape_untrusted(image_name(image)), finding.rule),
            None => finding.rule.to_owned(),
        };
        case(name, finding, strict)
    })
}

fn case(name: String, finding: &Finding, strict: bool) -> TestCase {
    told(name, finding, explained(finding), strict)
}

/// Case with the outcome of a finding and these details.
fn told(name: String, finding: &Finding, details: String, strict: bool) -> TestCase {
    let outcome = failed(finding.outcome, strict);
    let is_told = finding.outcome == Verdict::Warning && outcome.is_none();
    TestCase {
        name,
        class: CLASS,
        output: is_told.then(|| details.clone()),
        failure: outcome.map(|outcome| Failure {
            outcome,
            message: escape_untrusted(&finding.reason),
            rule: Some(finding.rule),
            description: Some(details),
        }),
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
            format!(
                "{reason}\nfix: {}",
                joined(fix.lines().map(escape_untrusted), "\n")
            )
        }
        None => reason,
    }
}
