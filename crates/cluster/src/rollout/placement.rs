//! Hosts where a workload's pods can be scheduled, with the findings for each image.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use wincimg_windows::compat::{Isolation, VerdictOutcome};

use super::SharedFinding;
use super::finding::{CompatibilityChecker, Finding};
use crate::nodes::Node;
use crate::pod::PodTemplate;
use crate::scheduling::Scheduling;
use crate::workloads::Workload;

/// Images with the hosts where they could be scheduled.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Index into [`super::Rollout::workloads`]; absent for images given by themselves.
    pub workload: Option<usize>,
    /// The hosts.
    pub selection: Rc<HostSelection>,
    /// The images, each once.
    pub images: Vec<PlacedImage>,
}

/// One image of a placement.
#[derive(Debug, Clone)]
pub struct PlacedImage {
    /// Index into [`super::Rollout::images`].
    pub image: usize,
    /// Finding for each group of the selection.
    pub findings: Vec<SharedFinding>,
}

/// Hosts where pods can be scheduled.
#[derive(Debug, Clone, Default)]
pub struct HostSelection {
    /// Index of the host and of its group, in the order of the hosts.
    pub hosts: Vec<(u32, u32)>,
    /// The hosts by their kind.
    pub groups: Vec<HostKindGroup>,
}

/// Hosts of one kind.
#[derive(Debug, Clone)]
pub struct HostKindGroup {
    /// Index into [`super::Rollout::kinds`].
    pub kind: usize,
    /// Indexes into [`super::Rollout::hosts`].
    pub hosts: Vec<u32>,
}

impl Placement {
    /// Places images on every host.
    pub(super) fn for_images(
        images: Range<usize>,
        selection: &Rc<HostSelection>,
        isolation: Isolation,
        judge: &mut CompatibilityChecker<'_>,
    ) -> Self {
        Self {
            workload: None,
            selection: Rc::clone(selection),
            images: images
                .map(|image| {
                    let groups = selection.groups.iter();
                    PlacedImage {
                        image,
                        findings: groups
                            .map(|group| {
                                let isolation = judge.isolation_of(group.kind, image, isolation);
                                judge.finding(group.kind, image, isolation)
                            })
                            .collect(),
                    }
                })
                .collect(),
        }
    }

    /// Places the images of a workload on the hosts where its pods can be scheduled.
    pub(super) fn for_workload(
        index: usize,
        workload: &Workload,
        places: &BTreeMap<&str, usize>,
        selection: &Rc<HostSelection>,
        usual: Isolation,
        judge: &mut CompatibilityChecker<'_>,
    ) -> Self {
        let template = &workload.template;
        // An operator may add fields to the pods of a kind of its own.
        let refused = template.refusal().filter(|_| workload.id.group.is_empty());
        let mut images: Vec<PlacedImage> = Vec::with_capacity(template.containers.len());
        for container in &template.containers {
            let Some(&image) = places.get(container.image.as_str()) else {
                continue;
            };
            let isolations = selection.groups.iter().map(|group| {
                let supported = judge.kinds[group.kind].hyperv;
                let isolation = template.isolation(container, supported, usual);
                (group.kind, isolation)
            });
            let isolations: Vec<(usize, Isolation)> = isolations.collect();
            let starts_on_some = isolations.iter().any(|&(kind, isolation)| {
                let finding = judge.finding(kind, image, isolation);
                finding.outcome != VerdictOutcome::Incompatible
            });
            let machine = template.machine_build();
            let class = template
                .missing_class()
                .map(|class| (class, starts_on_some));
            let findings: Vec<SharedFinding> = isolations
                .into_iter()
                .map(|(kind, isolation)| {
                    if let Some((about, reason, fix)) = &refused {
                        return judge.finding_of_refusal(*about, reason, fix, isolation);
                    }
                    let runtime = judge.kinds[kind].runtime;
                    if let Some(handler) = template.refused_handler(runtime) {
                        return judge.finding_of_handler(handler, isolation);
                    }
                    match class {
                        Some(class) => judge.finding_of_class(kind, image, isolation, class),
                        None => judge.finding_in_machine(kind, image, isolation, machine),
                    }
                })
                .collect();
            let is_known = images.iter().any(|placed| {
                let mut pairs = placed.findings.iter().zip(&findings);
                placed.image == image && pairs.all(|(a, b)| Rc::ptr_eq(a, b))
            });
            if !is_known {
                images.push(PlacedImage { image, findings });
            }
        }
        Self {
            workload: Some(index),
            selection: Rc::clone(selection),
            images,
        }
    }

    /// Returns true if one of its images does not start on the hosts of a group.
    pub(super) fn fails_in(&self, group: usize) -> bool {
        let mut images = self.images.iter();
        images.any(|placed| placed.findings[group].outcome == VerdictOutcome::Incompatible)
    }

    /// All findings, each kind of host once.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.images
            .iter()
            .flat_map(|placed| placed.findings.iter().map(Rc::as_ref))
    }
}

/// Selects hosts for pods, once for pods with equal constraints.
pub(super) struct Selections<'a> {
    hosts: &'a [Node],
    kind_of: Vec<usize>,
    known: HashMap<Scheduling, Rc<HostSelection>>,
}

impl<'a> Selections<'a> {
    pub(super) fn new(hosts: &'a [Node], judge: &CompatibilityChecker<'_>) -> Self {
        Self {
            hosts,
            kind_of: judge.kind_of.clone(),
            known: HashMap::new(),
        }
    }

    pub(super) fn all(&self) -> Rc<HostSelection> {
        Rc::new(self.collect(|_| true))
    }

    /// The hosts where a pod can be scheduled and that do not refuse it.
    pub(super) fn select(&mut self, template: &PodTemplate) -> Rc<HostSelection> {
        if template.is_refused_by_windows() {
            return Rc::default();
        }
        let scheduling = &template.scheduling;
        if let Some(known) = self.known.get(scheduling) {
            return Rc::clone(known);
        }
        let selection = Rc::new(self.collect(|host| scheduling.admits(host)));
        self.known.insert(scheduling.clone(), Rc::clone(&selection));
        selection
    }

    fn collect(&self, admits: impl Fn(&Node) -> bool) -> HostSelection {
        let mut selection = HostSelection::default();
        let mut group_of: HashMap<usize, usize> = HashMap::new();
        for ((index, host), &kind) in (0..).zip(self.hosts).zip(&self.kind_of) {
            if !admits(host) {
                continue;
            }
            let groups = &mut selection.groups;
            let group = *group_of.entry(kind).or_insert_with(|| {
                groups.push(HostKindGroup {
                    kind,
                    hosts: Vec::new(),
                });
                groups.len() - 1
            });
            groups[group].hosts.push(index);
            selection
                .hosts
                .push((index, u32::try_from(group).unwrap_or(u32::MAX)));
        }
        selection
    }
}
