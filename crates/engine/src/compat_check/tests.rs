//! `check-compat` finds nothing against a successful build, whatever the hosts.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Zoned;
use proptest::prelude::*;
use wincimg_inspect::bases::{BaseImage, BaseMatch, Fit};
use wincimg_oci::document::{Image as BaseDocuments, ManifestFormat, Platform};
use wincimg_oci::reference::parse_reference;
use wincimg_recipe::{PlanBase, Recipe, RecipeInputs};
use wincimg_windows::compat::{IndexEntry, choose, generation};

use super::*;
use crate::plans::{PlannedImage, common, leader};
use crate::publication::{IndexMode, NamingOptions, Publication, TagStyle};
use crate::unserved::{TargetIndex, repeated_without_index};

/// Builds with every rule of Windows, and revisions around the updates that changed it.
const BUILDS: [(u32, &[u32]); 8] = [
    (14393, &[3384, 3443, 3504]),
    (17763, &[914, 973, 1039, 1158, 5696]),
    (18363, &[592, 657, 1000]),
    (19042, &[1, 985]),
    (20348, &[1, 2402, 2762]),
    (22621, &[1, 3000]),
    (25398, &[1, 950]),
    (26100, &[1742, 2033]),
];

fn today() -> Date {
    Zoned::now().date()
}

fn version() -> impl Strategy<Value = WindowsVersion> {
    proptest::sample::select(BUILDS.to_vec()).prop_flat_map(|(build, revisions)| {
        proptest::sample::select(revisions.to_vec())
            .prop_map(move |revision| WindowsVersion::new(build, revision))
    })
}

fn runtime() -> impl Strategy<Value = ContainerRuntime> {
    let versions = [
        "1.5.2", "1.6.6", "1.6.38", "1.7.5", "1.7.30", "2.2.0", "2.4.0",
    ];
    let containerd =
        versions.map(|version| ContainerRuntime::from_node(&format!("containerd://{version}")));
    let others = [ContainerRuntime::Docker, ContainerRuntime::CONTAINERD];
    proptest::sample::select([&containerd[..], &others].concat())
}

fn node(place: usize, version: WindowsVersion, runtime: ContainerRuntime) -> Node {
    Node {
        name: Some(format!("win-{place}")),
        runtime,
        ..Node::from_build(HostBuild::new(version))
    }
}

fn planned(host: HostBuild, base: WindowsVersion) -> PlannedImage {
    let text = base.os_version();
    let plan_base = PlanBase {
        name: format!("mcr/nanoserver:{text}"),
        digest: format!("sha256:{:0>64}", base.revision.unwrap_or(0)),
        os_version: Some(base),
        ..PlanBase::default()
    };
    let settings = RecipeInputs {
        values: &BTreeMap::new(),
        context: Path::new("."),
    };
    let recipe = Recipe::find("pause").unwrap();
    let nodes = Vec::new();
    let target = TargetHost { build: host, nodes };
    let found = BaseImage {
        reference: parse_reference(&format!("mcr.test/nanoserver:{text}")).unwrap(),
        index: None,
        os_version: base,
        matched: BaseMatch::compare(base, host),
        image: BaseDocuments::empty(ManifestFormat::Oci, Platform::windows(text)).unwrap(),
    };
    let plan = recipe.plan(plan_base, host.version, &settings).unwrap();
    PlannedImage::new(Some(target), found.into(), plan)
}

/// The plan of a build for these nodes from these bases; `None` if no base fits a host.
fn plan(nodes: &[Node], bases: &[WindowsVersion], is_shared: bool) -> Option<Vec<PlannedImage>> {
    let mut hosts: Vec<HostBuild> = nodes.iter().filter_map(|node| node.build).collect();
    hosts.sort();
    hosts.dedup();
    let leader_of = |host: HostBuild| {
        if is_shared {
            leader(host, &hosts)
        } else {
            host
        }
    };
    let found = hosts.iter().map(|host| {
        let host = leader_of(*host);
        let fits = bases
            .iter()
            .map(|base| (Fit::of(*base, host, BaseMatch::Nearest), *base));
        let best = fits
            .filter(|(fit, _)| fit.is_some())
            .max_by_key(|(fit, _)| *fit);
        best.map(|(_, base)| base)
    });
    let found: Vec<WindowsVersion> = found.collect::<Option<_>>()?;
    let images = hosts.iter().enumerate().map(|(place, host)| {
        let place = if is_shared {
            common(place, &found)
        } else {
            place
        };
        planned(*host, found[place])
    });
    Some(images.collect())
}

