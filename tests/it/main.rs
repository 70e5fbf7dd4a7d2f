//! End-to-end tests of the binary and the library, with real components and with servers that
//! misbehave. One executable, to link only once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]
// Without libtest, clippy does not recognise these as tests.
#![allow(clippy::wildcard_imports, clippy::unused_async, clippy::too_many_lines)]
#![allow(clippy::assigning_clones)]

// `#[test]` is the testkit's: libtest cannot ignore a test with a missing requirement at run time.
#[macro_use]
extern crate wincimg_testkit;

mod api;
mod archive;
mod at_once;
mod base;
mod base_cli;
mod base_permissions;
mod browser;
mod build;
mod builder;
mod buildkit;
mod certificates;
mod check_compat;
mod chocolatey;
mod ci_templates;
mod completions;
mod contents;
mod convert;
mod copied;
mod defaults;
mod demo_cli;
mod docker_cli;
mod dockerfile_build;
mod dockerignore;
mod docs;
mod doctor;
mod downloads;
mod examples;
mod examples_windows;
mod failure;
mod fake_catalog;
mod fleet;
mod follow;
mod foreign_text;
mod github_action;
mod hive;
#[path = "../hostile/mod.rs"]
mod hostile;
mod hotfix;
mod hotfix_fetch;
mod hybrid;
mod hybrid_buildkit;
mod iis;
mod iis_lines;
mod iis_server;
mod image_files;
mod init;
mod input;
mod inside;
mod inspect;
mod kube;
mod kube_schema;
mod kubectl_plugin;
mod layer;
mod lint;
mod login;
mod messages;
mod mirror;
mod mirror_cli;
mod mirror_faults;
mod mirror_observed;
mod msi;
mod node;
mod origin;
mod outputs;
mod passwords;
mod path;
mod pictures;
mod pod_exec;
mod prepull;
mod provenance;
mod proxy;
mod quoting;
mod referrers;
mod registry;
mod registry_access;
mod registry_challenges;
mod registry_downloads;
mod registry_faults;
mod registry_limits;
mod registry_products;
mod registry_redirects;
mod registry_streamed;
mod registry_tags;
mod registry_tokens;
mod registry_uploads;
mod render;
mod report_html;
mod rollout;
mod round_trips;
mod run_lines;
mod secrets;
mod short_flags;
mod site;
mod stacked;
mod store;
mod suggestions;
mod supply_chain;
mod terminal;
mod timeouts;
mod try_image;
mod unpacking;
mod update;
mod windows_program;
mod windows_proof;
mod workflows;

fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
