//! The summary at the top of every report: the status of the workloads, the worst first, each with
//! its fix.

use wincimg_cluster::rollout::{CheckCounts, OutcomeCounts, Subject, is_deciding_rule};

use crate::report::prelude::*;

const WORKLOAD: &str = "workload";
const IMAGE: &str = "image";

/// One part of the summary: the number of subjects with a status, as text, and their names.
pub(super) struct AnswerPart {
    pub(super) starts: StartStatus,
    /// `2 workloads start nowhere`.
    pub(super) words: String,
    /// Names of the most urgent subjects.
    pub(super) names: Vec<String>,
}

/// Workloads with the same status and the same fix.
pub(super) struct WorkloadGroup<'a> {
    pub(super) starts: StartStatus,
    /// Indexes of workloads, in their order.
    pub(super) workloads: Vec<usize>,
    /// Their nodes, if all agree.
    nodes: Option<NodeTally>,
    /// Each image once.
    pub(super) causes: Vec<Cause<'a>>,
    pub(super) fixes: Vec<FixSuggestion<'a>>,
}

/// Number of the nodes that take a workload's pods, by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NodeTally {
    all: usize,
    starts_on: usize,
    unknown_on: usize,
}

/// Advice, and its commands.
pub(super) type FixSuggestion<'a> = (&'a str, Vec<&'a str>);

/// The cause that keeps a workload from starting, or a warning.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Cause<'a> {
    /// Index of the image; absent if only the workload is affected.
    pub(super) image: Option<usize>,
    pub(super) finding: &'a Finding,
    /// Indexes of hosts; none if it is about no host.
    pub(super) hosts: Vec<u32>,
    /// Number of other hosts on which the image has another finding with the same outcome.
    pub(super) others: usize,
}

/// The summary of workloads, and of directly named images: its nonempty parts, the worst first.
pub(super) fn answers(rollout: &Rollout) -> Vec<Vec<AnswerPart>> {
    let workloads = names::workloads(rollout);
    let mut of_workloads: HashMap<StartStatus, Vec<String>> = HashMap::new();
    let mut of_images: HashMap<StartStatus, Vec<String>> = HashMap::new();
    for outcome in rollout.outcomes() {
        let (own, name) = match outcome.subject {
            Subject::Workload(index) => (&mut of_workloads, workloads[index].clone()),
            Subject::Image(index) => (&mut of_images, rollout.images[index].label()),
        };
        own.entry(outcome.starts).or_default().push(name);
    }
    [(WORKLOAD, of_workloads), (IMAGE, of_images)]
        .into_iter()
        .filter(|(_, named)| !named.is_empty())
        .map(|(noun, mut named)| {
            let mut is_first = true;
            let parts = StartStatus::ALL.into_iter().filter_map(|starts| {
                let names = named.remove(&starts)?;
                let is_first = std::mem::take(&mut is_first);
                let words = part_in_words(starts, names.len(), noun, is_first);
                Some(AnswerPart {
                    starts,
                    words,
                    names,
                })
            });
            parts.collect()
        })
        .collect()
}

/// The summary as a heading, without names.
pub(super) fn headline(rollout: &Rollout) -> String {
    let answers = answers(rollout);
    let lines = answers.iter().map(|parts| {
        let words = parts.iter().map(|part| part.words.as_str());
        joined(words, " · ")
    });
    match joined(lines, "; ") {
        lines if lines.is_empty() => without_answers(rollout),
        lines => lines,
    }
}

/// The summary if no workload and no image is for Windows.
pub(super) fn without_answers(rollout: &Rollout) -> String {
    match rollout.strays() {
        0 => "Nothing to check".to_owned(),
        strays => {
            let workloads = count(strays, WORKLOAD);
            format!("{workloads} for Linux can land on Windows nodes")
        }
    }
}

/// Tally of the workloads without the simulation, if there is one.
pub(super) fn current_headline(rollout: &Rollout) -> Option<String> {
    let tally = rollout.as_it_is?;
    let tally = format_tally(&tally, noun(rollout));
    Some(format!("Without the simulation: {tally}"))
}

/// `2 workloads start nowhere · 14 are safe`.
pub(super) fn format_tally(tally: &OutcomeCounts, noun: &str) -> String {
    let parts = StartStatus::ALL
        .into_iter()
        .filter(|starts| tally.get(*starts) > 0)
        .enumerate()
        .map(|(place, starts)| part_in_words(starts, tally.get(starts), noun, place == 0));
    joined(parts, " · ")
}

