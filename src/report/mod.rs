//! Verdicts about many hosts and images, and the forms in which people and programs read them.

mod json;
mod junit;
mod markdown;
mod text;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use crate::windows::compat::{HostBuild, Isolation, Outcome, Rule, judge};
use crate::windows::version::WindowsVersion;

pub use json::write_json;
pub use junit::write_junit;
pub use markdown::write_markdown;
pub use text::write_text;

/// A host that images are held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The node's name, where it has one.
    pub name: Option<String>,
    /// What it runs; absent where that could not be read.
    pub build: Option<HostBuild>,
}

/// An image that hosts are to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it is, if it came from somewhere.
    pub reference: Option<String>,
    /// What it was built on; absent where that could not be read.
    pub build: Option<WindowsVersion>,
}

/// What was found about one kind of host and one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The answer.
    pub outcome: Outcome,
    /// The rule behind it.
    pub rule: Rule,
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// One host, one image, and what was found.
#[derive(Debug, Clone)]
pub struct Check {
    /// Index into [`Report::hosts`].
    pub host: usize,
    /// Index into [`Report::images`].
    pub image: usize,
    /// Shared by all checks that ask the same question.
    pub finding: Rc<Finding>,
}

/// How many checks came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Summary {
    /// Will start.
    pub compatible: usize,
    /// Will start, but someone should look.
    pub warning: usize,
    /// Will not start.
    pub incompatible: usize,
    /// Nobody can tell.
    pub unknown: usize,
}

/// Every host against every image.
#[derive(Debug, Clone)]
pub struct Report {
    /// Down the matrix.
    pub hosts: Vec<Host>,
    /// Across the matrix.
    pub images: Vec<Image>,
    /// What kind of containers.
    pub isolation: Isolation,
    /// Host by host, in the order of `images`.
    pub checks: Vec<Check>,
    /// How they came out.
    pub summary: Summary,
}

impl Report {
    /// Judges every image on every host.
    pub fn new(hosts: Vec<Host>, images: Vec<Image>, isolation: Isolation) -> Self {
        let mut known: HashMap<(Option<HostBuild>, Option<WindowsVersion>), Rc<Finding>> =
            HashMap::new();
        let mut checks = Vec::with_capacity(hosts.len() * images.len());
        let mut summary = Summary::default();
        for (host_index, host) in hosts.iter().enumerate() {
            for (image_index, image) in images.iter().enumerate() {
                let finding = known
                    .entry((host.build, image.build))
                    .or_insert_with(|| Rc::new(Finding::of(host.build, image.build, isolation)));
                summary.count(finding.outcome);
                checks.push(Check {
                    host: host_index,
                    image: image_index,
                    finding: Rc::clone(finding),
                });
            }
        }
        Self {
            hosts,
            images,
            isolation,
            checks,
            summary,
        }
    }

    /// Whether everything will start; `strict` wants it without warnings too.
    pub fn is_compatible(&self, strict: bool) -> bool {
        self.summary.incompatible == 0
            && self.summary.unknown == 0
            && !(strict && self.summary.warning > 0)
    }

    /// The checks that are not green, those that share host build, image and finding as one.
    fn problems(&self) -> Vec<Problem<'_>> {
        let mut problems: Vec<Problem<'_>> = Vec::new();
        let mut known: HashMap<(usize, *const Finding), usize> = HashMap::new();
        for check in &self.checks {
            if check.finding.outcome == Outcome::Compatible {
                continue;
            }
            let index = *known
                .entry((check.image, Rc::as_ptr(&check.finding)))
                .or_insert_with(|| {
                    problems.push(Problem {
                        hosts: Vec::new(),
                        image: &self.images[check.image],
                        finding: &check.finding,
                    });
                    problems.len() - 1
                });
            problems[index].hosts.push(&self.hosts[check.host]);
        }
        problems
    }
}

impl Finding {
    fn of(host: Option<HostBuild>, image: Option<WindowsVersion>, isolation: Isolation) -> Self {
        let verdict = judge(host, image, isolation);
        Self {
            outcome: verdict.outcome,
            rule: verdict.rule,
            reason: verdict.reason(),
            fix: verdict.fix.map(|fix| fix.to_string()),
        }
    }
}

impl Summary {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Compatible => self.compatible += 1,
            Outcome::Warning => self.warning += 1,
            Outcome::Incompatible => self.incompatible += 1,
            Outcome::Unknown => self.unknown += 1,
        }
    }
}

impl fmt::Display for Summary {
    /// `3 checks: 2 compatible, 1 incompatible`; what did not occur is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.compatible, Outcome::Compatible),
            (self.warning, Outcome::Warning),
            (self.incompatible, Outcome::Incompatible),
            (self.unknown, Outcome::Unknown),
        ];
        let total: usize = parts.iter().map(|(count, _)| count).sum();
        write!(f, "{total} check{}", if total == 1 { "" } else { "s" })?;
        let mut separator = ": ";
        for (count, outcome) in parts {
            if count > 0 {
                write!(f, "{separator}{count} {}", outcome.name())?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Several hosts with one problem.
struct Problem<'a> {
    hosts: Vec<&'a Host>,
    image: &'a Image,
    finding: &'a Finding,
}

impl Problem<'_> {
    /// The first few hosts by name, and how many more there are.
    fn hosts_in_words(&self) -> String {
        const NAMED: usize = 5;
        let mut words: Vec<String> = self
            .hosts
            .iter()
            .take(NAMED)
            .map(|host| host.label())
            .collect();
        if self.hosts.len() > NAMED {
            words.push(format!("{} more", self.hosts.len() - NAMED));
        }
        words.join(", ")
    }
}

impl Host {
    /// What a person calls this host.
    pub fn label(&self) -> String {
        match (&self.name, self.build) {
            (Some(name), Some(build)) => format!("{name} ({build})"),
            (Some(name), None) => name.clone(),
            (None, Some(build)) => build.to_string(),
            (None, None) => "?".to_owned(),
        }
    }
}

impl Image {
    /// What a person calls this image.
    pub fn label(&self) -> String {
        match (&self.reference, self.build) {
            (Some(reference), Some(build)) => format!("{reference} ({build})"),
            (Some(reference), None) => reference.clone(),
            (None, Some(build)) => build.to_string(),
            (None, None) => "?".to_owned(),
        }
    }
}
