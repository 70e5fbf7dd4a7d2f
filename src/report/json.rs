//! The report as JSON, in the shape that the command line's contract promises.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};

use super::plan::as_json;
use crate::rollout::{Check, Image, Rollout};
use crate::windows::version::WindowsVersion;

/// Writes the report as one JSON document.
pub fn write_json(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, &Document { rollout, strict })?;
    out.write_all(b"\n")
}

struct Document<'a> {
    rollout: &'a Rollout,
    strict: bool,
}

struct Checks<'a>(&'a Rollout);

struct CheckOf<'a>(Check<'a>);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Report", 4)?;
        document.serialize_field("compatible", &self.rollout.is_compatible(self.strict))?;
        document.serialize_field("summary", &self.rollout.summary)?;
        document.serialize_field("checks", &Checks(self.rollout))?;
        if let Some(plan) = &self.rollout.plan {
            document.serialize_field("plan", &as_json(self.rollout, plan))?;
        }
        document.end()
    }
}

impl Serialize for Checks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut checks = serializer.serialize_seq(None)?;
        for check in self.0.checks() {
            checks.serialize_element(&CheckOf(check))?;
        }
        checks.end()
    }
}

#[derive(serde::Serialize)]
struct HostPart<'a> {
    name: Option<&'a str>,
    build: Option<WindowsVersion>,
}

#[derive(serde::Serialize)]
struct ImagePart<'a> {
    reference: Option<&'a str>,
    build: Option<WindowsVersion>,
}

impl Serialize for CheckOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Check {
            host,
            image,
            workload,
            finding,
        } = self.0;
        let host = HostPart {
            name: host.and_then(|host| host.name.as_deref()),
            build: host.and_then(|host| Some(host.build?.version)),
        };
        let image = ImagePart {
            reference: image.and_then(|image| image.reference.as_deref()),
            build: finding
                .image_build
                .or_else(|| image.and_then(Image::version)),
        };
        let mut entry = serializer.serialize_struct("Check", 9)?;
        entry.serialize_field("host", &host)?;
        entry.serialize_field("image", &image)?;
        entry.serialize_field("workload", &workload.map(|workload| &workload.id))?;
        entry.serialize_field("isolation", finding.isolation.name())?;
        entry.serialize_field("verdict", finding.outcome.name())?;
        entry.serialize_field("rule", finding.rule)?;
        entry.serialize_field("reason", &finding.reason)?;
        entry.serialize_field("fix", &finding.advice())?;
        entry.serialize_field("commands", &finding.commands)?;
        entry.end()
    }
}
