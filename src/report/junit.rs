//! The report as JUnit XML: a suite a host or a workload, a test case for each image there.

use std::fmt::Display;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::matrix::HOSTS_BY_NAME;
use super::{in_words, what_if};
use crate::foreign::Foreign;
use crate::rollout::{Finding, Placement, Rollout, host_label};
use crate::windows::compat::Outcome;

/// Writes the report as JUnit XML; under `strict` a warning is a failure.
pub fn write_junit(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let mut junit = Junit::new(match what_if(rollout) {
        Some(what_if) => format!("wincimg check-compat: {}", Foreign(what_if)),
        None => "wincimg check-compat".to_owned(),
    });
    for placement in &rollout.placements {
        match placement.workload {
            None => add_hosts(&mut junit, rollout, placement, strict),
            Some(workload) => {
                let mut suite = TestSuite::new(shown(&rollout.workloads[workload].id));
                for (place, hosts) in places(rollout, placement) {
                    add_cases(&mut suite, rollout, placement, place, &hosts, strict);
                }
                add_notices(&mut suite, rollout, Some(workload), strict);
                junit.add_test_suite(suite);
            }
        }
    }
    let mut suite = TestSuite::new("images");
    add_notices(&mut suite, rollout, None, strict);
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

fn add_notices(suite: &mut TestSuite, rollout: &Rollout, workload: Option<usize>, strict: bool) {
    for notice in rollout
        .notices
        .iter()
        .filter(|notice| notice.workload == workload)
    {
        let finding = &notice.finding;
        let name = match notice.image {
            Some(image) => format!("{}: {}", shown(rollout.images[image].label()), finding.rule),
            None => finding.rule.to_owned(),
        };
        suite.add_test_case(case(name, finding, strict));
    }
}

fn case(name: String, finding: &Finding, strict: bool) -> TestCase {
    let mut case = TestCase::new(name, status_of(finding, strict));
    case.set_classname("wincimg.check-compat");
    if finding.outcome == Outcome::Warning && !strict {
        case.set_system_out(explained(finding));
    }
    case
}

fn status_of(finding: &Finding, strict: bool) -> TestCaseStatus {
    let kind = match finding.outcome {
        Outcome::Compatible => return TestCaseStatus::success(),
        Outcome::Warning if !strict => return TestCaseStatus::success(),
        Outcome::Warning | Outcome::Incompatible => NonSuccessKind::Failure,
        Outcome::Unknown => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status
        .set_type(finding.rule)
        .set_message(shown(&finding.reason))
        .set_description(explained(finding));
    status
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

fn shown(text: impl Display) -> String {
    Foreign(text).to_string()
}
