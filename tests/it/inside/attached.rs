//! Indexes that others attached, late or forged.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;
use wincimg_inspect::base::{Extent, LayerPosition, assemble, collect_layer};
use wincimg_inspect::facts_provider::FactsSource;
use wincimg_oci::document::sha256;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault, reads_blob};
use wincimg_testkit::test_bases::{
    FILE, LayerTar, bottom_layer, gzip, image_of, made_software, made_system,
};

use super::{
    BASE_PATH, Machine, NAME, VERSION, attach, base, beside, is_known, is_unknown, publish,
    published,
};
use crate::failure::{note, warning};
use crate::site::write;

#[test(multi_thread)]
async fn facts_about_something_else_are_left_alone_with_a_word() {
    let server = FakeRegistry::start();
    let host = server.host();
    let base = base();
    let reference = publish(&base, &host).await;
    let machine = Machine::new();
    machine.run(&["base", "index", &reference]).success();
    let [own] = machine.kept().try_into().unwrap();
    let own = fs::read(own).unwrap();
    // Facts of one base attached to another with the same version.
    let mut other = self::base();
    other.image = other
        .image
        .edit_config(|config| config.config.shell = Some(vec!["cmd".into()]))
        .unwrap();
    publish(&other, &host).await;
    attach(&reference, &other, &own).await;
    Machine::new()
        .plans(&host)
        .stderr(is_unknown().and(contains(other.image.digest().to_string())));
    attach(&reference, &other, b"no facts at all").await;
    Machine::new()
        .plans(&host)
        .stderr(is_unknown().and(contains(other.image.digest().to_string())));
    let mut damaged = own.clone();
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    attach(&reference, &other, &damaged).await;
    Machine::new().plans(&host).stderr(is_unknown());
}

#[test(multi_thread)]
async fn what_one_repository_says_of_a_base_means_nothing_in_another() {
    let (one, two) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &one.host()).await;
    publish(&base, &two.host()).await;
    Machine::new()
        .run(&["base", "index", &reference, "--push"])
        .success();
    let machine = Machine::new();
    machine
        .plans(&one.host())
        .stderr(is_known(&beside(&one.host())));
    machine.plans(&two.host()).stderr(is_unknown());
    machine
        .plans(&one.host())
        .stderr(is_known(&FactsSource::Cache));
}

/// An index of other contents under the right digest cannot be told from a true one without the
/// layers: it counts in its own repository, and yields to what was read.
#[test(multi_thread)]
async fn a_forged_index_goes_no_further_than_its_repository_and_yields_to_the_layers() {
    const FORGED: &str = r"C:\forged";
    let (server, other) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &server.host()).await;
    let elsewhere = publish(&base, &other.host()).await;
    let everything = Extent::Everything;
    let bottom = gzip(&bottom_layer(&made_system(FORGED), &made_software()).tar());
    let layer = collect_layer(bottom.as_slice(), LayerPosition::Bottom, &everything).unwrap();
    let forged = assemble(base.image.digest(), Some(VERSION), &everything, vec![layer]).unwrap();
    attach(&reference, &base, &forged).await;

    let path = |machine: &Machine, reference: &str| {
        let shown = machine.json(&["base", "show", reference]);
        shown["path"].as_str().unwrap().to_owned()
    };
    let own = format!(r"C:\runtime;{BASE_PATH}");
    let here = Machine::new();
    assert_eq!(path(&here, &reference), FORGED);
    assert_eq!(path(&here, &elsewhere), own);
    let there = Machine::new();
    assert_eq!(path(&there, &reference), FORGED);
    let mirror = FakeRegistry::start();
    let mirrored = there.json(&["mirror", &reference, "--to", &mirror.host()]);
    assert_eq!(mirrored["images"][0]["facts"][0]["outcome"], "made");
    let mirrored = format!("{}/{NAME}:{VERSION}", mirror.host());
    assert_eq!(path(&Machine::new(), &mirrored), own);
    let there = Machine::new();
    assert_eq!(path(&there, &reference), FORGED);
    there.run(&["base", "index", &reference]).success();
    assert_eq!(path(&there, &reference), own);
}