/// The reason why one index cannot have all of the images.
fn conflict(images: &[PlannedImage]) -> Option<Problem> {
    let index = TargetIndex {
        tag: "1.4",
        existing: &[],
        command: &repeated_without_index,
        all_or_nothing: true,
    };
    index
        .set_aside_conflicts(&mut images.to_vec(), |image| image, &mut Vec::new())
        .err()
}

fn publication(images: &[PlannedImage], index: IndexMode) -> Result<Publication<'_>, Problem> {
    Publication::new(
        images,
        &NamingOptions {
            name: "pause".to_owned(),
            tag: Some("1.4".to_owned()),
            index,
            style: TagStyle::default(),
        },
    )
}

/// Returns true if a node starts every image that its runtime may pick from a tag, by the rules
/// themselves.
fn starts(node: &Node, planned_tag: &PlannedTag<'_>) -> bool {
    let entries: Vec<IndexEntry<'_>> = planned_tag
        .lines
        .iter()
        .map(|line| IndexEntry {
            os: &line.platform.os,
            architecture: &line.platform.architecture,
            variant: line.platform.variant.as_deref(),
            feature: None,
            os_version: line.platform.os_version.as_deref(),
            is_missing: false,
        })
        .collect();
    let build = node.build.unwrap();
    let starts = |place: usize| {
        let version = planned_tag.lines[place].version;
        judge(node.build, version, Isolation::Process).is_startable()
    };
    if !planned_tag.is_index {
        return starts(0);
    }
    let choices = choose(&entries, build, "amd64", node.runtime);
    let mut taken = choices.iter().filter_map(|choice| choice.entry);
    choices.iter().any(|choice| choice.entry.is_some()) && taken.all(starts)
}

/// The check, as run after the build.
fn rollout(planned_tag: &PlannedTag<'_>, nodes: &[Node]) -> Rollout {
    Rollout::new(&RolloutRequest {
        nodes: NodeList {
            windows: hosts_of(planned_tag, nodes),
            others: Vec::new(),
        },
        images: vec![image(planned_tag)],
        plain: 1,
        isolation: Some(Isolation::Process),
        today: Some(Zoned::now().date()),
        ..RolloutRequest::default()
    })
}

