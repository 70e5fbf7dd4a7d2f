//! What mends each finding: the plan's commands, so that no two pieces of advice contradict each other.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use wincimg_windows::compat::{Concern, Outcome};

use super::commands::{Flags, inspect_command};
use super::finding::is_mendable;
use super::image::Image;
use super::plan::{Action, Pin, Plan, Way};
use super::{Finding, HostKind, Request, Rollout, Shared};
use crate::nodes::Node;
use crate::workloads::{Workload, WorkloadId};

/// How many actions one finding lists; where more go together, it points to the plan.
pub(super) const MOST_ACTIONS: usize = 8;

impl Rollout {
    /// Plans what makes everything start, and gives every finding the plan's commands that mend it.
    pub fn advise(&mut self, request: &Request) -> Plan {
        let plan = Plan::new(request, self);
        let mut advisor = Advisor::new(&plan, self, &request.flags);
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
                let Workload { id, template, .. } = &self.workloads[workload];
                if template.missing_class().is_some() {
                    continue;
                }
                notice.finding = Rc::new(Finding {
                    commands: advisor.pin_to_windows(workload, id, &self.hosts),
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

/// Finds the actions for findings.
struct Advisor<'a> {
    plan: &'a Plan,
    flags: &'a Flags,
    pins: HashMap<usize, usize>,
    rebuilds: HashMap<usize, usize>,
    patches: HashMap<usize, usize>,
    /// For each action those that go with it, in their order: one of them alone would break what
    /// starts today.
    together: Vec<BTreeSet<usize>>,
    /// Each action in full, for findings about something else.
    titles: Vec<String>,
    /// What goes with these actions, all told. They live as long as this, so that their addresses tell
    /// them apart.
    united: HashMap<BTreeSet<usize>, Rc<Mending>>,
    known: HashMap<(*const Finding, usize, *const Mending), Shared>,
}

/// Actions that mend something.
type Mending = BTreeSet<usize>;

impl<'a> Advisor<'a> {
    fn new(plan: &'a Plan, rollout: &Rollout, flags: &'a Flags) -> Self {
        let mut advisor = Self {
            plan,
            flags,
            pins: HashMap::new(),
            rebuilds: HashMap::new(),
            patches: HashMap::new(),
            together: (0..plan.actions.len())
                .map(|place| BTreeSet::from([place]))
                .collect(),
            titles: plan
                .actions
                .iter()
                .map(|action| action.title(rollout))
                .collect(),
            united: HashMap::new(),
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
        if !advisor.patches.is_empty() {
            advisor.link(rollout);
        }
        advisor
    }

    /// Puts actions together: images that are built for a patched host with its patch, and the pins
    /// that keep workloads out of their way.
    fn link(&mut self, rollout: &Rollout) {
        let mut of_pins: Vec<(usize, BTreeSet<usize>)> = Vec::new();
        for placement in &rollout.placements {
            let images = placement.images.iter();
            let rebuilt: BTreeSet<usize> = images
                .filter_map(|placed| self.rebuilds.get(&placed.image).copied())
                .collect();
            let hosts = placement.selection.hosts.iter();
            let patched =
                hosts.filter_map(|(host, _)| self.patches.get(&(*host as usize)).copied());
            let touched: BTreeSet<usize> = patched.chain(rebuilt.iter().copied()).collect();
            let workload = placement.workload;
            let Some(pin) = workload.and_then(|workload| self.pins.get(&workload).copied()) else {
                // Everything of it meets on its hosts.
                if touched.len() > rebuilt.len() {
                    self.unite(&touched);
                }
                continue;
            };
            of_pins.push((pin, touched));
            let Action::Pin { hosts, .. } = &self.plan.actions[pin] else {
                continue;
            };
            let patched = hosts
                .iter()
                .filter_map(|host| self.patches.get(host).copied());
            let met: BTreeSet<usize> = patched.chain(rebuilt.iter().copied()).collect();
            if met.len() > rebuilt.len() {
                self.unite(&met);
            }
        }
        for (pin, touched) in of_pins {
            for set in &mut self.together {
                if !set.is_disjoint(&touched) {
                    set.insert(pin);
                }
            }
        }
    }

    fn unite(&mut self, places: &BTreeSet<usize>) {
        let all: BTreeSet<usize> = places
            .iter()
            .flat_map(|place| self.together[*place].iter().copied())
            .collect();
        for place in &all {
            self.together[*place].clone_from(&all);
        }
    }

    /// The finding with what to do about it.
    fn better(&mut self, finding: &Shared, about: &About<'_>) -> Shared {
        let mending = match finding.outcome {
            Outcome::Compatible | Outcome::Warning => return Rc::clone(finding),
            Outcome::Incompatible => self.mending(finding, about),
            Outcome::Unknown => self.united(BTreeSet::new()),
        };
        let key = (Rc::as_ptr(finding), about.place, Rc::as_ptr(&mending));
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let better = Rc::new(self.advised(finding, about, &mending));
        self.known.insert(key, Rc::clone(&better));
        better
    }

    /// The actions that mend a finding, and break nothing when they are carried out alone.
    fn mending(&mut self, finding: &Finding, about: &About<'_>) -> Rc<Mending> {
        let workload = about.workload;
        let places = if let Some(pin) = workload.and_then(|workload| self.pins.get(&workload)) {
            BTreeSet::from([*pin])
        } else if is_mendable(finding, about.image, about.kind) {
            let hosts = about.hosts.iter();
            let patches = hosts.filter_map(|host| self.patches.get(&(*host as usize)));
            let rebuild = self.rebuilds.get(&about.place);
            rebuild.into_iter().chain(patches).copied().collect()
        } else {
            BTreeSet::new()
        };
        self.united(places)
    }

    /// Actions, with those that go with them. A pin goes alone: nothing else need be done for its
    /// workload.
    fn united(&mut self, places: BTreeSet<usize>) -> Rc<Mending> {
        let (plan, together) = (self.plan, &self.together);
        let united = self.united.entry(places);
        let united = united.or_insert_with_key(|places| {
            let mut all = BTreeSet::new();
            for &place in places {
                match plan.actions[place] {
                    Action::Pin { .. } => all.extend([place]),
                    Action::Rebuild { .. } | Action::Patch { .. } => all.extend(&together[place]),
                }
            }
            Rc::new(all)
        });
        Rc::clone(united)
    }

    fn advised(&self, finding: &Finding, about: &About<'_>, mending: &BTreeSet<usize>) -> Finding {
        let mut advised = finding.clone();
        if mending.len() > MOST_ACTIONS {
            advised.fix = Some(format!(
                "carry out the plan, which --plan prints: {} of its actions go together here",
                mending.len()
            ));
            advised.commands.clear();
        } else if !mending.is_empty() {
            let is_alone = mending.len() == 1;
            let fixes: Vec<String> = mending
                .iter()
                .map(|place| self.in_words(*place, finding, about, is_alone))
                .collect();
            advised.fix = Some(fixes.join(", and "));
            let actions = mending.iter().map(|place| &self.plan.actions[*place]);
            advised.commands = actions.flat_map(Action::commands).cloned().collect();
        } else if finding.outcome == Outcome::Unknown {
            advised.commands = inspect_command(finding, about.image, self.flags);
        }
        advised
    }

    /// An action, as a finding says it.
    fn in_words(
        &self,
        place: usize,
        finding: &Finding,
        about: &About<'_>,
        is_alone: bool,
    ) -> String {
        let action = &self.plan.actions[place];
        match action {
            Action::Rebuild { image, .. } if *image == about.place => {
                // What a verdict says by itself is about building again.
                let own = finding.fix.as_ref().filter(|_| is_alone);
                let words = own.cloned().unwrap_or_else(|| action.to_string());
                words + about.image.to_name_again()
            }
            Action::Pin { workload, .. } if about.workload == Some(*workload) => action.to_string(),
            Action::Rebuild { .. } | Action::Pin { .. } => self.titles[place].clone(),
            Action::Patch { .. } => action.to_string(),
        }
    }

    fn pin_to_windows(&self, workload: usize, id: &WorkloadId, hosts: &[Node]) -> Vec<String> {
        match self.pins.get(&workload) {
            Some(place) => self.plan.actions[*place].commands().to_vec(),
            // What runs is not ended for a warning.
            None if Way::of(id) == Some(Way::MakeAgain) => Vec::new(),
            None => Pin::to_windows(hosts).commands(id, self.flags),
        }
    }
}
