//! The report as JUnit XML: a suite a host, a test case an image.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::{Finding, Report};
use crate::windows::compat::Outcome;

/// Writes the report as JUnit XML; under `strict` a warning is a failure.
pub fn write_junit(report: &Report, strict: bool, mut out: impl Write) -> io::Result<()> {
    let mut junit = Junit::new("wincimg check-compat");
    for checks in report.checks.chunk_by(|a, b| a.host == b.host) {
        let Some(first) = checks.first() else {
            continue;
        };
        let host = report.hosts[first.host].label();
        let mut suite = TestSuite::new(host.clone());
        for check in checks {
            let image = report.images[check.image].label();
            let mut case = TestCase::new(
                format!("{image} starts on {host}"),
                status_of(&check.finding, strict),
            );
            case.set_classname("wincimg.check-compat");
            if check.finding.outcome == Outcome::Warning && !strict {
                case.set_system_out(explained(&check.finding));
            }
            suite.add_test_case(case);
        }
        junit.add_test_suite(suite);
    }
    let xml = junit.to_string().map_err(io::Error::other)?;
    out.write_all(xml.as_bytes())
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
        .set_type(finding.rule.name())
        .set_message(finding.reason.clone())
        .set_description(explained(finding));
    status
}

fn explained(finding: &Finding) -> String {
    match &finding.fix {
        Some(fix) => format!("{}\nfix: {fix}", finding.reason),
        None => finding.reason.clone(),
    }
}
