//! Documents attached to images by `build`: valid according to the formats' own libraries,
//! reproducible, and attached once.

mod attached;
mod documents;
mod inspected;
mod mirrored;

use serde_json::{Value, json};
use wincimg_testkit::layout::blob_in;

use crate::site::{Site, json_of};

/// A recipe with packages of every kind that can be detected without a compiler.
fn with_packages() -> Site {
    let site = Site::new();
    site.write("app/web.config", "<configuration/>");
    site.write(
        "app/node_modules/left-pad/package.json",
        json!({"name": "left-pad", "version": "1.3.0", "license": "WTFPL"}).to_string(),
    );
    site.write(
        "app/node_modules/@scope/tool/package.json",
        json!({"name": "@scope/tool", "version": "2.0.0", "license": "MIT"}).to_string(),
    );
    site.write(
        "app/App.deps.json",
        json!({
            "targets": {".NETCoreApp,Version=v8.0": {
                "App/1.0.0": {"runtime": {"App.dll": {}}},
                "Newtonsoft.Json/13.0.3": {"runtime": {"lib/net6.0/Newtonsoft.Json.dll": {}}},
            }},
            "libraries": {
                "App/1.0.0": {"type": "project"},
                "Newtonsoft.Json/13.0.3": {"type": "package"},
            },
        })
        .to_string(),
    );
    site.write(
        "app/site-packages/requests-2.31.0.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: requests\nVersion: 2.31.0\n\nName: not this one\n",
    );
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"app\"\nto = 'C:\\app'\n\
         [[registry]]\nkey = 'HKLM\\SOFTWARE\\Vendor'\nvalues = { Name = \"x\" }\n",
    );
    site
}

/// The bytes of a document in a layout, given the output of `build`.
fn document_in(site: &Site, built: &Value, name: &str) -> Vec<u8> {
    let documents = built["images"][0]["documents"].as_array().unwrap();
    let reported = documents.iter().find(|it| it["document"] == name).unwrap();
    std::fs::read(blob_in(&site.path("layout"), &reported["content"])).unwrap()
}

fn build_to_layout(site: &Site, more: &[&str]) -> Value {
    let mut command = site.build(".");
    command.args(["--host-build", "17763.973", "--tag", "1"]);
    command.args(["--output", "oci:layout"]).args(more);
    json_of(&mut command)
}