proptest! {
    #[test]
    fn a_build_that_ends_well_passes_the_check(
        hosts in proptest::collection::vec((version(), runtime()), 1..8),
        bases in proptest::collection::vec(version(), 1..12),
        has_index in any::<bool>(),
        others in proptest::collection::vec(version(), 0..3),
    ) {
        let nodes: Vec<Node> = hosts
            .into_iter()
            .enumerate()
            .map(|(place, (version, runtime))| node(place, version, runtime))
            .collect();
        let Some(images) = plan(&nodes, &bases, has_index) else { return Ok(()) };
        if has_index && let Some(conflict) = conflict(&images) {
            // Only where hosts of one build take no common image.
            let versions = images.iter().filter_map(|image| image.plan.host_build);
            let apart = versions.clone().any(|a| versions.clone().any(|b| {
                a.build == b.build && generation(a) != generation(b)
            }));
            prop_assert!(apart, "{conflict}");
            return Ok(());
        }
        let when = if has_index { IndexMode::Several } else { IndexMode::Never };
        let publication = publication(&images, when).unwrap();
        prop_assert!(!has_index || publication.images.len() == 1 || publication.index.is_some());
        if has_index {
            let mut builds: Vec<u32> = publication
                .images
                .iter()
                .map(|image| image.planned.base.os_version.unwrap().build)
                .collect();
            builds.sort_unstable();
            let images = builds.len();
            builds.dedup();
            prop_assert_eq!(builds.len(), images);
        }
        let is_modern = nodes.iter().all(|node| node.runtime == ContainerRuntime::CONTAINERD);
        // Existing entries are kept only for builds that are not built again.
        let built = |build: u32| {
            let mut images = publication.images.iter();
            images.any(|image| {
                let own = image.planned.base.os_version;
                own.is_some_and(|own| own.build == build)
            })
        };
        let kept: Vec<PlannedTagEntry> = others
            .into_iter()
            .filter(|version| !built(version.build))
            .map(|version| PlannedTagEntry {
                platform: Platform::windows(version.os_version()),
                version: Some(version),
            })
            .collect();
        let is_modern = is_modern && kept.is_empty();
        for planned_tag in publication.planned_tags(&kept) {
            let served: Vec<Node> = hosts_of(&planned_tag, &nodes);
            let warnings = match check_tag(&planned_tag, &nodes, today()) {
                Ok(warnings) => warnings,
                Err(error) => {
                    prop_assert!(!is_modern, "{error}");
                    prop_assert!(served.iter().any(|node| !starts(node, &planned_tag)), "{error}");
                    continue;
                }
            };
            for node in &served {
                prop_assert!(starts(node, &planned_tag), "{node:?}");
            }
            let check = rollout(&planned_tag, &nodes);
            prop_assert!(check.is_compatible(false));
            prop_assert!(check.is_compatible(true) || !warnings.is_empty());
        }
    }

    #[test]
    fn hosts_of_a_build_share_the_newest_image_that_is_not_newer_than_any(
        hosts in proptest::collection::vec(0_u32..60, 1..6),
        bases in proptest::collection::vec(0_u32..60, 1..8),
    ) {
        let version = |revision: &u32| WindowsVersion::new(20348, *revision);
        let nodes: Vec<Node> = hosts
            .iter()
            .enumerate()
            .map(|(place, revision)| node(place, version(revision), ContainerRuntime::CONTAINERD))
            .collect();
        let bases_of: Vec<WindowsVersion> = bases.iter().map(version).collect();
        let images = plan(&nodes, &bases_of, true).unwrap();
        let publication = publication(&images, IndexMode::Several).unwrap();
        prop_assert_eq!(publication.images.len(), 1);
        let oldest = hosts.iter().min().unwrap();
        let expected = bases.iter().filter(|base| *base <= oldest).max();
        let expected = expected.or(bases.iter().min()).unwrap();
        prop_assert_eq!(publication.images[0].planned.base.os_version, Some(version(expected)));
    }
}

#[test]
fn a_host_on_the_other_side_of_a_line_is_named() {
    let versions: [WindowsVersion; 2] = ["17763.973", "17763.1158"].map(|it| it.parse().unwrap());
    let nodes = [0, 1].map(|place| node(place, versions[place], ContainerRuntime::CONTAINERD));
    let images = plan(&nodes, &versions, true).unwrap();
    let expected = "an index has one image per Windows build: tag 1.4 has the one for 17763.1158, and \
                    17763.973 requires another";
    assert_eq!(conflict(&images).unwrap().to_string(), expected);
    let alone = publication(&images, IndexMode::Never).unwrap();
    assert!(alone.index.is_none());
    for planned_tag in alone.planned_tags(&[]) {
        let warnings = check_tag(&planned_tag, &nodes, today()).unwrap();
        assert_eq!(warnings, Vec::<String>::new(), "{planned_tag:?}");
    }
}

#[test]
fn a_host_whose_image_an_index_hides_is_led_to_the_version_tags() {
    let runtime = ContainerRuntime::from_node("containerd://2.4.0");
    let nodes = [
        node(0, "26100.2314".parse().unwrap(), runtime),
        node(1, "26200.7171".parse().unwrap(), runtime),
    ];
    let bases = ["20348.2402", "26100.2314"].map(|text| text.parse().unwrap());
    let images = plan(&nodes, &bases, true).unwrap();
    let warned = |index: IndexMode| -> Vec<String> {
        let publication = publication(&images, index).unwrap();
        let tags = publication.planned_tags(&[]);
        let warnings = tags
            .iter()
            .map(|planned_tag| check_tag(planned_tag, &nodes, today()));
        warnings.flat_map(Result::unwrap).collect()
    };
    let warnings = warned(IndexMode::Several);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [
        "0xc0370112",
        "the index has 20348.2402 too",
        "`wincimg build --no-index`",
        "`wincimg image update --no-index`",
    ] {
        assert!(warnings[0].contains(part), "{part}: {warnings:?}");
    }
    assert_eq!(warned(IndexMode::Never), [""; 0]);
}
