//! `image scan`, with documents in the form of Microsoft's.

use super::*;

/// A CVRF document of a month: vulnerabilities with their severity, exploitation and fixed build.
fn document(name: &str, day: &str, rows: &[(&str, &str, &str, &str)]) -> String {
    let vulnerabilities: Vec<Value> = rows
        .iter()
        .map(|(cve, severity, exploited, build)| {
            let status =
                format!("Publicly Disclosed:No;Exploited:{exploited};Latest Software Release:N/A");
            json!({
                "CVE": cve,
                "Title": {"Value": format!("Title of {cve}")},
                "Threats": [
                    {"Type": 0, "Description": {"Value": "Spoofing"}, "ProductID": ["11572"]},
                    {"Type": 3, "Description": {"Value": severity}, "ProductID": ["11572"]},
                    {"Type": 1, "Description": {"Value": status}},
                ],
                "Remediations": [{"Type": 2, "SubType": "Security Update", "FixedBuild": build,
                    "Description": {"Value": "5036896"}, "ProductID": ["11571", "11572"]}],
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
fn scanned() -> Images {
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
    fs::write(
        images.path("apr.json"),
        document("2024-Apr", "2024-04-09", &april),
    )
    .unwrap();
    fs::write(
        images.path("may.json"),
        document("2024-May", "2024-05-14", &may),
    )
    .unwrap();
    images
}

impl Images {
    fn scan(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(&["scan"]);
        command
            .args(arguments)
            .arg("--cache-dir")
            .arg(self.path("cache"));
        command.output().unwrap()
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
    let none = images.scan(&["oci:web"]);
    let errors = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("--msrc https://api.msrc.microsoft.com/"),
        "{errors}"
    );

    let first = images.scan_json(&["oci:web", "--msrc", "apr.json", "--msrc", "may.json"]);
    let expected = ["CVE-2024-0003", "CVE-2024-0002", "CVE-2024-0004"];
    assert_eq!(cves(&first), expected);
    let image = &first["images"][0];
    assert_eq!(
        image["summary"],
        json!({"critical": 1, "important": 1, "moderate": 1})
    );
    assert_eq!(
        (&image["exploited"], &image["known"]),
        (&json!(1), &json!(true))
    );
    let fix = &image["missing"][0];
    assert_eq!(
        (&fix["fixed_in"], &fix["kb"]),
        (&json!("17763.5820"), &json!("KB5036896"))
    );
    assert_eq!(
        (&first["table"]["newest"], &first["table"]["documents"]),
        (&json!("2024-May"), &json!(2))
    );
    assert!(first["table"]["age_days"].as_i64().unwrap() > 500);

    // The documents are not needed again.
    fs::remove_file(images.path("apr.json")).unwrap();
    fs::remove_file(images.path("may.json")).unwrap();
    assert_eq!(images.scan_json(&["oci:web"])["images"], first["images"]);
    let text = images.scan(&["oci:web"]);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in [
        "exploited",
        "3 missing: 1 critical, 1 important, 1 moderate",
        "as of 2024-May (2024-05-14)",
        "days ago",
    ] {
        assert!(text.contains(part), "{part}: {text}");
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
    let report = images.scan_json(&["oci:web", "--ignore", "CVE-2024-0002"]);
    assert_eq!(report["ignored"], json!(["CVE-2024-0002"]));
    assert_eq!(cves(&report), ["CVE-2024-0003", "CVE-2024-0004"]);
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
    assert!(errors.contains("no updates for this build"), "{errors}");
    let bad = images.path("bad.json");
    fs::write(&bad, "<cvrfdoc/>").unwrap();
    let output = images.scan(&["oci:web", "--msrc", "bad.json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("bad.json"),
        "{errors}"
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
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert!(
        message.contains("CVE-2024-0003") && message.contains("which is exploited"),
        "{message}"
    );
}
