//! Security updates of Windows, from the CVRF documents of Microsoft's Security Response Center: one
//! document a month in JSON or XML, kept as one compact table.
//!
//! A document lists vulnerabilities, each with its severity and fixes: an article, the products that
//! it is for, and the first build with it. Images are Server Core installations, so the table has
//! only these products, and no hotpatches. The first version with a fix is that of its article in
//! the table of updates, if that has it.

mod document;
mod xml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use document::{CvrfDocument, is_plain};
use jiff::civil::Date;
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderValue};
use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::files;
use wincimg_common::progress::Progress;
use wincimg_http::{AddressPolicy, Exchange, HttpClient, file_error};
use wincimg_windows::missing_fixes::TableAge;
use wincimg_windows::release::support_ended;
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::cache::{load_table, lock_table, store_table};

/// Limit on the size of a document.
const LARGEST_DOCUMENT: u64 = 128 << 20;

/// Severity of a vulnerability, by Microsoft's rating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Named)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Not rated.
    Unrated,
    /// Low.
    Low,
    /// Moderate.
    Moderate,
    /// Important.
    Important,
    /// Critical.
    Critical,
}

/// A fix of a vulnerability for one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecurityFix {
    /// The vulnerability.
    pub cve: String,
    /// Its title.
    pub title: String,
    /// Its severity.
    pub severity: Severity,
    /// True if it is exploited.
    pub exploited: bool,
    /// Number of the product.
    #[serde(skip)]
    pub product: String,
    /// First version with the fix.
    pub fixed_in: WindowsVersion,
    /// Article of the update.
    pub kb: Option<Kb>,
    /// Release of the document.
    pub released: Date,
    /// The document, `2026-Sep`.
    pub document: String,
}

impl SecurityFix {
    /// Returns true if it is for a product or for a part of it, such as .NET Framework on Windows
    /// (`11723-10855`), whose fixes come with the update of Windows.
    fn is_for(&self, product: &str) -> bool {
        let part = self.product.strip_suffix(product);
        part.is_some_and(|part| part.is_empty() || part.ends_with('-'))
    }
}

/// Fixes of all documents that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityUpdates {
    fixes: Vec<SecurityFix>,
    /// The documents with their releases.
    documents: BTreeMap<String, Date>,
}

impl SecurityUpdates {
    /// Its age on a day; none if it has no documents. A document with a date in the future is not
    /// the newest: the date is a mistake.
    pub fn age(&self, today: Date) -> Option<TableAge> {
        // It may be tomorrow already elsewhere.
        let latest = today.tomorrow().unwrap_or(today);
        let documents = self.documents.iter();
        let (newest, &released) =
            documents.max_by_key(|(_, released)| (**released <= latest, **released))?;
        Some(TableAge {
            documents: self.documents.len(),
            newest: newest.clone(),
            released,
            age_days: today
                .since(released)
                .map_or(0, |span| span.get_days().max(0)),
        })
    }

    /// The number of months after that of a day, up to that of another, with documents and in all.
    pub fn months_since(&self, day: Date, newest: Date) -> (usize, usize) {
        let month = |day: Date| i32::from(day.year()) * 12 + i32::from(day.month());
        let months = (month(day) + 1)..=month(newest);
        let released = self.documents.values().map(|released| month(*released));
        let known: BTreeSet<i32> = released.filter(|it| months.contains(it)).collect();
        (known.len(), months.count())
    }

    /// Returns true if it knows what a version lacks at the release of the newest document: it has
    /// fixes for the build, and the version a revision to compare with them. After the end of
    /// support, documents are silent about what a build lacks, unless the newest one mentions it.
    pub fn covers(&self, version: WindowsVersion, newest: Date) -> bool {
        let is_supported = support_ended(version.build, newest).is_none();
        let mut fixes = self.fixes.iter();
        version.revision.is_some()
            && fixes.any(|fix| {
                fix.fixed_in.build == version.build && (is_supported || fix.released >= newest)
            })
    }

