//! `image scan`, with documents in the form of Microsoft's.

use super::*;

/// A CVRF document of a month: vulnerabilities with their severity, exploitation and fixed build.
fn document(name: &str, day: &str, rows: &[(&str, &str, &str, &str)]) -> String {
    let vulnerabilities: Vec<Value> = rows
        .iter()
        .map(|(cve, severity, exploited, build)| {
            let status =
                format!("Publicly Disclosed:No;Exploited:{exploited};Latest Software Release:N/A");
            let kb = match *build {
                "10.0.17134.1130" => "4525237",
                "10.0.17763.5576" => "5035849",
                "10.0.17763.5696" => "5036896",
                "10.0.17763.5936" => "5039217",
                _ => "5037765",
            };
            json!({
                "CVE": cve,
                "Title": {"Value": format!("Title of {cve}")},
                "Threats": [
                    {"Type": 0, "Description": {"Value": "Spoofing"}, "ProductID": ["11572"]},
                    {"Type": 3, "Description": {"Value": severity}, "ProductID": ["11572"]},
                    {"Type": 1, "Description": {"Value": status}},
                ],
                "Remediations": [{"Type": 2, "SubType": "Security Update", "FixedBuild": build,
                    "Description": {"Value": kb}, "ProductID": ["11571", "11572"]}],
            })
        })
        .collect();
    json!({
        "DocumentTracking": {
            "Identification": {"ID": {"Value": name}},
            "InitialReleaseDate": format!("{day}T07:00:00"),
        },
        "ProductTree": {"FullProductName": [
            {"ProductID": "11571", "Value": "Windows Server 2019"},
            {"ProductID": "11572", "Value": "Windows Server 2019  (Server Core installation)"},
        ]},
        "Vulnerability": vulnerabilities,
    })
    .to_string()
}

/// An image of 2024-03, another build's, and documents of two months.
pub(super) fn scanned() -> Images {
    let images = Images::new();
    images.put("web", &image("17763.5576", vec![bottom()]));
    images.put("new", &image("26100.1742", vec![bottom()]));
    let april = [
        ("CVE-2024-0001", "Important", "No", "10.0.17763.5576"),
        ("CVE-2024-0002", "Critical", "No", "10.0.17763.5696"),
    ];
    let may = [
        ("CVE-2024-0003", "Important", "Yes", "10.0.17763.5820"),
        ("CVE-2024-0004", "Moderate", "No", "10.0.17763.5820"),
    ];
    images.write("apr.json", document("2024-Apr", "2024-04-09", &april));
    images.write("may.json", document("2024-May", "2024-05-14", &may));
    images
}

impl Images {
    fn scan(&self, arguments: &[&str]) -> Output {
        self.scan_command(arguments).output().unwrap()
    }

    fn scan_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&["scan", "--cache-dir", "cache"]);
        command.args(arguments);
        command
    }

    fn scan_json(&self, arguments: &[&str]) -> Value {
        let output = self.scan(&[arguments, &["--format", "json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"))
    }
}

fn cves(report: &Value) -> Vec<&str> {
    let missing = report["images"][0]["missing"].as_array().unwrap().iter();
    missing.map(|fix| fix["cve"].as_str().unwrap()).collect()
}