/// `3 checks: 2 compatible, 1 incompatible`, without zero counts.
pub(super) fn checks_in_words(counts: &CheckCounts) -> String {
    let parts = [
        (counts.compatible, VerdictOutcome::Compatible),
        (counts.warning, VerdictOutcome::Warning),
        (counts.incompatible, VerdictOutcome::Incompatible),
        (counts.unknown, VerdictOutcome::Unknown),
    ];
    let total = count(parts.iter().map(|(number, _)| number).sum(), "check");
    match tally(parts.map(|(number, outcome)| (number, outcome.name())), "") {
        none if none.is_empty() => total,
        parts => format!("{total}: {parts}"),
    }
}

/// Noun for the counted subjects.
pub(super) fn noun(rollout: &Rollout) -> &'static str {
    if rollout.workloads.is_empty() {
        IMAGE
    } else {
        WORKLOAD
    }
}

impl AnswerPart {
    /// The text, with the first few names of the most urgent subjects.
    pub(super) fn with_names(&self) -> String {
        match self.starts {
            StartStatus::Nowhere | StartStatus::Unplaced | StartStatus::Unknown => {
                format!("{}: {}", self.words, in_words(self.names.iter().cloned()))
            }
            StartStatus::Somewhere | StartStatus::Warned | StartStatus::Everywhere => {
                self.words.clone()
            }
        }
    }
}

fn part_in_words(starts: StartStatus, number: usize, noun: &str, is_first: bool) -> String {
    let subject = if is_first {
        count(number, noun)
    } else {
        number.to_string()
    };
    let (one, several) = match starts {
        StartStatus::Nowhere => ("starts nowhere", "start nowhere"),
        StartStatus::Unplaced => ("lands on no node", "land on no node"),
        StartStatus::Somewhere if noun == IMAGE => {
            ("does not start on some nodes", "do not start on some nodes")
        }
        StartStatus::Somewhere => (
            "can land where it does not start",
            "can land where they do not start",
        ),
        StartStatus::Unknown => ("cannot be judged", "cannot be judged"),
        StartStatus::Warned => ("starts with a warning", "start with warnings"),
        StartStatus::Everywhere => ("is safe", "are safe"),
    };
    format!("{subject} {}", if number == 1 { one } else { several })
}

/// Workloads that require an action or a closer look, the worst first.
pub(super) fn workload_groups(rollout: &Rollout) -> Vec<WorkloadGroup<'_>> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut cases: Vec<WorkloadGroup<'_>> = Vec::new();
    for (workload, outcome) in workload_outcomes(rollout) {
        if !outcome.starts.needs_action() {
            continue;
        }
        let found = summarize(causes(rollout, &outcome, workload), outcome.starts);
        let fixes = fixes(&found);
        let commands = fixes.iter().map(|(_, commands)| commands.clone());
        let commands: Vec<Vec<&str>> = commands.collect();
        // A command says what to do; without one, the text has to.
        let words = fixes.iter().filter(|(_, commands)| commands.is_empty());
        let words: Vec<&str> = words.map(|(fix, _)| *fix).collect();
        let key = (outcome.starts, commands, words);
        let nodes = Some(NodeTally::of(&outcome));
        if let Some(&place) = places.get(&key) {
            let case = &mut cases[place];
            case.workloads.push(workload);
            case.nodes = case.nodes.filter(|known| Some(*known) == nodes);
            for cause in found {
                case.add_cause(cause);
            }
            for (known, own) in case.fixes.iter_mut().zip(fixes) {
                // Next to others, an image is called by its name, not "the image".
                if own.0.len() > known.0.len() {
                    *known = own;
                }
            }
            continue;
        }
        places.insert(key, cases.len());
        cases.push(WorkloadGroup {
            starts: outcome.starts,
            workloads: vec![workload],
            nodes,
            causes: found,
            fixes,
        });
    }
    let mut cases = merge_alike(rollout, cases);
    cases.sort_by_key(|case| case.starts);
    cases
}

/// Merges groups that only differ in the workloads that their commands change.
fn merge_alike<'a>(rollout: &Rollout, cases: Vec<WorkloadGroup<'a>>) -> Vec<WorkloadGroup<'a>> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut merged: Vec<WorkloadGroup<'a>> = Vec::new();
    for case in cases {
        let whys: Vec<String> = case.causes.iter().map(|it| it.describe(rollout)).collect();
        let fixes: Vec<&str> = case.fixes.iter().map(|(fix, _)| *fix).collect();
        let key = (case.starts, case.nodes, whys, fixes);
        let Some(&place) = places.get(&key) else {
            places.insert(key, merged.len());
            merged.push(case);
            continue;
        };
        let known = &mut merged[place];
        known.workloads.extend(case.workloads);
        for ((_, known), (_, own)) in known.fixes.iter_mut().zip(case.fixes) {
            let new = own.into_iter().filter(|command| !known.contains(command));
            let new: Vec<&str> = new.collect();
            known.extend(new);
        }
    }
    merged
}

