//! The report as JSON, in the shape that the command line's contract promises.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};

use super::{Check, Report};

/// Writes the report as one JSON document.
pub fn write_json(report: &Report, strict: bool, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, &Document { report, strict })?;
    out.write_all(b"\n")
}

struct Document<'a> {
    report: &'a Report,
    strict: bool,
}

struct Checks<'a>(&'a Report);

struct CheckOf<'a>(&'a Report, &'a Check);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Report", 3)?;
        document.serialize_field("compatible", &self.report.is_compatible(self.strict))?;
        document.serialize_field("summary", &self.report.summary)?;
        document.serialize_field("checks", &Checks(self.report))?;
        document.end()
    }
}

impl Serialize for Checks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut checks = serializer.serialize_seq(Some(self.0.checks.len()))?;
        for check in &self.0.checks {
            checks.serialize_element(&CheckOf(self.0, check))?;
        }
        checks.end()
    }
}

#[derive(serde::Serialize)]
struct HostPart<'a> {
    name: Option<&'a str>,
    build: Option<crate::windows::version::WindowsVersion>,
}

#[derive(serde::Serialize)]
struct ImagePart<'a> {
    reference: Option<&'a str>,
    build: Option<crate::windows::version::WindowsVersion>,
}

impl Serialize for CheckOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(report, check) = self;
        let host = &report.hosts[check.host];
        let image = &report.images[check.image];
        let finding = &check.finding;
        let mut entry = serializer.serialize_struct("Check", 8)?;
        entry.serialize_field(
            "host",
            &HostPart {
                name: host.name.as_deref(),
                build: host.build.map(|build| build.version),
            },
        )?;
        entry.serialize_field(
            "image",
            &ImagePart {
                reference: image.reference.as_deref(),
                build: image.build,
            },
        )?;
        entry.serialize_field("workload", &None::<()>)?;
        entry.serialize_field("isolation", report.isolation.name())?;
        entry.serialize_field("verdict", finding.outcome.name())?;
        entry.serialize_field("rule", finding.rule.name())?;
        entry.serialize_field("reason", &finding.reason)?;
        entry.serialize_field("fix", &finding.fix)?;
        entry.end()
    }
}