#[test(multi_thread)]
async fn a_registry_that_does_not_answer_holds_up_no_build_that_needs_no_answer() {
    let server = FakeRegistry::start();
    publish(&base(), &server.host()).await;
    let proxy = FaultProxy::start(server.host(), |passed| {
        if passed.path.contains("/referrers/") {
            return ProxyFault::Drip(1, Duration::from_secs(10));
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let started = Instant::now();
    machine
        .plans(&proxy.host())
        .stderr(is_unknown().and(contains(format!("from {}/{NAME}: ", proxy.host()))));
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    // A second build does not wait at all.
    let started = Instant::now();
    machine.plans(&proxy.host()).stderr(is_unknown());
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
}

#[test(multi_thread)]
async fn an_index_that_arrives_slowly_holds_up_no_build_that_does_not_need_it() {
    let (server, reference) = published().await;
    let here = Machine::new();
    here.run(&["base", "index", &reference, "--push"]).success();
    let [index] = here.kept().try_into().unwrap();
    let digest = sha256(&fs::read(index).unwrap()).to_string();
    let proxy = FaultProxy::start(server.host(), move |passed| {
        if reads_blob(passed) && passed.path.ends_with(&digest) {
            return ProxyFault::Drip(1, Duration::from_secs(1));
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let started = Instant::now();
    let expected = warning(&["cannot read facts about the base", "15 s ", "blob"]);
    machine
        .plans(&proxy.host())
        .stderr(is_unknown().and(expected));
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
}

/// The part of IIS's configuration for an application pool.
const SERVER_CONFIG: &[u8] = br#"<configuration>
  <configSections>
    <sectionGroup name="system.applicationHost">
      <section name="applicationPools" allowDefinition="AppHostOnly" overrideModeDefault="Deny" />
    </sectionGroup>
  </configSections>
  <system.applicationHost>
    <applicationPools><add name="DefaultAppPool" /></applicationPools>
  </system.applicationHost>
</configuration>
"#;

/// IIS's settings go into the base's file, which must therefore be known.
#[test(multi_thread)]
async fn layers_are_read_for_a_build_only_where_its_recipe_needs_that() {
    let server = FakeRegistry::start();
    let host = server.host();
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let mut upper = LayerTar::default();
    let config = "Files/Windows/System32/inetsrv/config/applicationHost.config";
    upper.file(config, SERVER_CONFIG, Some(FILE));
    let base = image_of(VERSION, vec![bottom.tar(), upper.tar()]);
    publish(&base, &host).await;
    let machine = Machine::new();
    let recipe = format!(
        "name = \"web\"\nbase = \"{NAME}\"\n[iis.app_pool]\nsettings = \"processModel.idleTimeout=00:00:00\"\n"
    );
    write(machine.0.path(), "web/recipe.toml", recipe);
    let common = ["--host-build", "17763.973", "--base-registry", &host];
    let run = |first: &[&str]| machine.run(&[first, &common].concat());
    run(&["build", "./web", "--dry-run", "-v"])
        .success()
        .stderr(note(&[&format!("{host}/{NAME}")]).and(is_unknown()));
    run(&["render", "./web"])
        .success()
        .stderr(contains("wincimg image base index").not());
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
    run(&["build", "./web", "--output", "oci:one", "-v"])
        .success()
        .stderr(note(&["`wincimg image base index "]));
    assert_eq!(machine.kept().len(), 1);
    run(&["build", "./web", "--output", "oci:two", "-v"])
        .success()
        .stderr(
            contains("wincimg image base index")
                .not()
                .and(is_known(&FactsSource::Cache)),
        );
    // Partial facts serve only commands that need no more.
    machine.plans(&host).stderr(is_unknown());
}
