//! Registries of many products: their differences, served over TLS under their real names, with the
//! program's commands run against each. Generates `docs/registries.md`. With
//! `WINCIMG_ZOO_PROGRAM=FILE`, another build of the program is run for comparison.

#![allow(unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::format_push_string)]

mod content;
mod host;
mod login;
mod page;
mod profile;
mod profiles;
mod simulated;
mod uploads;
mod visit;

use profiles::{
    ACR, ALL, ARTIFACT_REGISTRY, ARTIFACTORY, DISTRIBUTION_2, DISTRIBUTION_3, DOCKER_HUB, ECR,
    GHCR, GITEA, GITLAB, HARBOR, MCR, NEXUS, QUAY, ZOT,
};

/// Checks a line of the page's table against the result.
fn check(name: &str, visit: &visit::VisitResult) {
    let row = page::row(name, visit.outcomes);
    let on_page = page::PAGE.lines().any(|line| line == row);
    assert!(on_page, "not on the page: {row}\n{}", visit.printed);
}

/// A test for each product: its row on the page is the actual result.
macro_rules! products {
    ($($name:ident: $profile:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check($profile.name, &visit::visit(&$profile));
            }
        )*

        fn tested() -> Vec<&'static str> {
            vec![$($profile.name),*]
        }
    };
}

products! {
    docker_hub: DOCKER_HUB,
    mcr: MCR,
    ghcr: GHCR,
    ecr: ECR,
    acr: ACR,
    artifact_registry: ARTIFACT_REGISTRY,
    quay: QUAY,
    harbor: HARBOR,
    gitlab: GITLAB,
    artifactory: ARTIFACTORY,
    nexus: NEXUS,
    zot: ZOT,
    gitea: GITEA,
    distribution_2: DISTRIBUTION_2,
    distribution_3: DISTRIBUTION_3,
}

#[test]
fn distribution_itself() {
    check(page::ITSELF, &visit::run_distribution());
}

/// Docker Hub's API has another host name than references and `wincimg login`.
#[test]
fn docker_hub_is_called_as_its_users_call_it() {
    let printed = visit::refusal(&DOCKER_HUB);
    assert_contains!(printed, " docker.io ", "`wincimg login docker.io`");
    assert!(!printed.contains("registry-1."), "{printed}");
}

#[test]
fn every_profile_is_visited_and_every_row_has_a_source() {
    let names: Vec<&str> = ALL.iter().map(|profile| profile.name).collect();
    assert_eq!(tested(), names);
    for (quirk, source) in ALL.iter().flat_map(|profile| profile.rows) {
        assert!(source.starts_with("https://"), "{quirk} has no source");
    }
}

#[test]
fn the_page_is_what_the_profiles_say() {
    let wanted = page::page();
    if wanted != page::PAGE {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("registries.md");
        std::fs::write(&file, wanted).unwrap();
        panic!(
            "docs/registries.md differs from the profiles; {} is what they say",
            file.display()
        );
    }
}