#[test]
fn what_the_documents_fix_later_is_missing_and_the_table_serves_offline() {
    let images = scanned();
    // Before the image is read.
    let errors = images.scan_command(&["oci:missing"]).tells(3);
    assert_contains!(errors, "--msrc https://api.msrc.microsoft.com/");

    let first = images.scan_json(&["oci:web", "--msrc", "apr.json", "--msrc", "may.json"]);
    let expected = ["CVE-2024-0003", "CVE-2024-0002", "CVE-2024-0004"];
    assert_eq!(cves(&first), expected);
    let image = &first["images"][0];
    assert_eq!(
        image["summary"],
        json!({"critical": 1, "important": 1, "moderate": 1, "low": 0, "unrated": 0})
    );
    assert_eq!(image["exploited"], 1);
    assert_eq!(image["known"], true);
    let fix = &image["missing"][0];
    assert_eq!(fix["fixed_in"], "17763.5820");
    assert_eq!(fix["kb"], "KB5037765");
    assert_eq!(first["table"]["newest"], "2024-May");
    assert_eq!(first["table"]["documents"], 2);
    assert!(first["table"]["age_days"].as_i64().unwrap() > 500);

    let sarif = images.scan(&["oci:web", "-o", "web.sarif"]);
    assert_eq!(sarif.status.code(), Some(0));
    let sarif = fs::read(images.path("web.sarif")).unwrap();
    let sarif: Value = serde_json::from_slice(&sarif).unwrap();
    assert_eq!(sarif["version"], "2.1.0");

    // The documents are not needed again.
    fs::remove_file(images.path("apr.json")).unwrap();
    fs::remove_file(images.path("may.json")).unwrap();
    assert_eq!(images.scan_json(&["oci:web"])["images"], first["images"]);
    let text = images.scan(&["oci:web"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert_contains!(
        text,
        "exploited",
        "3 missing: 1 critical, 1 important, 1 moderate",
        "as of 2024-May (2024-05-14)",
        "days ago"
    );
}

/// The vulnerabilities that a document fixes for a product after a revision, each with its severity.
const FIGURES: &str = r#"
import json, sys
document, product, revision = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
found = {}
for entry in document["Vulnerability"]:
    fixes = [fix for fix in entry["Remediations"] if fix["Type"] == 2 and product in fix["ProductID"]]
    severities = [threat["Description"]["Value"] for threat in entry["Threats"] if threat["Type"] == 3]
    if fixes and min(int(fix["FixedBuild"].split(".")[3]) for fix in fixes) > revision:
        found[entry["CVE"]] = severities[0].lower()
json.dump(found, sys.stdout)
"#;

#[test]
fn the_figures_are_those_of_the_document() {
    let images = scanned();
    for document in ["apr.json", "may.json"] {
        let mut command = Command::new(component("python3"));
        let file = images.path(document);
        let output = run(command
            .args(["-c", FIGURES])
            .arg(file)
            .args(["11572", "5576"]));
        let expected: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!expected.is_empty());
        let cache = images.path("cache");
        let _ = fs::remove_dir_all(&cache);
        let report = images.scan_json(&["oci:web", "--msrc", document]);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let missing = report["images"][0]["missing"].as_array().unwrap().iter();
        let found: BTreeMap<String, String> = missing
            .map(|fix| (text(&fix["cve"]), text(&fix["severity"])))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_exit_code_follows_the_severity_and_what_is_ignored() {
    let images = scanned();
    let code = |arguments: &[&str]| {
        let all = [
            &["oci:web", "--msrc", "apr.json", "--msrc", "may.json"],
            arguments,
        ]
        .concat();
        images.scan(&all).status.code()
    };
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--fail-on", "critical"]), Some(1));
    assert_eq!(
        code(&["--fail-on", "critical", "--ignore", "cve-2024-0002"]),
        Some(0)
    );
    assert_eq!(
        code(&["--fail-on", "important", "--ignore", "CVE-2024-0002"]),
        Some(1)
    );
    assert_eq!(code(&["--fail-on", "exploited"]), Some(1));
    assert_eq!(
        code(&["--fail-on", "exploited", "--ignore", "CVE-2024-0003"]),
        Some(0)
    );
    // What cannot be judged does not pass.
    images.put("odd", &image("30000.1", vec![bottom()]));
    let odd = |arguments: &[&str]| images.scan(&[&["oci:odd"], arguments].concat()).status;
    assert_eq!(odd(&[]).code(), Some(0));
    assert_eq!(odd(&["--fail-on", "critical"]).code(), Some(1));
    let report = images.scan_json(&["oci:web", "--ignore", "CVE-2024-0002"]);
    let ignored = &report["images"][0]["ignored"];
    assert_eq!(ignored.as_array().unwrap().len(), 1);
    assert_eq!(ignored[0]["cve"], "CVE-2024-0002");
    assert_eq!(ignored[0]["vex"], Value::Null);
    assert_eq!(cves(&report), ["CVE-2024-0003", "CVE-2024-0004"]);
    // What is not rated may be of any severity.
    let june = document(
        "2024-Jun",
        "2024-06-11",
        &[("CVE-2024-0005", "", "No", "10.0.17763.5936")],
    );
    images.write("jun.json", june);
    images.put("late", &image("17763.5820", vec![bottom()]));
    let late = |least: &str| {
        let arguments = ["oci:late", "--msrc", "jun.json", "--fail-on", least];
        images.scan(&arguments).status.code()
    };
    assert_eq!(late("critical"), Some(1));
    assert_eq!(late("exploited"), Some(0));
}

#[test]
fn what_contains_no_windows_lacks_no_updates_and_a_wrong_version_is_named() {
    let images = scanned();
    let mut tar = LayerTar::default();
    tar.file("Files/app.exe", b"MZ", None);
    let mut host_process = image_of("", vec![tar.tar()]);
    host_process.image = host_process
        .image
        .edit_config(|config| config.os_version = None)
        .unwrap();
    images.put("hpc", &host_process);
    let mut linux = host_process;
    let edited = linux.image.edit_config(|config| config.os = "linux".into());
    linux.image = edited.unwrap();
    images.put("linux", &linux);
    images.put("odd", &image_of("foo", vec![bottom()]));
    let documents = ["--msrc", "apr.json", "--fail-on", "critical"];
    let scan = |name: &str| images.scan(&[&[name], &documents[..]].concat());

    let other = scan("oci:linux");
    assert_eq!(other.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&other.stderr);
    assert_contains!(errors, "is for linux/amd64, not for Windows");

    let output = scan("oci:hpc");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_contains!(text, "contains no Windows");
    let report = images.scan_json(&["oci:hpc"]);
    let image = &report["images"][0];
    assert_eq!(image["windows"], false);
    assert_eq!(image["known"], false);

    let output = scan("oci:odd");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_contains!(errors, "os.version \"foo\" is not a version of Windows");
}

/// An `OpenVEX` document about the image, and a CSAF document about its Windows.
pub(super) fn vex(images: &Images) {
    let of_image = json!({
        "@context": "https://openvex.dev/ns/v0.2.0",
        "timestamp": "2024-06-01T00:00:00Z",
        "statements": [{
            "vulnerability": {"name": "CVE-2024-0002"},
            "products": [{"@id": "pkg:oci/web"}],
            "status": "not_affected",
            "justification": "vulnerable_code_not_in_execute_path",
        }],
    });
    let of_windows = json!({
        "document": {"category": "csaf_vex", "csaf_version": "2.0"},
        "product_tree": {"full_product_names": [{
            "product_id": "W",
            "name": "Windows Server 2019",
            "product_identification_helper": {"cpe": "cpe:/o:microsoft:windows_server_2019"},
        }]},
        "vulnerabilities": [{
            "cve": "CVE-2024-0003",
            "product_status": {"known_not_affected": ["W"]},
            "threats": [{"category": "impact", "details": "No printer."}],
        }],
    });
    images.write("web.vex.json", of_image.to_string());
    images.write("csaf.json", of_windows.to_string());
}

#[test]
fn what_vex_settles_is_ignored_and_said_with_its_reason() {
    let images = scanned();
    images.put("other", &image("17763.5576", vec![bottom()]));
    vex(&images);
    let arguments = [
        "oci:web", "--msrc", "apr.json", "--msrc", "may.json", "--vex", "web.vex.json", "--vex",
        "csaf.json",
    ];
    let report = images.scan_json(&arguments);
    assert_eq!(cves(&report), ["CVE-2024-0004"]);
    let ignored = report["images"][0]["ignored"].as_array().unwrap().iter();
    let rows: Vec<(&str, &str, &str, &str)> = ignored
        .map(|it| {
            let field = |name: &str| it[name].as_str().unwrap();
            (field("cve"), field("status"), field("vex"), field("reason"))
        })
        .collect();
    let expected = [
        ("CVE-2024-0003", "not_affected", "csaf.json", "No printer."),
        (
            "CVE-2024-0002",
            "not_affected",
            "web.vex.json",
            "vulnerable_code_not_in_execute_path",
        ),
    ];
    assert_eq!(rows, expected);
    assert_eq!(report["images"][0]["exploited"], 0);
    let text = images.scan(&[&arguments[..], &["--fail-on", "important"]].concat());
    assert_eq!(text.status.code(), Some(0));
    let text = String::from_utf8(text.stdout).unwrap();
    assert_contains!(
        text,
        "ignored: not affected, says csaf.json: No printer.",
        "1 missing: 1 moderate; 0 exploited (2 ignored)"
    );
    // The first document is about the other image alone.
    let other = images.scan_json(&["oci:other", "--vex", "web.vex.json"]);
    assert_eq!(cves(&other).len(), 3);

    let output = images.scan(&[&arguments[..], &["--format", "sarif"]].concat());
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    let suppressed = results.filter(|it| it["suppressions"][0]["kind"] == "external");
    assert_eq!(suppressed.count(), 2);

    images.write("apr.json", "{}");
    let errors = images
        .scan_command(&["oci:web", "--vex", "apr.json"])
        .tells(2);
    assert_contains!(errors, "cannot use apr.json as VEX");
}

#[test]
fn an_empty_document_is_named_as_such() {
    let images = scanned();
    images.write("empty.json", "\n");
    for flag in ["--msrc", "--vex"] {
        let errors = images
            .scan_command(&["oci:web", flag, "empty.json"])
            .tells(2);
        assert_contains!(errors, "it is empty", &format!("hint: {flag} takes "));
    }
}

#[test]
fn a_document_in_utf_16_is_named_as_such() {
    let images = scanned();
    for (flag, text) in [
        ("--msrc", "{\"DocumentTracking\": {}}"),
        ("--msrc", "<cvrfdoc/>"),
        ("--vex", "{\"statements\": []}"),
    ] {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        fs::write(images.path("powershell"), bytes).unwrap();
        let errors = images
            .scan_command(&["oci:web", flag, "powershell"])
            .tells(2);
        assert_contains!(errors, "it is not UTF-8", "hint: save it as UTF-8");
    }
}

#[test]
fn vex_that_names_the_digest_of_an_index_counts_for_its_tag() {
    let images = scanned();
    let entries = [image("17763.5576", vec![bottom()])];
    let index = block_on(async {
        let sink = images.sink("listed").await;
        put_index(ManifestFormat::Docker, &entries, &sink, Some("1")).await
    });
    let about = |digest: &str| {
        let document = json!({
            "@context": "https://openvex.dev/ns/v0.2.0",
            "timestamp": "2024-06-01T00:00:00Z",
            "statements": [{
                "vulnerability": {"name": "CVE-2024-0002"},
                "products": [{"@id": format!("pkg:oci/listed@{digest}")}],
                "status": "fixed",
            }],
        });
        images.write("listed.json", document.to_string());
        let flags = ["--msrc", "apr.json", "--vex", "listed.json"];
        let report = images.scan_json(&[&["oci:listed:1"][..], &flags].concat());
        cves(&report).len()
    };
    assert_eq!(about(index.digest().as_ref()), 0);
    assert_eq!(about(entries[0].image.digest().as_ref()), 0);
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(about(&other), 1);
}

#[test]
fn a_document_may_be_xml() {
    let images = scanned();
    let xml = r#"<?xml version="1.0" encoding="utf-8"?>
<cvrf:cvrfdoc xmlns:cvrf="http://www.icasi.org/CVRF/schema/cvrf/1.1">
  <cvrf:DocumentTracking>
    <cvrf:Identification><cvrf:ID>2024-Jun</cvrf:ID></cvrf:Identification>
    <cvrf:InitialReleaseDate>2024-06-11T07:00:00</cvrf:InitialReleaseDate>
  </cvrf:DocumentTracking>
  <prod:ProductTree xmlns:prod="http://www.icasi.org/CVRF/schema/prod/1.1">
    <prod:FullProductName ProductID="11572">Windows Server 2019  (Server Core installation)</prod:FullProductName>
  </prod:ProductTree>
  <vuln:Vulnerability Ordinal="1" xmlns:vuln="http://www.icasi.org/CVRF/schema/vuln/1.1">
    <vuln:Title>Win32k &amp; more</vuln:Title>
    <vuln:CVE>CVE-2024-0005</vuln:CVE>
    <vuln:Threats>
      <vuln:Threat Type="Severity"><vuln:Description>Critical</vuln:Description><vuln:ProductID>11572</vuln:ProductID></vuln:Threat>
      <vuln:Threat Type="Exploit Status"><vuln:Description>Publicly Disclosed:No;Exploited:Yes</vuln:Description></vuln:Threat>
    </vuln:Threats>
    <vuln:Remediations>
      <vuln:Remediation Type="Vendor Fix">
        <vuln:Description>5039217</vuln:Description>
        <vuln:ProductID>11572</vuln:ProductID>
        <vuln:SubType>Security Update</vuln:SubType>
        <vuln:FixedBuild>10.0.17763.5936</vuln:FixedBuild>
      </vuln:Remediation>
    </vuln:Remediations>
  </vuln:Vulnerability>
</cvrf:cvrfdoc>
"#;
    images.write("jun.xml", xml);
    let report = images.scan_json(&["oci:web", "--msrc", "jun.xml"]);
    assert_eq!(cves(&report), ["CVE-2024-0005"]);
    let fix = &report["images"][0]["missing"][0];
    assert_eq!(
        (
            &fix["title"], &fix["severity"], &fix["exploited"], &fix["kb"]
        ),
        (
            &json!("Win32k & more"),
            &json!("critical"),
            &json!(true),
            &json!("KB5039217")
        )
    );
}

#[test]
fn check_compat_counts_what_images_lack_if_the_table_is_there() {
    let images = scanned();
    let node = json!({"kind": "Node", "metadata": {"name": "n"}, "status": {"nodeInfo":
        {"operatingSystem": "windows", "kernelVersion": "10.0.17763.5820"}}});
    images.write("nodes.json", node.to_string());
    let check = |format: &str| {
        let words = [
            "check-compat", "oci:web", "oci:new", "--nodes", "nodes.json",
        ];
        let mut command = wincimg(images.folder.path(), &words);
        command.args(["--format", format, "--cache-dir", "cache"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(!check("text").contains("security"), "{}", check("text"));
    let without: Value = serde_json::from_str(&check("json")).unwrap();
    assert_eq!(without["missing_fixes"], Value::Null);

    images.scan(&["oci:web", "--msrc", "apr.json", "--msrc", "may.json"]);
    let found: Value = serde_json::from_str(&check("json")).unwrap();
    let found = &found["missing_fixes"];
    assert_eq!(found["table"]["newest"], "2024-May");
    let expected = json!([
        {"reference": "oci:new", "build": "26100.1742", "known": false, "missing": 0,
            "critical": 0, "exploited": 0},
        {"reference": "oci:web", "build": "17763.5576", "known": true, "missing": 3,
            "critical": 1, "exploited": 1},
    ]);
    assert_eq!(found["images"], expected);
    for format in ["text", "markdown", "html"] {
        let text = check(format);
        // A terminal breaks lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "security updates as of 2024-May (2024-05-14)",
            "oci:web (17763.5576) lacks 3 security fixes, 1 critical, 1 exploited",
            "wincimg image scan oci:web",
        ] {
            assert!(text.contains(part), "{format}, {part}: {text}");
        }
    }
    let sarif: Value = serde_json::from_str(&check("sarif")).unwrap();
    let mut results = sarif["runs"][0]["results"].as_array().unwrap().iter();
    assert!(results.any(|it| it["ruleId"] == "missing-fixes" && it["level"] == "note"));
    assert!(check("junit").contains("lacks 3 security fixes"));
}

#[test]
fn a_build_without_documents_is_unknown_and_not_clean() {
    let images = scanned();
    let output = images.scan(&["oci:new", "--msrc", "apr.json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("unknown") && !text.contains("nothing missing"),
        "{text}"
    );
    assert_contains!(errors, "no updates for this build");
    assert_eq!(output.status.code(), Some(0), "{errors}");
    // A gate does not let it pass.
    for severity in ["low", "exploited"] {
        let errors = images
            .scan_command(&["oci:new", "--fail-on", severity])
            .tells(1);
        assert!(errors.contains("fails --fail-on"), "{errors}");
    }
    let errors = images
        .scan_command(&["oci:web", "--msrc", "2026-Sep"])
        .tells(3);
    assert_contains!(
        errors,
        "--msrc https://api.msrc.microsoft.com/cvrf/v3.0/cvrf/2026-Sep"
    );
    images.write("bad.json", "<cvrfdoc/>");
    let output = images.scan(&["oci:web", "--msrc", "bad.json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("bad.json"),
        "{errors}"
    );
}

#[test]
fn months_that_the_table_lacks_are_warned_of() {
    let images = scanned();
    let errors = images
        .scan_command(&["oci:web", "--msrc", "may.json"])
        .tells(0);
    let warning = "warning: oci:web (windows/amd64:10.0.17763.5576): the table has 1 of the 2 months \
                   since its last update (2024-03): more may be missing";
    assert_contains!(errors, warning);
    let errors = images
        .scan_command(&["oci:web", "--msrc", "apr.json"])
        .tells(0);
    assert!(!errors.contains("more may be missing"), "{errors}");
}

#[test]
fn a_release_is_unknown_after_the_end_of_its_support_and_keeps_its_list() {
    let images = scanned();
    images.put("last", &image("17134.1130", vec![bottom()]));
    images.put("older", &image("17134.1069", vec![bottom()]));
    let november = [("CVE-2019-0001", "Low", "No", "10.0.17134.1130")];
    images.write("nov.json", document("2019-Nov", "2019-11-12", &november));
    let scan = |arguments: &[&str]| images.scan(&[arguments, &["--fail-on", "critical"]].concat());
    // Within its support.
    let output = scan(&["oci:last", "--msrc", "nov.json"]);
    assert_eq!(output.status.code(), Some(0));

    let output = scan(&["oci:last", "--msrc", "may.json"]);
    assert_eq!(output.status.code(), Some(1));
    let why = "support of its Windows ended on 2019-11-12";
    let text = String::from_utf8_lossy(&output.stdout);
    assert_contains!(text, &format!("unknown: {why}"));
    assert_contains!(String::from_utf8_lossy(&output.stderr), why);

    let output = scan(&["oci:older"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = format!("1 missing: 1 low; 0 exploited; others unknown: {why}");
    assert_contains!(text, "CVE-2019-0001", &counts);
    let report = images.scan_json(&["oci:older"]);
    assert_eq!(report["images"][0]["known"], false);
    let words = [
        "check-compat", "oci:last", "oci:older", "--host-build", "17134.1130", "--cache-dir",
        "cache",
    ];
    let output = wincimg(images.folder.path(), &words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // A terminal breaks lines.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let counts = "1 image without all security fixes, 1 image that cannot be judged";
    assert_contains!(text, counts);
}

#[test]
fn a_version_without_a_revision_is_unknown_and_not_clean() {
    let images = scanned();
    images.put("build", &image("17763", vec![bottom()]));
    let report = images.scan_json(&["oci:build", "--msrc", "apr.json"]);
    assert_eq!(report["images"][0]["known"], json!(false));
    let output = images.scan(&["oci:build", "--fail-on", "low"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}{errors}");
    let reason = r#"its os.version "10.0.17763" has no revision"#;
    assert_contains!(text, &format!("unknown: {reason}"));
    assert_contains!(errors, reason);
}

#[test]
fn a_damaged_table_is_named_and_replaced() {
    let images = scanned();
    images.write("cache/security-updates.tsv", "junk\n");
    for (arguments, code) in [
        (&["oci:web"][..], 3),
        (&["oci:web", "--msrc", "apr.json"], 0),
    ] {
        let errors = images.scan_command(arguments).tells(code);
        assert_contains!(errors, "warning: ", "security-updates.tsv", "--msrc");
    }
    let errors = images.scan_command(&["oci:web"]).tells(0);
    assert!(!errors.contains("warning"), "{errors}");
}

#[test]
fn runs_at_once_lose_no_document() {
    let images = scanned();
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"];
    let runs = months.map(|month| {
        let file = format!("{month}.json");
        let text = document(&format!("2024-{month}"), "2024-04-09", &[]);
        images.write(&file, text);
        let mut command = images.command(&["scan", "oci:web", "--msrc", &file]);
        command.arg("--cache-dir").arg(images.path("new"));
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    let table = fs::read_to_string(images.path("new/security-updates.tsv")).unwrap();
    assert_eq!(table.lines().count(), months.len(), "{table}");
}

#[test]
fn sarif_has_a_result_for_an_image_that_cannot_be_judged_and_tells_images_of_an_index_apart() {
    let images = scanned();
    // Two lack the same update, and of one build there are no documents.
    let entries = ["17763.5576", "17763.5600", "26100.1742"];
    let entries = entries.map(|build| image(build, vec![bottom()]));
    block_on(async {
        let sink = images.sink("index").await;
        put_index(ManifestFormat::Docker, &entries, &sink, Some("1")).await
    });
    let output = images.scan(&["oci:index:1", "--msrc", "apr.json", "--format", "sarif"]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let expected = ["critical-update", "critical-update", "unknown-image"];
    assert_eq!(each(&log["runs"][0]["results"], "ruleId"), expected);
    let fingerprints: BTreeSet<&str> = results
        .iter()
        .map(|it| it["partialFingerprints"]["wincimg/v1"].as_str().unwrap())
        .collect();
    assert_eq!(fingerprints.len(), results.len(), "{fingerprints:?}");
    let rules = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    let index = usize::try_from(results[2]["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(rules[index]["id"], "unknown-image");
    let message = results[2]["message"]["text"].as_str().unwrap();
    assert_contains!(
        message,
        "windows/amd64:10.0.26100.1742",
        "no updates for this build"
    );
}

#[test]
fn sarif_has_a_result_for_each_vulnerability() {
    let images = scanned();
    let output = images.scan(&[
        "oci:web", "--msrc", "apr.json", "--msrc", "may.json", "--format", "sarif",
    ]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rows: Vec<(&str, &str)> = results
        .iter()
        .map(|it| {
            (
                it["ruleId"].as_str().unwrap(),
                it["level"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("important-update", "error"),
        ("critical-update", "error"),
        ("moderate-update", "warning"),
    ];
    assert_eq!(rows, expected);
    for result in results {
        let place = &result["locations"][0]["physicalLocation"];
        let file = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(images.path(file).is_file(), "{result}");
    }
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert_contains!(message, "CVE-2024-0003", "which is exploited");
}
