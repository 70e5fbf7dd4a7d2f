//! A network that breaks: received content is correct or absent, and the next run completes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault};
use wincimg_testkit::{noise, options, repository};

use super::{Dice, outcome, rounds, run_and_check};
use crate::site::Site;

#[test]
fn network() {
    rounds("network", 4, |dice| {
        let site = Site::new();
        recipe(&site, dice);
        let runtime = Runtime::new().unwrap();
        let cutting = Arc::new(AtomicBool::new(true));
        let mut chance = Dice::new(dice.below(1 << 30) as u64);
        let rule = {
            let cutting = Arc::clone(&cutting);
            move |_: &_| {
                if cutting.load(Ordering::Relaxed) && chance.one_in(5) {
                    fault(&mut chance)
                } else {
                    ProxyFault::Pass
                }
            }
        };
        let proxy = runtime.block_on(FaultProxy::start(site.host(), rule));
        let push = |timeout| {
            let host = proxy.host();
            let mut command = site.command(&["build", "own", "--host-build", "17763.973"]);
            command.args(["--base-registry", &format!("{host}/mcr")]);
            command.args(["--registry", &host, "--push", "--timeout", timeout]);
            command.args(["--insecure-registry", &host]);
            command
        };
        let output = run_and_check(push("5s"));
        let before = published(&runtime, &site);
        cutting.store(false, Ordering::Relaxed);
        let again = run_and_check(push("50s"));
        let printed = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.success(), "{printed}");
        let after = published(&runtime, &site);
        assert!(!after.is_empty());
        if output.status.success() {
            assert_eq!(before, after);
        }
        for (tag, digest) in before {
            assert_eq!(Some(&digest), after.get(&tag), "{tag} was published wrong");
        }
        outcome(&output)
    });
}

/// An image with a layer of several chunks.
pub(super) fn recipe(site: &Site, dice: &mut Dice) {
    site.write(
        "own/recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    let length = 1 << (16 + dice.below(7));
    site.write("own/files/noise", noise(length, dice.below(1000) as u64));
}

fn fault(dice: &mut Dice) -> ProxyFault {
    let at = 1 << dice.below(22);
    match dice.below(8) {
        0 => ProxyFault::CutRequest(at),
        1 => ProxyFault::CutAnswer(at),
        2 => ProxyFault::LoseAnswer,
        3 => ProxyFault::Drip(at.max(64), Duration::from_millis(5)),
        4 => ProxyFault::Stall(at),
        5 => ProxyFault::StallRequest(at),
        6 => ProxyFault::Flip(at),
        _ => ProxyFault::Shorten(at),
    }
}

/// The digest under each tag of the image; all referenced content is read and verified.
pub(super) fn published(runtime: &Runtime, site: &Site) -> BTreeMap<String, String> {
    let repository = repository(options(&site.host()), &format!("{}/own", site.host()));
    runtime.block_on(async {
        // A repository without a push has no tags.
        let tags = repository.tags().await.unwrap_or_default();
        let mut found = BTreeMap::new();
        for tag in tags {
            let head = repository.head_manifest(&tag).await.unwrap().unwrap();
            let mut command = site.command(&["inspect", "--registry", "--quiet"]);
            command.arg(format!("{}/own:{tag}", site.host()));
            assert_eq!(
                outcome(&run_and_check(command)),
                "done",
                "{tag} is not whole"
            );
            found.insert(tag, head.digest.to_string());
        }
        found
    })
}
