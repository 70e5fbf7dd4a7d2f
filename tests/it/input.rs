//! Input files in the formats of common tools.

use predicates::prelude::*;
use predicates::str::contains;

use crate::failure::{Fails, Failure};
use crate::site::wincimg;

const NODES: &str = r#"{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "knoten-ä"},
    "status": {"nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.17763.973"}}}]}"#;

fn checked(nodes: &[u8]) -> assert_cmd::assert::Assert {
    let arguments = ["check-compat", "--image-build", "17763.973", "--nodes", "-"];
    wincimg(&std::env::temp_dir(), &arguments)
        .args(["--format", "json"])
        .write_stdin(nodes)
        .assert()
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(to_bytes).collect()
}

#[test]
fn a_node_list_may_have_a_mark_or_come_from_powershell() {
    let marked = ["\u{FEFF}", NODES].concat();
    for bytes in [
        marked.into_bytes(),
        utf16(NODES, u16::to_le_bytes),
        utf16(NODES, u16::to_be_bytes),
    ] {
        checked(&bytes).code(0).stdout(contains("knoten-ä"));
    }
}

#[test]
fn a_list_of_nothing_is_distinguished_from_a_text_that_is_none() {
    let mut cut = utf16(NODES, u16::to_le_bytes);
    cut.pop();
    let half_mark = utf16("", u16::to_le_bytes);
    for (bytes, code, values, hint) in [
        (&b""[..], "cluster/nodes", &[][..], "kubectl"),
        (b"\r\n\r\n", "cluster/nodes", &[], "kubectl"),
        (&half_mark, "cluster/nodes", &[], "kubectl"),
        (
            br#"{"kind": "List", "items": null}"#,
            "cluster/nodes",
            &[],
            "kubectl config current-context",
        ),
        (&cut, "usage", &["UTF-16"], "UTF-8"),
    ] {
        let refused = checked(bytes).code(2);
        let failure = Failure::of(refused.get_output())
            .is(code, values)
            .advises(&[hint]);
        let is_list = failure.hint.contains("current-context");
        assert_eq!(is_list, bytes.starts_with(b"{"), "{failure:#?}");
    }
}

/// Files that people write, as `PowerShell`'s `>` writes them.
#[test]
fn a_file_in_utf16_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"web\"\nbase = \"nanoserver\"\n";
    for name in ["recipe.toml", "Dockerfile", "fleet.toml", "defaults.toml"] {
        let bytes = utf16(text, u16::to_le_bytes);
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let host = ["--host-build", "17763.973"];
    for words in [
        &["build", "./recipe.toml"][..],
        &["build", "./Dockerfile"],
        &["convert", "Dockerfile"],
        &["lint", "Dockerfile"],
        &["fleet", "check", "fleet.toml"],
        &["--config", "defaults.toml", "render", "pause"],
    ] {
        let has_host = words[0] != "convert" && words[0] != "lint";
        wincimg(folder.path(), words)
            .args(host.iter().filter(|_| has_host))
            .assert()
            .code(3)
            .stderr(contains("byte 0 is not UTF-8").and(contains("hint: save it as UTF-8; ")));
    }
}

#[test]
fn a_binary_file_is_refused_as_by_other_commands() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list"), b"\x7fELF\xff").unwrap();
    for words in [
        ["--host-build", "17763.973", "-f"],
        ["--image-build", "17763.973", "--nodes"],
    ] {
        wincimg(folder.path(), &["check-compat"])
            .args(words)
            .arg("list")
            .fails(3, "file/io", &["cannot read list", "byte 4 is not UTF-8"])
            .advises(&["save it as UTF-8"]);
    }
}

#[test]
fn a_missing_list_says_where_it_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let list = |nodes: &str| {
        wincimg(folder.path(), &["check-compat", "--image-build", "17763.1"])
            .args(["--nodes", nodes])
            .fails(3, "file/io", &["nosuch.json"])
    };
    list("nosuch.json").advises(&["working directory"]);
    for words in [
        &["fleet", "check", "nosuch.json", "--host-build", "17763.1"][..],
        &["--config", "nosuch.json", "recipe", "list"],
    ] {
        let said = wincimg(folder.path(), words).tells(3);
        assert_contains!(said, "nosuch.json", "hint: its path is relative");
    }
    assert_eq!(list("/nosuch.json").hint, "");
}

#[test]
fn lists_have_a_limit() {
    let folder = wincimg_testkit::folder_for_holes();
    let file = std::fs::File::create(folder.path().join("list.json")).unwrap();
    file.set_len(257 << 20).unwrap();
    for words in [
        ["--host-build", "17763.973", "-f"],
        ["--image-build", "17763.973", "--nodes"],
    ] {
        wincimg(folder.path(), &["check-compat"])
            .args(words)
            .arg("list.json")
            .assert()
            .code(3)
            .stderr(contains("larger than 268435456 bytes"));
    }
}