    /// The fixes that a version of Windows lacks, the most severe first. A vulnerability counts as
    /// fixed with the first update that has a fix.
    pub fn missing(&self, version: WindowsVersion, product: Option<&str>) -> Vec<&SecurityFix> {
        let Some(revision) = version.revision else {
            return Vec::new();
        };
        let mut first: BTreeMap<&str, &SecurityFix> = BTreeMap::new();
        let of_build = self.fixes.iter().filter(|fix| {
            fix.fixed_in.build == version.build && product.is_none_or(|it| fix.is_for(it))
        });
        for fix in of_build {
            let known = first.entry(&fix.cve).or_insert(fix);
            if fix.fixed_in.revision < known.fixed_in.revision {
                *known = fix;
            }
        }
        let mut missing: Vec<&SecurityFix> = first
            .into_values()
            .filter(|fix| fix.fixed_in.revision.is_some_and(|fixed| fixed > revision))
            .collect();
        missing.sort_by(|a, b| {
            let order = (b.exploited, b.severity).cmp(&(a.exploited, a.severity));
            order.then_with(|| a.cve.cmp(&b.cve))
        });
        missing
    }

    /// Adds a document, and replaces what an earlier version of it said.
    pub(crate) fn add(&mut self, document: &[u8]) -> Result<(), Problem> {
        let read = CvrfDocument::read(document)?;
        let name = read.name();
        let released = read.released();
        let released = released.ok_or_else(|| invalid("it has no release date"))?;
        if !is_plain(name) {
            return Err(invalid("its name is invalid"));
        }
        self.merge(Self {
            fixes: read.fixes(name, released),
            documents: BTreeMap::from([(name.to_owned(), released)]),
        });
        Ok(())
    }

    /// Adds documents, and replaces what earlier versions of them said.
    fn merge(&mut self, newer: Self) {
        let is_kept = |fix: &SecurityFix| !newer.documents.contains_key(&fix.document);
        self.fixes.retain(is_kept);
        self.fixes.extend(newer.fixes);
        self.fixes.sort_by(|a, b| {
            let order = a.cve.cmp(&b.cve).then_with(|| a.product.cmp(&b.product));
            order.then_with(|| a.fixed_in.cmp(&b.fixed_in))
        });
        self.documents.extend(newer.documents);
    }

