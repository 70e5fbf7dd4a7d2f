//! Random clusters: no cheaper plan exists, by exhaustive search, and advice suffices.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::rollout::plan::build_targets::{base_for, builds_for};
use crate::rollout::plan::rebuild::rebuilt;

const HOSTS: [&str; 9] = [
    "14393.3504", "14393.3630", "17763.914", "17763.973", "17763.1158", "18363.592", "18363.900",
    "20348.2402", "26100.2314",
];

/// Number of patched hosts, rebuilt images and pinned workloads, compared in this order.
type Cost = (usize, u32, usize);

/// The cost of the cheapest actions after which everything starts, by exhaustive search in the
/// order of cost.
fn cheapest(request: &RolloutRequest, landings: &[Landing]) -> Option<Cost> {
    let hosts: Vec<WindowsVersion> = request
        .nodes
        .windows
        .iter()
        .map(|node| node.build.unwrap().version)
        .collect();
    let patches: Vec<Vec<WindowsVersion>> = hosts
        .iter()
        .map(|own| {
            let all = HOSTS.iter().map(|text| version(text));
            let newer = all.filter(|other| other.build == own.build && other > own);
            [*own].into_iter().chain(newer).collect()
        })
        .collect();
    let pins: Vec<Vec<Option<u32>>> = landings
        .iter()
        .enumerate()
        .map(|(index, landing)| {
            [None]
                .into_iter()
                .chain(builds_where_it_starts(request, index, landing).map(Some))
                .collect()
        })
        .collect();
    let mut attempts: Vec<(Cost, Vec<usize>, u32, Vec<usize>)> = Vec::new();
    for patched in combinations(&patches) {
        for pinned in combinations(&pins) {
            for mask in 0..1_u32 << request.images.len() {
                let count = |picks: &[usize]| picks.iter().filter(|pick| **pick > 0).count();
                let cost = (count(&patched), mask.count_ones(), count(&pinned));
                attempts.push((cost, patched.clone(), mask, pinned.clone()));
            }
        }
    }
    attempts.sort();
    let works = |(_, patched, mask, pinned): &(Cost, Vec<usize>, u32, Vec<usize>)| {
        let mut after = request.clone();
        for (host, pick) in patched.iter().enumerate() {
            set_version(&mut after.nodes.windows[host], patches[host][*pick]);
        }
        let mut lands: Vec<u32> = landings.iter().map(|landing| landing.2).collect();
        for (workload, pick) in pinned.iter().enumerate() {
            if let Some(build) = pins[workload][*pick] {
                let label = "node.kubernetes.io/windows-build";
                let pin = Pin::to_label(label, &format!("10.0.{build}"));
                pin.apply(&mut after.workloads[workload]);
                for (host, own) in hosts.iter().enumerate() {
                    if own.build != build {
                        lands[workload] &= !(1 << host);
                    }
                }
            }
        }
        for image in (0..request.images.len()).filter(|image| mask >> image & 1 == 1) {
            let uses = landings.iter().zip(&lands);
            let landed: u32 = uses
                .filter(|(landing, _)| landing.1.contains(&image))
                .fold(0, |all, (_, lands)| all | lands);
            let nodes = after.nodes.windows.iter().enumerate();
            let served = nodes
                .filter(|(host, _)| landed >> host & 1 == 1)
                .map(|(_, node)| graph::TargetHost {
                    version: node.build.unwrap().version,
                    runtime: node.runtime,
                })
                .collect();
            after.images[image] = rebuilt(&after.images[image], &builds_for(served));
        }
        Rollout::new(&after).summary.incompatible == 0
    };
    attempts
        .iter()
        .find(|attempt| works(attempt))
        .map(|(cost, ..)| *cost)
}

/// The builds on all of whose nodes a workload starts, if it does not start on all of its nodes.
fn builds_where_it_starts(
    request: &RolloutRequest,
    index: usize,
    landing: &Landing,
) -> impl Iterator<Item = u32> + use<> {
    let mut alone = request.clone();
    alone.workloads = vec![request.workloads[index].clone()];
    let rollout = Rollout::new(&alone);
    let mut builds: BTreeMap<u32, bool> = BTreeMap::new();
    for check in rollout.checks() {
        if let Some(build) = check.host.and_then(|host| host.build) {
            let starts = check.finding.outcome != VerdictOutcome::Incompatible;
            *builds.entry(build.version.build).or_insert(true) &= starts;
        }
    }
    let can_be_pinned = landing.0 != "CloneSet" && rollout.summary.incompatible > 0;
    builds
        .into_iter()
        .filter(move |(_, starts)| can_be_pinned && *starts)
        .map(|(build, _)| build)
}