/// Causes of a workload's status, in short: for each image and outcome the finding on most nodes,
/// and the number of the other nodes. Nodes of one rule are listed apart where commands fix only some
/// of them.
pub(super) fn summarize(mut causes: Vec<Cause<'_>>, starts: StartStatus) -> Vec<Cause<'_>> {
    if starts.needs_action() {
        causes.retain(|cause| {
            cause.finding.outcome != VerdictOutcome::Warning || is_deciding_rule(cause.finding.rule)
        });
    }
    causes.sort_by_key(|cause| {
        let nodes = cause.hosts.len();
        std::cmp::Reverse((cause.finding.outcome, nodes))
    });
    let mut once: Vec<Cause<'_>> = Vec::new();
    for cause in causes {
        let has_other_fix = |it: &Cause<'_>| {
            let (known, own) = (&it.finding.commands, &cause.finding.commands);
            it.finding.rule == cause.finding.rule && known.is_empty() != own.is_empty()
        };
        let alike = |it: &&mut Cause<'_>| {
            it.image.is_some()
                && it.image == cause.image
                && it.finding.outcome == cause.finding.outcome
                && !has_other_fix(it)
        };
        match once.iter_mut().find(alike) {
            Some(known) if known.finding.rule == cause.finding.rule => {
                known.hosts.extend(cause.hosts);
            }
            Some(known) => known.others += cause.hosts.len(),
            None => once.push(cause),
        }
    }
    once
}

/// Causes that keep a workload from starting everywhere, the worst first, and warnings.
pub(super) fn causes<'a>(
    rollout: &'a Rollout,
    outcome: &WorkloadOutcome<'a>,
    workload: usize,
) -> Vec<Cause<'a>> {
    let notices = rollout.notices.iter();
    let mut causes: Vec<Cause<'a>> = notices
        .filter(|notice| notice.workload == Some(workload))
        .map(|notice| Cause {
            image: notice.image,
            finding: &notice.finding,
            hosts: Vec::new(),
            others: 0,
        })
        .collect();
    for placed in &outcome.placement.images {
        let own = causes.len();
        let groups = outcome.placement.selection.groups.iter();
        for (group, finding) in groups.zip(&placed.findings) {
            if finding.outcome == VerdictOutcome::Compatible {
                continue;
            }
            let is_alike = |it: &Cause<'_>| *it.finding == **finding;
            // What is wrong with a pod is said of one of its images.
            if finding.is_of_pod && causes[..own].iter().any(is_alike) {
                continue;
            }
            match causes[own..].iter_mut().find(|it| is_alike(it)) {
                Some(cause) => cause.hosts.extend(&group.hosts),
                None => causes.push(Cause {
                    image: Some(placed.image),
                    finding,
                    hosts: group.hosts.clone(),
                    others: 0,
                }),
            }
        }
    }
    causes.sort_by_key(|cause| {
        let decides = is_deciding_rule(cause.finding.rule);
        std::cmp::Reverse((cause.finding.outcome, decides))
    });
    causes
}

impl Cause<'_> {
    /// `registry.example/web:1.4 on 29 nodes such as win-a: REASON`.
    pub(super) fn describe(&self, rollout: &Rollout) -> String {
        let mut words = match self.image {
            Some(image) => rollout.images[image].label(),
            None => return self.finding.reason.clone(),
        };
        if !self.hosts.is_empty() {
            words.push_str(" on ");
            let hosts: Vec<usize> = self.hosts.iter().map(|&host| host as usize).collect();
            words.push_str(&hosts_in_words(rollout, &hosts));
        }
        if self.others == 0 {
            return format!("{words}: {}", self.finding.reason);
        }
        let others = count(self.others, "more node");
        let reason = &self.finding.reason;
        format!("{words}: {reason}; other reasons on {others}")
    }
}

/// Each advice once, with its command.
pub(super) fn fixes<'a>(causes: &[Cause<'a>]) -> Vec<FixSuggestion<'a>> {
    let mut fixes: Vec<FixSuggestion<'a>> = Vec::new();
    for cause in causes {
        let Some(fix) = &cause.finding.fix else {
            continue;
        };
        let commands: Vec<&str> = cause.finding.commands.iter().map(String::as_str).collect();
        let is_known = fixes
            .iter()
            .any(|(known, own)| *own == commands && (!own.is_empty() || known == fix));
        if !is_known {
            fixes.push((fix.as_str(), commands));
        }
    }
    fixes
}

