use std::process::Command;

use clap::Parser as _;
use wincimg_cluster::nodes::{Node, NodeList};
use wincimg_cluster::rollout::{
    CommandFlags, Image, ImageContent, PlanAction, Rollout, RolloutRequest, TagsByRepository,
    Variant,
};
use wincimg_oci::document::Digest;
use wincimg_windows::compat::HostBuild;

use crate::cli::Cli;

/// Splits a command line as a shell does.
fn words(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn variant(version: Option<&str>) -> Variant {
    Variant {
        os: "windows".to_owned(),
        architecture: "amd64".to_owned(),
        os_version: version.map(|version| format!("10.0.{version}")),
        version: version.map(|version| version.parse().unwrap()),
        ..Variant::default()
    }
}

fn image(reference: &str, content: ImageContent) -> Image {
    Image {
        reference: Some(reference.to_owned()),
        content,
    }
}

/// Hosts and images that lead to every kind of advice.
fn everything_wrong() -> RolloutRequest {
    let hosts = [
        "14393.3504", "17763.973", "17763.1500", "17763", "20348.2402", "26100.2314",
    ];
    let digest: Digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    let images = [
        image(
            "repo.example:5000/team/app:1.4",
            ImageContent::Single(variant(Some("17763.1158"))),
        ),
        image("app", ImageContent::Single(variant(Some("17763.1500")))),
        image(
            &format!("repo.example/pinned@{digest}"),
            ImageContent::Single(variant(Some("14393.2000"))),
        ),
        image(
            "repo.example/index:latest",
            ImageContent::Index(vec![
                variant(Some("17763.973")),
                variant(Some("26100.1")),
                Variant {
                    os: "linux".to_owned(),
                    ..variant(None)
                },
            ]),
        ),
        image(
            "oci:./a folder's name",
            ImageContent::Single(variant(Some("17763"))),
        ),
        image("repo.example/unsaid", ImageContent::Single(variant(None))),
        Image::from_version("17763.1158".parse().unwrap()),
    ];
    RolloutRequest {
        nodes: NodeList {
            windows: hosts
                .iter()
                .map(|host| Node::from_build(HostBuild::new(host.parse().unwrap())))
                .collect(),
            others: Vec::new(),
        },
        plain: images.len(),
        images: images.into(),
        flags: CommandFlags {
            registry: vec!["--insecure-registry".to_owned(), "repo.example".to_owned()],
            ..CommandFlags::default()
        },
        ..RolloutRequest::default()
    }
}

#[test]
fn every_command_that_is_advised_is_one_of_this_program() {
    let request = everything_wrong();
    let mut rollout = Rollout::new(&request);
    let plan = rollout.advise(&request, &TagsByRepository::new());
    let advised = rollout
        .checks()
        .flat_map(|check| check.finding.commands.clone());
    let planned = plan.actions.iter().flat_map(PlanAction::commands);
    let mut kinds = std::collections::BTreeSet::new();
    for command in advised.chain(planned) {
        let words = words(&command);
        kinds.insert(words[1..3].join(" "));
        Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
    let expected = ["build RECIPE", "image inspect", "node hotfix"];
    assert!(kinds.iter().eq(&expected), "{kinds:?}");
}
