#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::cluster::nodes::{Node, NodeList};
use crate::cluster::workloads::WorkloadList;
use crate::windows::compat::HostBuild;

fn version(text: &str) -> WindowsVersion {
    text.parse().unwrap()
}

fn request(hosts: &[&str], images: &[&str]) -> Request {
    let host = |(index, text): (usize, &&str)| Node {
        name: Some(format!("n{index}")),
        ..Node::of_build(HostBuild::new(version(text)))
    };
    let image = |(index, text): (usize, &&str)| Image {
        reference: Some(format!("repo.example/i{index}:1")),
        content: Content::Single(single(text)),
    };
    Request {
        nodes: NodeList {
            windows: hosts.iter().enumerate().map(host).collect(),
            others: Vec::new(),
        },
        images: images.iter().enumerate().map(image).collect(),
        plain: images.len(),
        ..Request::default()
    }
}

fn single(text: &str) -> Variant {
    Variant {
        os: "windows".to_owned(),
        architecture: "amd64".to_owned(),
        os_version: Some(version(text).os_version()),
        version: Some(version(text)),
        ..Variant::default()
    }
}

fn plan(request: &Request) -> Plan {
    Plan::new(request, &Rollout::new(request.clone()))
}

/// The plan in short: `patch n0,n1 to 17763.1158`, `build i0 for 17763.973 20348.1`.
fn short(hosts: &[&str], images: &[&str]) -> Vec<String> {
    let request = request(hosts, images);
    let plan = plan(&request);
    assert_eq!(plan.then.incompatible, 0, "{plan:?}");
    let words = |versions: &[WindowsVersion]| {
        let words: Vec<String> = versions.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    let actions = plan.actions.iter().map(|action| match action {
        Action::Patch { to, hosts, .. } => {
            let names: Vec<String> = hosts.iter().map(|host| format!("n{host}")).collect();
            format!("patch {} to {to}", names.join(","))
        }
        Action::Rebuild {
            image, host_builds, ..
        } => format!("build i{image} for {}", words(host_builds)),
    });
    actions.collect()
}

#[test]
fn nothing_is_done_where_everything_starts() {
    assert!(short(&["17763.1158", "20348.1"], &[]).is_empty());
    assert!(short(&["17763.1158"], &["17763.2000"]).is_empty());
}

#[test]
fn one_node_is_patched_rather_than_two_images_built() {
    assert_eq!(
        short(&["17763.973"], &["17763.1158", "17763.2114"]),
        ["patch n0 to 17763.2114"]
    );
}

#[test]
fn one_image_is_built_rather_than_three_nodes_patched() {
    assert_eq!(
        short(&["17763.973", "17763.1012", "17763.914"], &["17763.1158"]),
        ["build i0 for 17763.914"]
    );
}

#[test]
fn a_patched_node_takes_its_old_images_along() {
    // n1 needs the new side, and shares its image with n0.
    assert_eq!(
        short(&["17763.973", "17763.1158"], &["17763.973"]),
        ["patch n0 to 17763.1158", "build i0 for 17763.1158"]
    );
}

#[test]
fn server_2016_ends_up_at_one_revision() {
    assert_eq!(
        short(&["14393.3504", "14393.3630"], &["14393.3630", "14393.3504"]),
        ["patch n0 to 14393.3630", "build i1 for 14393.3630"]
    );
}

#[test]
fn one_build_serves_all_newer_hosts_that_take_it() {
    assert_eq!(
        short(
            &["17763.5696", "20348.2402", "26100.2314", "26200.1"],
            &["17763.5696"]
        ),
        ["build i0 for 17763.5696 20348.2402 26200.1"]
    );
    assert_eq!(
        short(&["25398.1", "26100.2314"], &["17763.5696"]),
        ["build i0 for 25398.1"],
        "annual releases have no base of their own, and take that of 20348"
    );
}

#[test]
fn what_nothing_mends_is_left() {
    let mut request = request(&["19045.1", "17763.1158"], &["17763.1158"]);
    request.images.push(Image {
        reference: Some("repo.example/secret:1".to_owned()),
        content: Content::Unreadable {
            reason: "401".to_owned(),
            hint: None,
        },
    });
    request.plain = 2;
    let plan = plan(&request);
    assert!(plan.actions.is_empty(), "{plan:?}");
    assert_eq!((plan.then.incompatible, plan.then.unknown), (1, 2));
}

#[test]
fn an_image_on_a_disk_is_built_there_again_and_pushed_nowhere() {
    let mut request = request(&["17763.1158"], &["17763.973", "17763.973", "17763.973"]);
    let places = [
        "oci:./my images:1.4",
        "oci:web",
        "docker-archive:web.tar:web:1",
    ];
    for (image, place) in request.images.iter_mut().zip(places) {
        image.reference = Some(place.to_owned());
    }
    let plan = plan(&request);
    let commands: Vec<String> = plan
        .actions
        .iter()
        .flat_map(Action::commands)
        .cloned()
        .collect();
    assert_eq!(
        commands,
        [
            "wincimg build RECIPE --host-build 17763.1158 --output 'oci:./my images' --tag 1.4",
            "wincimg build RECIPE --host-build 17763.1158 --output oci:web",
            "wincimg build RECIPE --host-build 17763.1158 --output docker-archive:web.tar",
        ]
    );
}

#[test]
fn commands_are_ready_to_type() {
    let plan = plan(&request(
        &["17763.973"],
        &["17763.1158", "17763.1158", "20348.1"],
    ));
    assert_eq!(
        plan.actions[0].commands(),
        [
            "wincimg hotfix fetch 17763.1158 --output ./hotfix",
            "wincimg hotfix script 17763.1158 --files ./hotfix --output install.ps1",
        ]
    );
    assert_eq!(
        plan.actions[1].commands(),
        [
            "wincimg build RECIPE --host-build 17763.1158 --registry repo.example --name i2 --tag 1 --push"
        ]
    );
}

const HOSTS: [&str; 9] = [
    "14393.3504",
    "14393.3630",
    "17763.914",
    "17763.973",
    "17763.1158",
    "18363.592",
    "18363.900",
    "20348.2402",
    "26100.2314",
];

/// Lets each image land on some of the hosts alone, by a workload that names them.
fn land(request: &mut Request, landings: &[u32]) {
    let hosts = u32::try_from(request.nodes.windows.len()).unwrap();
    let documents = (0_u32..).zip(landings).map(|(index, landing)| {
        let names: Vec<String> = (0..hosts)
            .filter(|host| landing >> host & 1 == 1)
            .map(|host| format!("n{host}"))
            .collect();
        format!(
            "kind: Pod\nmetadata: {{name: p{index}}}\nspec: {{os: {{name: windows}}, \
             containers: [{{image: repo.example/i{index}:1}}], affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: \
             [{{key: metadata.name, operator: In, values: [{}]}}]}}]}}}}}}}}\n",
            names.join(", ")
        )
    });
    let text: Vec<String> = documents.collect();
    let mut list = WorkloadList::default();
    list.read(&text.join("---\n"), "test").unwrap();
    request.workloads = list.into_workloads();
    request.plain = 0;
}

/// The cost of the cheapest actions after which everything starts, found by trying them all.
fn cheapest(request: &Request, landings: &[u32]) -> Option<usize> {
    let options: Vec<Vec<WindowsVersion>> = request
        .nodes
        .windows
        .iter()
        .map(|node| {
            let own = node.build.unwrap().version;
            let mut all: Vec<_> = HOSTS
                .iter()
                .map(|text| version(text))
                .filter(|other| other.build == own.build && *other >= own)
                .collect();
            all.sort();
            all
        })
        .collect();
    let mut best = None;
    let mut picks = vec![0; options.len()];
    loop {
        let mut patched = request.clone();
        for ((node, pick), options) in patched.nodes.windows.iter_mut().zip(&picks).zip(&options) {
            move_to(node, options[*pick]);
        }
        let served = |landing: u32| {
            let landed = patched.nodes.windows.iter().enumerate();
            landed
                .filter(move |(host, _)| landing >> host & 1 == 1)
                .map(|(_, node)| graph::Served {
                    version: node.build.unwrap().version,
                    runtime: node.runtime,
                })
                .collect::<BTreeSet<_>>()
        };
        for mask in 0..1_u32 << request.images.len() {
            let mut after = patched.clone();
            for (index, image) in after.images.iter_mut().enumerate() {
                if mask >> index & 1 == 1 {
                    *image = rebuilt(image, &builds_for(served(landings[index])));
                }
            }
            let cost = picks.iter().filter(|pick| **pick > 0).count() + mask.count_ones() as usize;
            if best.is_none_or(|best| cost < best) && Rollout::new(after).summary.incompatible == 0
            {
                best = Some(cost);
            }
        }
        let Some(next) = (0..picks.len()).find(|&index| picks[index] + 1 < options[index].len())
        else {
            return best;
        };
        picks[next] += 1;
        picks[..next].fill(0);
    }
}

/// How many nodes are patched and images built again.
fn cost(plan: &Plan) -> usize {
    let costs = plan.actions.iter().map(|action| match action {
        Action::Patch { hosts, .. } => hosts.len(),
        Action::Rebuild { .. } => 1,
    });
    costs.sum()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(300)
    })]

    #[test]
    fn no_smaller_set_of_actions_does(
        hosts in prop::collection::vec(prop::sample::select(&HOSTS), 1..4),
        images in prop::collection::vec(
            prop::collection::vec(prop::sample::select(&HOSTS), 1..3),
            1..4,
        ),
        landings in prop::collection::vec(1_u32..8, 3),
    ) {
        let mut request = request(&hosts, &vec!["17763.1"; images.len()]);
        for (image, versions) in request.images.iter_mut().zip(&images) {
            image.content = match &versions[..] {
                [only] => Content::Single(single(only)),
                several => Content::Index(several.iter().map(|text| single(text)).collect()),
            };
        }
        let landings = &landings[..images.len()];
        land(&mut request, landings);
        let plan = plan(&request);
        prop_assert_eq!(plan.then.incompatible, 0, "{:?}", plan);
        prop_assert_eq!(Some(cost(&plan)), cheapest(&request, landings), "{:?}", plan);
    }
}