impl<'a> WorkloadGroup<'a> {
    /// Adds a cause, or its hosts to a known one for the same image and reason.
    fn add_cause(&mut self, cause: Cause<'a>) {
        let alike = |it: &&mut Cause<'_>| {
            it.image == cause.image && it.finding.reason == cause.finding.reason
        };
        let Some(known) = self.causes.iter_mut().find(alike) else {
            self.causes.push(cause);
            return;
        };
        let hosts = cause.hosts.into_iter();
        let new = hosts.filter(|host| !known.hosts.contains(host));
        let new: Vec<u32> = new.collect();
        known.hosts.extend(new);
    }

    /// `shop/web`, with the number of the others.
    pub(super) fn subject_names(&self, names: &[String]) -> String {
        in_words(self.workloads.iter().map(|&index| names[index].clone()))
    }

    /// `deploy.yaml:3`, of those that no cluster printed.
    pub(super) fn manifests(&self, rollout: &Rollout) -> Vec<String> {
        let workloads = self.workloads.iter();
        let manifests = workloads.filter_map(|own| rollout.workloads[*own].manifest());
        let mut manifests: Vec<String> = manifests.map(ToString::to_string).collect();
        manifests.dedup();
        manifests
    }

    /// `starts nowhere, on none of 4 nodes`.
    pub(super) fn describe_starts(&self) -> String {
        let number = self.workloads.len();
        match self.nodes {
            Some(nodes) => nodes.describe(self.starts, number),
            None => without_number(self.starts, number),
        }
    }

    /// The reason, the first few images, and the number of others.
    pub(super) fn reasons(&self, rollout: &Rollout) -> (Vec<(String, &'static str)>, usize) {
        let shown = self.causes.iter().take(SHOWN).map(|cause| {
            let rule = cause.finding.rule;
            (cause.describe(rollout), rule)
        });
        (shown.collect(), self.causes.len().saturating_sub(SHOWN))
    }
}

/// Number of reasons to show.
const SHOWN: usize = 3;

fn without_number(starts: StartStatus, number: usize) -> String {
    let words = part_in_words(starts, number, WORKLOAD, false);
    words
        .split_once(' ')
        .map_or("", |(_, what)| what)
        .to_owned()
}

/// `starts nowhere, on none of 4 nodes`.
pub(super) fn outlook(outcome: &WorkloadOutcome<'_>) -> String {
    let (starts, nodes, warned_on) = (outcome.starts, outcome.nodes, outcome.warned_on);
    if starts == StartStatus::Warned && warned_on < nodes {
        let what = without_number(starts, 1);
        return format!("{what} on {warned_on} of {}", count(nodes, "node"));
    }
    NodeTally::of(outcome).describe(starts, 1)
}

impl NodeTally {
    fn of(outcome: &WorkloadOutcome<'_>) -> Self {
        Self {
            all: outcome.nodes,
            starts_on: outcome.starts_on,
            unknown_on: outcome.unknown_on,
        }
    }

    /// The status of this number of workloads, and on how many nodes they have it.
    fn describe(self, starts: StartStatus, number: usize) -> String {
        let what = without_number(starts, number);
        let of_nodes = count(self.all, "node");
        match starts {
            _ if self.all == 0 => what,
            StartStatus::Nowhere if self.all == 1 => {
                let them = if number == 1 { "it" } else { "them" };
                format!("{what}; 1 node takes {them}")
            }
            StartStatus::Nowhere | StartStatus::Unplaced => {
                format!("{what}, on none of {of_nodes}")
            }
            StartStatus::Unknown => format!("{what} on {} of {of_nodes}", self.unknown_on),
            StartStatus::Somewhere => format!("{what}; {}", self.describe_risk(number)),
            StartStatus::Warned | StartStatus::Everywhere => format!("{what} on {of_nodes}"),
        }
    }

    /// `it starts on 2 of 4 nodes`; nodes of unknown outcome do not make the others safe.
    fn describe_risk(self, number: usize) -> String {
        let (starts, fails) = if number == 1 {
            ("it starts", "it does not start")
        } else {
            ("they start", "they do not start")
        };
        let (verb, nodes) = match self.starts_on {
            0 => (fails, self.all - self.unknown_on),
            starts_on => (starts, starts_on),
        };
        let unknown = match self.unknown_on {
            0 => String::new(),
            unknown_on => format!(", unknown on {unknown_on}"),
        };
        format!("{verb} on {nodes} of {}{unknown}", count(self.all, "node"))
    }
}
