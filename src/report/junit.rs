//! The report as JUnit XML: a test case for each workload, and for each image that was asked about
//! by itself on each host.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use wincimg_cluster::rollout::{Finding, Placement, Prospect, Rollout, Subject, host_label};
use wincimg_windows::compat::Outcome;

use super::answer::{causes, fixes, outlook};
use super::matrix::HOSTS_BY_NAME;
use super::names::shown;
use super::{behind_in_words, in_words, what_if};

/// Writes the report as JUnit XML; under `strict` a warning is a failure.
pub(crate) fn write_junit(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let mut junit = Junit::new(match what_if(rollout) {
        Some(what_if) => format!("wincimg check-compat: {}", shown(what_if)),
        None => "wincimg check-compat".to_owned(),
    });
    let mut suite = TestSuite::new("workloads");
    for prospect in rollout.prospects() {
        if let Subject::Workload(workload) = prospect.subject {
            suite.add_test_case(workload_case(rollout, &prospect, workload, strict));
        }
    }
    if !suite.test_cases.is_empty() {
        junit.add_test_suite(suite);
    }
    let placements = rollout.placements.iter();
    for placement in placements.filter(|placement| placement.workload.is_none()) {
        add_hosts(&mut junit, rollout, placement, strict);
    }
    let mut suite = TestSuite::new("images");
    add_notices(&mut suite, rollout, strict);
    if !suite.test_cases.is_empty() {
        junit.add_test_suite(suite);
    }
    if !rollout.skipped.is_empty() {
        let mut suite = TestSuite::new("skipped");
        for skipped in &rollout.skipped {
            let mut status = TestCaseStatus::skipped();
            status.set_message("no pods were found in it");
            suite.add_test_case(TestCase::new(shown(skipped), status));
        }
        junit.add_test_suite(suite);
    }
    let behind = rollout.behind();
    if !behind.is_empty() {
        let mut suite = TestSuite::new("updates");
        for behind in &behind {
            // No verdict: whoever reads the report may look at it.
            let words = shown(behind_in_words(rollout, behind));
            let mut case = TestCase::new(words.as_str(), TestCaseStatus::success());
            case.set_classname("wincimg.check-compat")
                .set_system_out(words);
            suite.add_test_case(case);
        }
        junit.add_test_suite(suite);
    }
    let xml = junit.to_string().map_err(io::Error::other)?;
    out.write_all(xml.as_bytes())
}

fn add_hosts(junit: &mut Junit, rollout: &Rollout, placement: &Placement, strict: bool) {
    for (place, hosts) in places(rollout, placement) {
        let mut suite = TestSuite::new(hosts.clone());
        add_cases(&mut suite, rollout, placement, place, &hosts, strict);
        junit.add_test_suite(suite);
    }
}

/// The places of a placement: each host by name, or many by their kind. Each has the number of its
/// group and what to call it.
fn places(rollout: &Rollout, placement: &Placement) -> Vec<(usize, String)> {
    let label = |host: u32| shown(host_label(&rollout.hosts[host as usize]));
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

fn add_cases(
    suite: &mut TestSuite,
    rollout: &Rollout,
    placement: &Placement,
    group: usize,
    hosts: &str,
    strict: bool,
) {
    for placed in &placement.images {
        let image = shown(rollout.images[placed.image].label());
        let name = format!("{image} starts on {hosts}");
        suite.add_test_case(case(name, &placed.findings[group], strict));
    }
}

/// One workload: it starts, or what keeps it from that, pair by pair.
fn workload_case(
    rollout: &Rollout,
    prospect: &Prospect<'_>,
    workload: usize,
    strict: bool,
) -> TestCase {
    let id = &rollout.workloads[workload].id;
    let causes = causes(rollout, prospect, workload);
    let outlook = outlook(prospect.starts, prospect.starts_on, prospect.nodes, 1);
    let mut lines: Vec<String> = causes
        .iter()
        .map(|cause| {
            shown(format!(
                "{} ({})",
                cause.in_words(rollout),
                cause.finding.rule
            ))
        })
        .collect();
    for (fix, commands) in fixes(&causes) {
        lines.push(format!("fix: {}", shown(fix)));
        lines.extend(
            commands
                .iter()
                .map(|command| format!("run: {}", shown(command))),
        );
    }
    let details = lines.join("\n");
    let worst = causes.first().map(|cause| cause.finding);
    let outcome = worst.map_or(Outcome::Compatible, |finding| finding.outcome);
    let mut status = status_of(outcome, strict);
    if let (TestCaseStatus::NonSuccess { .. }, Some(finding)) = (&status, worst) {
        status
            .set_type(finding.rule)
            .set_message(shown(&outlook))
            .set_description(details.as_str());
    }
    let is_success = matches!(status, TestCaseStatus::Success { .. });
    let mut case = TestCase::new(format!("{} starts", shown(id)), status);
    case.set_classname("wincimg.check-compat");
    if is_success && !details.is_empty() {
        case.set_system_out(format!("{}\n{details}", shown(outlook)));
    }
    case
}

/// Warnings about images that no workload has.
fn add_notices(suite: &mut TestSuite, rollout: &Rollout, strict: bool) {
    let notices = rollout.notices.iter();
    for notice in notices.filter(|notice| notice.workload.is_none()) {
        let finding = &notice.finding;
        let name = match notice.image {
            Some(image) => format!("{}: {}", shown(rollout.images[image].label()), finding.rule),
            None => finding.rule.to_owned(),
        };
        suite.add_test_case(case(name, finding, strict));
    }
}

fn case(name: String, finding: &Finding, strict: bool) -> TestCase {
    let mut status = status_of(finding.outcome, strict);
    if matches!(status, TestCaseStatus::NonSuccess { .. }) {
        status
            .set_type(finding.rule)
            .set_message(shown(&finding.reason))
            .set_description(explained(finding));
    }
    let mut case = TestCase::new(name, status);
    case.set_classname("wincimg.check-compat");
    if finding.outcome == Outcome::Warning && !strict {
        case.set_system_out(explained(finding));
    }
    case
}

fn status_of(outcome: Outcome, strict: bool) -> TestCaseStatus {
    TestCaseStatus::non_success(match outcome {
        Outcome::Compatible => return TestCaseStatus::success(),
        Outcome::Warning if !strict => return TestCaseStatus::success(),
        Outcome::Warning | Outcome::Incompatible => NonSuccessKind::Failure,
        Outcome::Unknown => NonSuccessKind::Error,
    })
}

fn explained(finding: &Finding) -> String {
    let reason = shown(&finding.reason);
    match finding.advice() {
        Some(fix) => {
            let lines: Vec<String> = fix.lines().map(shown).collect();
            format!("{reason}\nfix: {}", lines.join("\n"))
        }
        None => reason,
    }
}
