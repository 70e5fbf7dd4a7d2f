//! Services of recipes, read by hivex from the layer.

use std::process::Command;

use wincimg_testkit::component;

use super::host_process::files_of;
use crate::run_lines::utf16;
use crate::site::{Site, stderr};

const RECIPE: &str = r#"
name = "worker"
base = "nanoserver"

[[services]]
name = "Worker"
program = 'C:\Program Files\worker.exe'
start = "delayed-auto"
account = "NetworkService"
depends_on = ["RpcSs", "Dhcp"]
environment = { SIZE = "8" }
on_failure = { actions = [{ action = "restart", after = 120 }, { action = "restart", after = 300 }, { action = "nothing" }], reset_after = 900 }
"#;

#[test]
fn hivex_finds_the_service_as_windows_keeps_them() {
    let hivexget = component("hivexget");
    let site = Site::new();
    site.write("recipe.toml", RECIPE);
    let files = files_of(&site, &site.built_layer());
    let system = files.iter().find(|(path, _)| path == "Hives/System_Delta");
    let hive = site.write("delta", &system.unwrap().1);
    let output = Command::new(&hivexget)
        .arg(&hive)
        .arg(r"\ControlSet001\Services\Worker")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut lines: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    let mut expected = vec![
        "\"DelayedAutostart\"=dword:00000001".to_owned(),
        format!("\"DependOnService\"=hex(7):{}", utf16("RpcSs\0Dhcp\0\0")),
        "\"ErrorControl\"=dword:00000001".to_owned(),
        format!("\"Environment\"=hex(7):{}", utf16("SIZE=8\0\0")),
        "\"FailureActions\"=hex(3):84,03,00,00,00,00,00,00,00,00,00,00,03,00,00,00,14,00,00,00,01,00,00,00,c0,d4,01,00,01,00,00,00,e0,93,04,00,00,00,00,00,00,00,00,00".to_owned(),
        format!("\"ImagePath\"=str(2):\"{}\"", r#"\"C:\\Program Files\\worker.exe\""#),
        r#""ObjectName"="NT AUTHORITY\\NetworkService""#.to_owned(),
        "\"Start\"=dword:00000002".to_owned(),
        "\"Type\"=dword:00000010".to_owned(),
    ];
    expected.sort();
    assert_eq!(lines, expected);
}
