//! Permissions granted by recipes: in the layer's descriptors, parsed independently, and as
//! `icacls` commands.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_registry::security::SecurityDescriptor;
use wincimg_registry::testing::read_descriptor as read;
use wincimg_testkit::layout::{blob_in, entries_in};

use crate::failure::{Fails, Failure};
use crate::site::{Site, json_of, stderr};

const RECIPE: &str = r#"
name = "app"
base = "nanoserver"

[[files]]
content = "{}"
to = 'C:\app\data\deep\settings.json'
[[files]]
content = "x"
to = 'C:\app\readme.txt'

[[access]]
path = 'C:\app\data'
grant = { ContainerUser = "modify", "IIS AppPool\\DefaultAppPool" = "read_execute" }

[[access]]
path = 'C:\app\readme.txt'
grant = { Everyone = "read" }
"#;

/// The error for a recipe.
fn refusal(site: &Site, values: &[&str]) -> Failure {
    site.build(".")
        .args(["--host-build", "17763.973", "--output", "oci:layout"])
        .fails(2, "recipe/access", values)
}

/// The descriptors of a layer's entries below the drive.
fn descriptors(site: &Site, layer: &Value) -> BTreeMap<String, SecurityDescriptor> {
    let entries = entries_in(&blob_in(&site.path("layout"), &layer["digest"])).into_iter();
    let secured = entries.filter_map(|entry| {
        let security = read(&entry.security()?);
        Some((entry.path, security))
    });
    secured.collect()
}

#[test]
fn descriptors_have_what_icacls_would_have_given() {
    const POOL: &str = "S-1-5-82-3006700770-424185619-1745488364-794895919-4004696415";
    let site = Site::new();
    site.write("recipe.toml", RECIPE);
    let found = descriptors(&site, &site.built_layer());
    let folder = "O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)";
    let file = "O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)";
    for (path, sddl) in [
        ("Files/app", folder.to_owned()),
        (
            "Files/app/data",
            format!("{folder}(A;OICI;0x1301bf;;;S-1-5-93-2-2)(A;OICI;0x1200a9;;;{POOL})"),
        ),
        // Entries of the nearest parent come first; these have one parent.
        (
            "Files/app/data/deep",
            format!("{folder}(A;OICIID;0x1200a9;;;{POOL})(A;OICIID;0x1301bf;;;S-1-5-93-2-2)"),
        ),
        (
            "Files/app/data/deep/settings.json",
            format!("{file}(A;ID;0x1200a9;;;{POOL})(A;ID;0x1301bf;;;S-1-5-93-2-2)"),
        ),
        ("Files/app/readme.txt", format!("{file}(A;;FR;;;WD)")),
    ] {
        let expected: SecurityDescriptor = sddl.parse().unwrap();
        assert_eq!(found[path], expected, "{path}");
    }

    let rendered = site.with_bases(&["render", ".", "--host-build", "17763.973"]);
    let output = { rendered }.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let dockerfile = String::from_utf8(output.stdout).unwrap();
    let line = format!(
        r#"RUN ["C:\\Windows\\System32\\icacls.exe", "C:\\app\\data", "/grant", "*S-1-5-93-2-2:(OI)(CI)M", "*{POOL}:(OI)(CI)RX"]"#
    );
    let copied = dockerfile.find("COPY").unwrap();
    assert!(dockerfile[copied..].contains(&line), "{dockerfile}");
}

#[test]
fn rights_on_what_the_recipe_does_not_add_go_by_what_the_base_has() {
    let site = Site::new();
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\n[[access]]\npath = 'C:\\inetpub'\ngrant = { Users = \"read\" }\n";
    site.write("recipe.toml", recipe);
    let planned = json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--dry-run"]),
    );
    assert_eq!(
        planned["plans"][0]["access"],
        json!([{
            "path": r"C:\inetpub",
            "grants": [{ "account": "Users", "rights": "read" }],
            "inherit": "all",
        }])
    );
    refusal(&site, &[r"C:\inetpub"]).advises(&["[[files]]"]);

    // The build reads the existing permissions from the base.
    site.write("recipe.toml", recipe.replace("inetpub", "License.txt"));
    let whole = refusal(&site, &[r"C:\License.txt"]);
    assert!(!whole.hint.contains("[[files]]"), "{whole:#?}");
}
