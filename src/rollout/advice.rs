//! What mends each finding: the plan's commands, so that no two pieces of advice contradict each other.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::commands::{Flags, inspect_command};
use super::finding::is_mendable;
use super::image::Image;
use super::plan::{Action, Pin, Plan, Way};
use super::{Finding, HostKind, Request, Rollout, Shared};
use crate::cluster::workloads::WorkloadId;
use crate::windows::compat::{Concern, Outcome, Rule};

impl Rollout {
    /// Plans what makes everything start, and gives every finding the plan's commands that mend it.
    pub fn advise(&mut self, request: &Request) -> Plan {
        let plan = Plan::new(request, self);
        let mut advisor = Advisor::new(&plan, &request.flags);
        for placement in &mut self.placements {
            for placed in &mut placement.images {
                let groups = placement.selection.groups.iter();
                for (group, finding) in groups.zip(&mut placed.findings) {
                    let about = About {
                        workload: placement.workload,
                        place: placed.image,
                        image: &self.images[placed.image],
                        kind: &self.kinds[group.kind],
                        hosts: &group.hosts,
                    };
                    *finding = advisor.better(finding, &about);
                }
            }
        }
        for notice in &mut self.notices {
            if notice.finding.rule == Concern::NoWindowsSelector.name()
                && let Some(workload) = notice.workload
            {
                let id = &self.workloads[workload].id;
                notice.finding = Rc::new(Finding {
                    commands: advisor.pin_to_windows(workload, id),
                    ..Finding::clone(&notice.finding)
                });
            }
        }
        plan
    }
}

/// What a finding is about.
struct About<'a> {
    workload: Option<usize>,
    place: usize,
    image: &'a Image,
    kind: &'a HostKind,
    hosts: &'a [u32],
}

/// Which actions of the plan mend a finding, by their places.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Mending {
    pin: Option<usize>,
    rebuild: Option<usize>,
    patches: BTreeSet<usize>,
}

/// Finds the actions for findings.
struct Advisor<'a> {
    plan: &'a Plan,
    flags: &'a Flags,
    pins: HashMap<usize, usize>,
    rebuilds: HashMap<usize, usize>,
    patches: HashMap<usize, usize>,
    known: HashMap<(*const Finding, usize, Mending), Shared>,
}

impl<'a> Advisor<'a> {
    fn new(plan: &'a Plan, flags: &'a Flags) -> Self {
        let mut advisor = Self {
            plan,
            flags,
            pins: HashMap::new(),
            rebuilds: HashMap::new(),
            patches: HashMap::new(),
            known: HashMap::new(),
        };
        for (place, action) in plan.actions.iter().enumerate() {
            match action {
                Action::Pin { workload, .. } => {
                    advisor.pins.insert(*workload, place);
                }
                Action::Rebuild { image, .. } => {
                    advisor.rebuilds.insert(*image, place);
                }
                Action::Patch { hosts, .. } => {
                    advisor
                        .patches
                        .extend(hosts.iter().map(|host| (*host, place)));
                }
            }
        }
        advisor
    }

    /// The finding with what to do about it.
    fn better(&mut self, finding: &Shared, about: &About<'_>) -> Shared {
        let mending = match finding.outcome {
            Outcome::Compatible | Outcome::Warning => return Rc::clone(finding),
            Outcome::Incompatible => self.mending(finding, about),
            Outcome::Unknown => Mending::default(),
        };
        let key = (Rc::as_ptr(finding), about.place, mending);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let better = Rc::new(self.advised(finding, about, &key.2));
        self.known.insert(key, Rc::clone(&better));
        better
    }

    fn mending(&self, finding: &Finding, about: &About<'_>) -> Mending {
        let pin = about
            .workload
            .and_then(|workload| self.pins.get(&workload).copied());
        if pin.is_some() || !is_mendable(finding, about.image, about.kind) {
            return Mending {
                pin,
                ..Mending::default()
            };
        }
        let is_about_revisions = [Rule::Baseline202002, Rule::RevisionMismatch2016]
            .iter()
            .any(|rule| rule.name() == finding.rule);
        let hosts = about.hosts.iter().filter(|_| is_about_revisions);
        Mending {
            pin: None,
            rebuild: self.rebuilds.get(&about.place).copied(),
            patches: hosts
                .filter_map(|host| self.patches.get(&(*host as usize)).copied())
                .collect(),
        }
    }

    fn advised(&self, finding: &Finding, about: &About<'_>, mending: &Mending) -> Finding {
        let Mending {
            pin,
            rebuild,
            patches,
        } = mending;
        let places = pin.iter().chain(rebuild).chain(patches);
        let actions: Vec<&Action> = places.map(|place| &self.plan.actions[*place]).collect();
        let commands = actions.iter().flat_map(|action| action.commands()).cloned();
        // What a verdict says by itself is about building again.
        let own = finding.fix.as_ref().filter(|_| rebuild.is_some());
        let fixes: Vec<String> = actions
            .iter()
            .map(|action| match (action, own) {
                (Action::Rebuild { .. }, Some(own)) if patches.is_empty() => own.clone(),
                _ => action.to_string(),
            })
            .collect();
        let mut advised = finding.clone();
        if !actions.is_empty() {
            advised.fix = Some(fixes.join(", and "));
            advised.commands = commands.collect();
        } else if finding.outcome == Outcome::Unknown {
            advised.commands = inspect_command(finding, about.image, self.flags);
        }
        advised
    }

    fn pin_to_windows(&self, workload: usize, id: &WorkloadId) -> Vec<String> {
        match self.pins.get(&workload) {
            Some(place) => self.plan.actions[*place].commands().to_vec(),
            // What runs is not ended for a warning.
            None if Way::of(id) == Some(Way::MakeAgain) => Vec::new(),
            None => Pin::to_windows().commands(id, self.flags),
        }
    }
}