/// All combinations of one option from each list, by index.
fn combinations<T>(options: &[Vec<T>]) -> Vec<Vec<usize>> {
    options.iter().fold(vec![Vec::new()], |all, options| {
        let longer = |picks: &Vec<usize>| {
            let picks = picks.clone();
            (0..options.len()).map(move |pick| [&picks[..], &[pick]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

fn cost(plan: &ActionPlan) -> Cost {
    let mut cost = (0, 0, 0);
    for action in &plan.actions {
        match action {
            PlanAction::Patch { hosts, .. } => cost.0 += hosts.len(),
            PlanAction::Rebuild { .. } => cost.1 += 1,
            PlanAction::Pin { .. } => cost.2 += 1,
        }
    }
    cost
}

pub(super) fn execute(request: &RolloutRequest, plan: &ActionPlan, commands: &[String]) -> Rollout {
    let mut after = request.clone();
    let is_typed = |action: &&PlanAction| {
        let mut own = action.commands().into_iter();
        own.all(|command| commands.contains(&command))
    };
    for action in plan.actions.iter().filter(is_typed) {
        match action {
            PlanAction::Pin { workload, pin, .. } => pin.apply(&mut after.workloads[*workload]),
            PlanAction::Patch { to, hosts, .. } => {
                for host in hosts {
                    set_version(&mut after.nodes.windows[*host], *to);
                }
            }
            PlanAction::Rebuild {
                image, host_builds, ..
            } => {
                let builds = host_builds.iter().map(|host| (*host, base_for(*host)));
                let builds: Vec<_> = builds.collect();
                after.images[*image] = rebuilt(&after.images[*image], &builds);
            }
        }
    }
    Rollout::new(&after)
}

/// Returns true if each image of each workload starts on each host where it can be scheduled.
fn outcomes(rollout: &Rollout) -> BTreeMap<(String, String, String), bool> {
    let checks = rollout.checks().filter_map(|check| {
        let key = (
            check.host?.name.clone()?,
            check.image?.reference.clone()?,
            check.workload?.id.name.clone(),
        );
        Some((key, check.finding.outcome != VerdictOutcome::Incompatible))
    });
    checks.collect()
}

/// Random hosts, images with versions, and workloads.
pub(super) fn clusters() -> impl Strategy<Value = (RolloutRequest, Vec<Landing>)> {
    let hosts = prop::collection::vec(prop::sample::select(&HOSTS), 1..4);
    let versions = prop::collection::vec(prop::sample::select(&HOSTS), 1..3);
    let images = prop::collection::vec(versions, 1..4);
    let kinds = prop::sample::select(&["CloneSet", "Deployment", "Pod"]);
    let own = prop::collection::vec(0_usize..3, 1..3);
    let workloads = prop::collection::vec((kinds, own, 1_u32..8), 1..4);
    (hosts, images, workloads).prop_map(|(hosts, images, workloads)| {
        let mut request = request(&hosts, &vec!["17763.1"; images.len()]);
        for (image, versions) in request.images.iter_mut().zip(&images) {
            image.content = match &versions[..] {
                [only] => ImageContent::Single(single(only)),
                several => ImageContent::Index(several.iter().map(|text| single(text)).collect()),
            };
        }
        let workloads: Vec<Landing> = workloads
            .into_iter()
            .map(|(kind, own, hosts)| {
                let own: BTreeSet<usize> = own.iter().map(|image| image % images.len()).collect();
                (kind, own.into_iter().collect(), hosts)
            })
            .collect();
        restrict(&mut request, &workloads);
        (request, workloads)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(100)
    })]

    #[test]
    fn no_smaller_set_of_actions_suffices((request, workloads) in clusters()) {
        let plan = plan(&request);
        prop_assert_eq!(plan.then.incompatible, 0, "{:?}", plan);
        prop_assert_eq!(Some(cost(&plan)), cheapest(&request, &workloads), "{:?}", plan);
    }

    #[test]
    fn what_a_finding_advises_is_no_more_than_makes_its_workload_start((request, _) in clusters()) {
        let mut rollout = Rollout::new(&request);
        let before = outcomes(&rollout);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let works = |commands: &[String], workload: &str| {
            let after = outcomes(&execute(&request, &plan, commands));
            let mut own = after.iter().filter(|((.., name), _)| name == workload);
            own.all(|(_, starts)| *starts)
        };
        for check in rollout.checks() {
            let commands = &check.finding.commands;
            if check.finding.outcome != VerdictOutcome::Incompatible {
                continue;
            }
            if commands.is_empty() {
                prop_assert!(plan.actions.len() > MOST_ACTIONS);
                continue;
            }
            let workload = &check.workload.unwrap().id.name;
            prop_assert!(works(commands, workload), "{workload}: {:?}", commands);
            let is_advised = |action: &&PlanAction| {
                action.commands().iter().all(|command| commands.contains(command))
            };
            for spare in plan.actions.iter().filter(is_advised) {
                let fewer: Vec<String> = commands
                    .iter()
                    .filter(|command| !spare.commands().contains(command))
                    .cloned()
                    .collect();
                prop_assert!(!works(&fewer, workload), "{workload}: {:?}", spare);
            }
            let after = outcomes(&execute(&request, &plan, commands));
            let breaks = after.iter().any(|(key, starts)| !starts && before[key]);
            let fix = check.finding.fix.as_deref().unwrap();
            prop_assert_eq!(fix.contains("it stops what starts today"), breaks, "{}", fix);
        }
    }
}