    /// Reads a table.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let mut table = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let fields: Vec<&str> = line.split('\t').collect();
            let row = table.add_row(&fields);
            row.ok_or_else(|| invalid(&format!("line {number} of the table is invalid")))?;
        }
        Ok(table)
    }

    fn add_row(&mut self, fields: &[&str]) -> Option<()> {
        match fields {
            ["document", name, released] => {
                self.documents
                    .insert((*name).to_owned(), released.parse().ok()?);
            }
            [
                "fix",
                cve,
                severity,
                exploited,
                product,
                fixed_in,
                kb,
                document,
                title,
            ] => {
                self.fixes.push(SecurityFix {
                    cve: (*cve).to_owned(),
                    title: (*title).to_owned(),
                    severity: Severity::from_name(&severity.to_ascii_lowercase())?,
                    exploited: *exploited == "yes",
                    product: (*product).to_owned(),
                    fixed_in: fixed_in.parse().ok()?,
                    kb: match *kb {
                        "" => None,
                        kb => Some(kb.parse().ok()?),
                    },
                    released: *self.documents.get(*document)?,
                    document: (*document).to_owned(),
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Loads the table that earlier runs kept; empty without one.
    pub fn load(path: &Path) -> Result<Self, BoxError> {
        let table = load_table(path, "security updates", Self::parse)?;
        Ok(table.unwrap_or_default())
    }

    /// Adds its documents to the table that earlier runs kept, for later runs, and returns that.
    /// Other processes that do so wait meanwhile.
    pub fn add_to(
        self,
        path: &Path,
        kept: impl FnOnce() -> Self,
        progress: &dyn Progress,
    ) -> Result<Self, BoxError> {
        let _held = lock_table(path, progress)?;
        let mut table = kept();
        table.merge(self);
        store_table(path, &table.to_string())?;
        Ok(table)
    }

    /// Reads a document from a file or a URL, and adds it.
    pub async fn fetch(&mut self, http: &HttpClient, place: &str) -> Result<(), BoxError> {
        let bytes = match place.parse::<Url>() {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                let mut exchange = Exchange::get("read the security updates", url);
                exchange.addresses = AddressPolicy::ThisMachineToo;
                let forms = HeaderValue::from_static("application/json, application/xml;q=0.5");
                exchange.headers.insert(ACCEPT, forms);
                let read = http.retry(|| http.page(&exchange, LARGEST_DOCUMENT)).await;
                read?.into_bytes()
            }
            _ => {
                let path = Path::new(place);
                files::read(path, LARGEST_DOCUMENT).map_err(file_error("read", path))?
            }
        };
        self.add(&bytes).map_err(|problem| {
            Problem::context(format!("cannot use {place} as security updates"), problem).into()
        })
    }
}

impl fmt::Display for SecurityUpdates {
    /// Writes the table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, released) in &self.documents {
            writeln!(f, "document\t{name}\t{released}")?;
        }
        for fix in &self.fixes {
            let SecurityFix {
                cve,
                title,
                severity,
                exploited,
                product,
                fixed_in,
                kb,
                document,
                ..
            } = fix;
            let severity = severity.name();
            let exploited = if *exploited { "yes" } else { "no" };
            let kb = kb.map(|kb| kb.to_string()).unwrap_or_default();
            writeln!(
                f,
                "fix\t{cve}\t{severity}\t{exploited}\t{product}\t{fixed_in}\t{kb}\t{document}\t{title}"
            )?;
        }
        Ok(())
    }
}

fn invalid(problem: &str) -> Problem {
    Problem::request("updates/table", problem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SERVER: &str = "11924";

    /// A document in the form of the published ones.
    fn document(name: &str, day: &str, vulnerabilities: &[Value]) -> Vec<u8> {
        json!({
            "DocumentTitle": {"Value": "Security Updates"},
            "DocumentTracking": {
                "Identification": {"ID": {"Value": name}, "Alias": {"Value": name}},
                "InitialReleaseDate": format!("{day}T07:00:00"),
            },
            "ProductTree": {"FullProductName": [
                {"ProductID": "11923", "Value": "Windows Server 2022"},
                {"ProductID": SERVER, "Value": "Windows Server 2022 (Server Core installation)"},
                {"ProductID": "99", "Value": "Microsoft Edge"},
            ]},
            "Vulnerability": vulnerabilities,
        })
        .to_string()
        .into_bytes()
    }

    fn vulnerability(
        cve: &str,
        severity: &str,
        exploited: &str,
        fixes: &[(u32, &str, &str)],
    ) -> Value {
        let fixes: Vec<Value> = fixes
            .iter()
            .map(|(kind, build, kb)| {
                json!({"Type": kind, "SubType": "Security Update", "FixedBuild": build,
                    "Description": {"Value": kb}, "ProductID": ["11923", SERVER]})
            })
            .collect();
        json!({
            "CVE": cve,
            "Title": {"Value": "A\ttitle"},
            "Threats": [
                {"Type": 0, "Description": {"Value": "Remote Code Execution"}, "ProductID": [SERVER]},
                {"Type": 3, "Description": {"Value": severity}, "ProductID": [SERVER]},
                {"Type": 3, "Description": {"Value": "Low"}, "ProductID": ["99"]},
                {"Type": 1, "Description": {"Value":
                    format!("Publicly Disclosed:Yes;Exploited:{exploited};Latest Software Release:N/A")}},
            ],
            "Remediations": fixes,
        })
    }

    /// Adds the document of a month.
    fn add(table: &mut SecurityUpdates, name: &str, day: &str, vulnerabilities: &[Value]) {
        table.add(&document(name, day, vulnerabilities)).unwrap();
    }

    /// The updates of two months.
    const APRIL: (u32, &str, &str) = (2, "10.0.20348.2402", "5036909");
    const MAY: (u32, &str, &str) = (2, "10.0.20348.2461", "5037782");

    fn table() -> SecurityUpdates {
        let mut table = SecurityUpdates::default();
        let april = [
            vulnerability("CVE-2024-1", "Important", "No", &[APRIL]),
            vulnerability("CVE-2024-2", "Critical", "No", &[APRIL]),
        ];
        // A workaround, and a version that is not of Windows.
        let others = [(0, "10.0.20348.2461", "1"), (2, "4.8.1.2", "2")];
        let may = [
            vulnerability("CVE-2024-3", "Critical", "No", &[MAY]),
            vulnerability("CVE-2024-4", "Important", "Yes", &[MAY]),
            // Fixed again by a later update.
            vulnerability("CVE-2024-1", "Important", "No", &[MAY]),
            vulnerability("CVE-2024-5", "Critical", "Yes", &others),
        ];
        add(&mut table, "2024-Apr", "2024-04-09", &april);
        add(&mut table, "2024-May", "2024-05-14", &may);
        table
    }

    fn missing(table: &SecurityUpdates, version: &str) -> Vec<String> {
        let missing = table.missing(version.parse().unwrap(), Some(SERVER));
        missing.iter().map(|fix| fix.cve.clone()).collect()
    }

    #[test]
    fn a_version_lacks_the_fixes_of_later_ones_the_exploited_first() {
        let table = table();
        let all = ["CVE-2024-4", "CVE-2024-2", "CVE-2024-3", "CVE-2024-1"];
        assert_eq!(missing(&table, "20348.2340"), all);
        assert_eq!(missing(&table, "20348.2402"), ["CVE-2024-4", "CVE-2024-3"]);
        assert!(missing(&table, "20348.2461").is_empty());
        let newest = "2024-05-14".parse().unwrap();
        let covers = |version: &str| table.covers(version.parse().unwrap(), newest);
        assert!(covers("20348.2340") && !covers("17763.1"));
        // Without a revision, none are missing and none are known to be there.
        assert!(missing(&table, "20348").is_empty() && !covers("20348"));
        let age = table.age("2024-06-01".parse().unwrap()).unwrap();
        assert_eq!((age.newest.as_str(), age.age_days), ("2024-May", 18));
        let fix = table.missing("20348.2402".parse().unwrap(), None)[0];
        assert_eq!(fix.kb.unwrap().to_string(), "KB5037782");
        assert_eq!((fix.severity, fix.exploited), (Severity::Important, true));
        assert_eq!(fix.title, "A title");
    }

    #[test]
    fn fixes_of_parts_that_come_with_the_update_of_windows_are_missing_too() {
        let row = |cve: &str, product: &str| {
            format!("fix\t{cve}\tlow\tno\t{product}\t20348.2402\tKB5036909\t2024-Apr\ttitle\n")
        };
        let rows = [
            row("CVE-1", SERVER),
            row("CVE-2", &format!("12013-{SERVER}")),
            // Of another product whose number ends like that.
            row("CVE-3", &format!("1{SERVER}")),
            row("CVE-4", "12013-11923"),
        ];
        let text = format!("document\t2024-Apr\t2024-04-09\n{}", rows.concat());
        let table = SecurityUpdates::parse(&text).unwrap();
        assert_eq!(missing(&table, "20348.2340"), ["CVE-1", "CVE-2"]);
    }

    #[test]
    fn what_a_release_lacks_after_the_end_of_its_support_is_not_known() {
        let row = |version: &str, document: &str| {
            format!("fix\tCVE-1\tlow\tno\t1\t{version}\t\t{document}\ttitle\n")
        };
        let rows = [
            "document\t2019-Oct\t2019-10-08\ndocument\t2026-Jun\t2026-06-09\n".to_owned(),
            row("17134.1069", "2019-Oct"),
            row("17763.805", "2019-Oct"),
            // Ended in May 2026, but the document has it.
            row("25398.2330", "2026-Jun"),
        ];
        let table = SecurityUpdates::parse(&rows.concat()).unwrap();
        let covers = |version: &str, newest: &str| {
            table.covers(version.parse().unwrap(), newest.parse().unwrap())
        };
        assert!(covers("17134.1130", "2019-10-08"));
        assert!(!covers("17134.1130", "2026-06-09"));
        assert!(covers("17763.973", "2026-06-09"));
        assert!(covers("25398.2330", "2026-06-09"));
    }

    #[test]
    fn the_article_says_the_version_if_the_document_names_none_or_a_wrong_one() {
        let fixes = [
            // Without a version, as before May 2021; of a build that does not exist; of a later
            // revision than the update has; of an update that is not known.
            vulnerability("CVE-1", "Low", "No", &[(2, "", "5036909")]),
            vulnerability("CVE-2", "Low", "No", &[(2, "10.0.20384.2402", "5036909")]),
            vulnerability("CVE-3", "Low", "No", &[(2, "10.0.20348.2410", "5036909")]),
            vulnerability("CVE-4", "Low", "No", &[(2, "10.0.20348.2410", "1")]),
            vulnerability("CVE-5", "Low", "No", &[(2, "", "1")]),
        ];
        let mut table = SecurityUpdates::default();
        add(&mut table, "2024-Apr", "2024-04-09", &fixes);
        let versions = table.fixes.iter();
        let versions: Vec<String> = versions.map(|fix| fix.fixed_in.to_string()).collect();
        let expected = ["20348.2402", "20348.2402", "20348.2402", "20348.2410"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn a_table_comes_back_as_it_was_written() {
        let table = table();
        assert_eq!(SecurityUpdates::parse(&table.to_string()).unwrap(), table);
        for damaged in [
            "fix\tx",
            "document\tx\tyesterday",
            "x",
            "fix\ta\tlow\tno\t1\t1.2\t\tnone\tt",
        ] {
            assert!(SecurityUpdates::parse(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_document_of_the_future_is_not_the_newest() {
        let mut table = table();
        let day = |text: &str| text.parse().unwrap();
        let future = document("9999-Dec", "9999-12-31", &[]);
        table.add(&future).unwrap();
        let age = table.age(day("2024-06-01")).unwrap();
        assert_eq!((age.newest.as_str(), age.age_days), ("2024-May", 18));
        // A day early in another time zone.
        let age = table.age(day("2024-05-13")).unwrap();
        assert_eq!((age.newest.as_str(), age.age_days), ("2024-May", 0));
        let mut alone = SecurityUpdates::default();
        alone.add(&future).unwrap();
        assert_eq!(alone.age(day("2024-06-01")).unwrap().age_days, 0);
    }

    #[test]
    fn months_are_counted_once_from_the_one_after_a_day() {
        let mut table = table();
        let since = |table: &SecurityUpdates, day: &str, newest: &str| {
            table.months_since(day.parse().unwrap(), newest.parse().unwrap())
        };
        assert_eq!(since(&table, "2024-03-12", "2024-05-14"), (2, 2));
        assert_eq!(since(&table, "2024-04-09", "2024-05-14"), (1, 1));
        assert_eq!(since(&table, "2020-01-14", "2024-05-14"), (2, 52));
        assert_eq!(since(&table, "2024-06-11", "2024-05-14"), (0, 0));
        // Of one month, and after the newest one.
        add(&mut table, "May-OOB", "2024-05-20", &[]);
        add(&mut table, "9999-Dec", "9999-12-31", &[]);
        assert_eq!(since(&table, "2024-03-12", "2024-05-20"), (2, 2));
    }

    #[test]
    fn a_document_replaces_its_earlier_version() {
        let mut table = table();
        let fixed = [vulnerability("CVE-2024-3", "Low", "No", &[MAY])];
        add(&mut table, "2024-May", "2024-05-14", &fixed);
        assert_eq!(missing(&table, "20348.2402"), ["CVE-2024-3"]);
        assert_eq!(table.documents.len(), 2);
    }

    #[test]
    fn xml_says_the_same_as_json() {
        // The elements have the order of the published ones.
        let xml = include_str!("../tests/data/cvrf.xml");
        let fixes = [APRIL, (0, "10.0.20348.9", "1")];
        let others = [(2, "4.8.1.2", "2"), MAY];
        let rows = [
            vulnerability("CVE-2024-1", "Critical", "Yes", &fixes),
            vulnerability("CVE-2024-2", "Moderate", "No", &others),
        ];
        let json = document("2024-Apr", "2024-04-09", &rows);
        let json = String::from_utf8(json).unwrap();
        let json = json.replace("A\\ttitle", "A<\\t&título");
        let (mut of_json, mut of_xml) = (SecurityUpdates::default(), SecurityUpdates::default());
        of_json.add(json.as_bytes()).unwrap();
        of_xml.add(format!("\u{feff}{xml}").as_bytes()).unwrap();
        assert_eq!(of_json.fixes.len(), 2);
        assert_eq!(of_xml, of_json);
        assert_eq!(of_xml.fixes[0].title, "A< &título");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let mut table = SecurityUpdates::default();
        for text in [
            "",
            "{}",
            "<cvrfdoc/>",
            "<cvrfdoc><DocumentTracking>",
            "<html></html>",
            "<cvrfdoc>&own;</cvrfdoc>",
            "<cvrfdoc><a></b></cvrfdoc>",
            r#"{"DocumentTracking":{"Identification":{"ID":{"Value":"x"}},"InitialReleaseDate":"soon"}}"#,
        ] {
            assert!(table.add(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("<cvrfdoc>{}", "<a>".repeat(100_000));
        assert!(table.add(deep.as_bytes()).is_err());
        assert_eq!(table, SecurityUpdates::default());
    }
}
