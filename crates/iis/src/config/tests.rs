mod delegation;
mod keys;
mod sites;

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::IisChangeError;

const FILE: &str = include_str!("tests/applicationHost.config");
const SCHEMA: &str = include_str!("tests/schema.xml");

const POOLS: &str = "system.applicationHost/applicationPools";
const MIME: &str = "system.webServer/staticContent";
const HANDLERS: &str = "system.webServer/handlers";
const MODULES: &str = "system.webServer/modules";
const ERRORS: &str = "system.webServer/httpErrors";

fn schema() -> Schema {
    Schema::read([("schema.xml", SCHEMA.as_bytes())]).unwrap()
}

fn server(text: &str) -> Server {
    Server::read(text.as_bytes(), schema()).unwrap()
}

fn edit(section: &str, location: &str, change: ConfigChange) -> ConfigEdit {
    ConfigEdit {
        section: section.parse().unwrap(),
        location: (!location.is_empty()).then(|| location.parse().unwrap()),
        change,
    }
}

/// `+[name='a']`, `-[name='a']`, `~files` or `processModel.idleTimeout:00:00:00`.
fn change(text: &str) -> ConfigChange {
    let entry = |text| ElementPath::with_entry(text).unwrap();
    match text.split_at(1) {
        ("+", text) => ConfigChange::Add {
            entry: entry(text),
            first: false,
        },
        ("!", text) => ConfigChange::Ensure { entry: entry(text) },
        ("-", text) => ConfigChange::Remove { entry: entry(text) },
        ("~", text) => ConfigChange::Clear {
            element: text.parse().unwrap(),
        },
        _ => {
            let (path, value) = text.split_once(':').unwrap();
            let (element, attribute) = ElementPath::with_attribute(path).unwrap();
            ConfigChange::Set {
                element,
                attribute,
                value: value.to_owned(),
            }
        }
    }
}

/// The file after changes.
fn after(file: &str, section: &str, location: &str, changes: &[&str]) -> String {
    let mut server = server(file);
    for text in changes {
        server
            .apply(&edit(section, location, change(text)))
            .unwrap();
    }
    let bytes = server.finish();
    bytes.map_or_else(
        || file.to_owned(),
        |bytes| String::from_utf8(bytes).unwrap(),
    )
}

/// The lines that changes add to and remove from the test's file.
fn lines(section: &str, location: &str, changes: &[&str]) -> (Vec<String>, Vec<String>) {
    let after = after(FILE, section, location, changes);
    difference(
        &FILE.lines().collect::<Vec<_>>(),
        &after.lines().collect::<Vec<_>>(),
    )
}

/// The lines only in the second text, and those only in the first.
fn difference(before: &[&str], after: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut common = vec![vec![0; after.len() + 1]; before.len() + 1];
    for (i, old) in before.iter().enumerate().rev() {
        for (j, new) in after.iter().enumerate().rev() {
            common[i][j] = if old == new {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let (mut added, mut lost) = (Vec::new(), Vec::new());
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            (i, j) = (i + 1, j + 1);
        } else if j < after.len() && (i == before.len() || common[i][j + 1] >= common[i + 1][j]) {
            added.push(after[j].to_owned());
            j += 1;
        } else {
            lost.push(before[i].to_owned());
            i += 1;
        }
    }
    (added, lost)
}

fn added(section: &str, location: &str, changes: &[&str]) -> Vec<String> {
    let (added, lost) = lines(section, location, changes);
    assert_eq!(lost, Vec::<String>::new());
    added
}

fn refusal(section: &str, location: &str, text: &str) -> String {
    let mut server = server(FILE);
    let refused = server.apply(&edit(section, location, change(text)));
    refused.unwrap_err().to_string()
}

#[test]
fn many_entries_of_a_collection_are_compared_without_copies_of_its_schema() {
    let names: Vec<String> = (0..600).map(|number| format!("n{number}")).collect();
    let enums = (0..600).map(|number| format!(r#"<enum name="n{number}" value="{number}" />"#));
    let enums = enums.collect::<Vec<_>>().concat();
    let schema = format!(
        r#"<configSchema><sectionSchema name="{HANDLERS}"><collection addElement="add">
        <attribute name="name" type="enum" isUniqueKey="true">{enums}</attribute>
        </collection></sectionSchema></configSchema>"#
    );
    let schema = Schema::read([("schema.xml", schema.as_bytes())]).unwrap();
    let mut server = Server::read(FILE.as_bytes(), schema).unwrap();
    let started = Instant::now();
    for name in &names {
        let entry = change(&format!("+[name='{name}']"));
        server.apply(&edit(HANDLERS, "", entry)).unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(10));
    let written = String::from_utf8(server.finish().unwrap()).unwrap();
    assert!(written.contains(r#"<add name="n599" />"#));
}

#[test]
fn a_file_that_nothing_changes_is_written_as_it_was() {
    for text in [
        FILE.to_owned(),
        FILE.replace('\n', "\r\n"),
        format!("\u{feff}{FILE}"),
    ] {
        let document = XmlDocument::read(text.as_bytes(), "configuration").unwrap();
        assert_eq!(document.write(), text.as_bytes());
        assert!(server(&text).finish().is_none());
    }
    assert_eq!(
        lines(POOLS, "", &["![name='DefaultAppPool']"]),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn a_pool_is_set_in_its_place() {
    let (added, lost) = lines(
        POOLS,
        "",
        &[
            "[name='DefaultAppPool'].managedRuntimeVersion:",
            "[name='defaultapppool'].queueLength:5000",
            "[name='DefaultAppPool'].startMode:alwaysrunning",
        ],
    );
    assert_eq!(
        lost,
        ["            <add name=\"DefaultAppPool\" managedRuntimeVersion='v4.0'   />"]
    );
    assert_eq!(
        added,
        [
            "            <add name=\"DefaultAppPool\" managedRuntimeVersion='' queueLength=\"5000\" \
          startMode=\"AlwaysRunning\"   />"
        ]
    );
    let (added, _) = lines(
        POOLS,
        "",
        &["[name='DefaultAppPool'].processModel.idleTimeout:00:00:00"],
    );
    assert_eq!(
        added,
        [
            "            <add name=\"DefaultAppPool\" managedRuntimeVersion='v4.0'>",
            "                <processModel idleTimeout=\"00:00:00\" />",
            "            </add>",
        ]
    );
}

#[test]
fn a_new_pool_follows_the_others() {
    let changes = [
        "![name='api & co']",
        "[name='api & co'].autoStart:False",
        "+[name='api & co'].environmentVariables.[name='A',value='<1>']",
    ];
    let new = [
        "            <add name=\"api &amp; co\" autoStart=\"false\">",
        "                <environmentVariables>",
        "                    <add name=\"A\" value=\"&lt;1&gt;\" />",
        "                </environmentVariables>",
        "            </add>",
    ];
    let refused = refusal(POOLS, "", "![name='api & co']");
    assert!(
        refused.starts_with("invalid name \"api & co\": expected a name without"),
        "{refused}"
    );
    let changes = changes.map(|text| text.replace(" & ", "-"));
    let changes = changes.each_ref().map(String::as_str);
    let new = new.map(|line| line.replace(" &amp; ", "-"));
    assert_eq!(added(POOLS, "", &changes), new);
    let after = after(FILE, POOLS, "", &changes);
    let place = |text: &str| after.find(text).unwrap();
    assert!(place("DefaultAppPool") < place("api-co"));
    assert!(place("api-co") < place("Not the pool"));
    assert!(server(&after).finish().is_none());
    let mut again = server(&after);
    for text in changes {
        again.apply(&edit(POOLS, "", change(text))).unwrap();
    }
    assert_eq!(again.finish(), None, "it is there already");
}

#[test]
fn a_new_site_gets_the_number_after_the_highest() {
    let section = "system.applicationHost/sites";
    let new = added(
        section,
        "",
        &[
            "![name='Api']",
            "![name='Api'].[path='/']",
            "![name='Api'].[path='/'].[path='/']",
            "[name='Api'].[path='/'].[path='/'].physicalPath:C:\\api",
        ],
    );
    assert_eq!(
        new,
        [
            "            <site name=\"Api\" id=\"2\">",
            "                <application path=\"/\">",
            "                    <virtualDirectory path=\"/\" physicalPath=\"C:\\api\" />",
            "                </application>",
            "            </site>",
        ]
    );
    let known = added(section, "", &["![name='default web site']"]);
    assert!(known.is_empty(), "{known:?}");
}

#[test]
fn bindings_are_these_and_no_others() {
    let section = "system.applicationHost/sites";
    let fill = |entries: &[&str]| ConfigChange::Fill {
        collection: "[name='Default Web Site'].bindings".parse().unwrap(),
        entries: entries
            .iter()
            .map(|information| {
                Selector::from_attributes([
                    ("protocol", "http"),
                    ("bindingInformation", information),
                ])
            })
            .collect(),
    };
    let mut server = server(FILE);
    server.apply(&edit(section, "", fill(&["*:80:"]))).unwrap();
    assert_eq!(server.finish(), None);
    server
        .apply(&edit(section, "", fill(&["*:81:", "*:82:"])))
        .unwrap();
    let after = String::from_utf8(server.finish().unwrap()).unwrap();
    assert!(!after.contains("*:80:"), "{after}");
    let binding = |port| {
        format!(
            "                    <binding protocol=\"http\" bindingInformation=\"*:{port}:\" />\n"
        )
    };
    assert!(
        after.contains(&[binding(81), binding(82)].concat()),
        "{after}"
    );
}

#[test]
fn entries_of_the_server_are_replaced_in_place_and_those_of_a_location_after_a_removal() {
    let (new, lost) = lines(MIME, "", &["+[fileExtension='.JSON',mimeType='text/x']"]);
    assert_eq!(
        new,
        ["            <mimeMap fileExtension=\".json\" mimeType=\"text/x\" />"]
    );
    assert_eq!(
        lost,
        ["            <mimeMap fileExtension=\".json\" mimeType=\"application/json\" />"]
    );
    assert_eq!(
        added(
            MIME,
            "Default Web Site/app",
            &[
                "+[fileExtension='.json',mimeType='text/x']",
                "+[fileExtension='.new',mimeType='a/b']"
            ]
        ),
        [
            "    <location path=\"Default Web Site/app\">",
            "        <system.webServer>",
            "            <staticContent>",
            "                <remove fileExtension=\".json\" />",
            "                <mimeMap fileExtension=\".json\" mimeType=\"text/x\" />",
            "                <mimeMap fileExtension=\".new\" mimeType=\"a/b\" />",
            "            </staticContent>",
            "        </system.webServer>",
            "    </location>",
        ]
    );
    let one = after(
        FILE,
        MIME,
        "default web site",
        &["+[fileExtension='.json',mimeType='text/x']"],
    );
    let both = after(
        &one,
        MIME,
        "Default Web Site/app",
        &["-[fileExtension='.json']", "-[fileExtension='.none']"],
    );
    let tail = both
        .split("<location path=\"Default Web Site/app\">")
        .nth(1)
        .unwrap();
    assert_eq!(tail.matches("<remove").count(), 1, "{both}");
    let none = after(
        &one,
        MIME,
        "Default Web Site/app",
        &["-[fileExtension='.none']"],
    );
    assert_eq!(none, one);
}

#[test]
fn an_inherited_entry_that_is_changed_at_a_location_is_copied() {
    assert_eq!(
        added(
            ERRORS,
            "Default Web Site",
            &["[statusCode='404'].path:/404.html"]
        )[3..5],
        [
            "                <remove statusCode=\"404\" />",
            "                <error statusCode=\"404\" prefixLanguageFilePath=\"%SystemDrive%\\inetpub\\custerr\" \
             path=\"/404.html\" />",
        ]
    );
    let missing = refusal(ERRORS, "", "[statusCode='500'].path:x");
    assert_eq!(missing, "httpErrors has no entry [statusCode='500']");
}

#[test]
fn handlers_come_first() {
    let after = after(
        FILE,
        HANDLERS,
        "",
        &["+[name='php',path='*.php',verb='*',modules='FastCgiModule']"],
    );
    let place = |text: &str| after.find(text).unwrap();
    assert!(place("\"php\"") < place("\"StaticFile\""), "{after}");
    assert!(
        place("path=\"\" overrideMode") < place("\"php\""),
        "in the existing section"
    );
}

#[test]
fn what_is_set_is_taken_back() {
    let (new, lost) = lines(MIME, "", &["-[fileExtension='.txt']"]);
    assert_eq!((new.len(), lost.len()), (0, 1));
    let (_, lost) = lines("system.webServer/defaultDocument", "", &["~files"]);
    assert_eq!(lost.len(), 4, "{lost:?}");
    let (new, _) = lines("system.webServer/httpErrors", "", &["~defaultPath", "~"]);
    assert!(new.is_empty());
    let (new, lost) = lines(
        POOLS,
        "",
        &["~[name='DefaultAppPool'].managedRuntimeVersion"],
    );
    assert_eq!(new, ["            <add name=\"DefaultAppPool\"   />"]);
    assert_eq!(lost.len(), 1);
}

#[test]
fn what_is_locked_stays_locked() {
    for (section, text, printed) in [
        (
            ERRORS,
            "defaultPath:/x",
            "defaultPath is locked here by lockAttributes",
        ),
        (
            MODULES,
            "-[name='StaticFileModule']",
            "StaticFileModule is locked here by lockItem",
        ),
        (
            MIME,
            "isDocFooterFileName:true",
            "locked here by lockAttributes",
        ),
    ] {
        let found = refusal(section, "Default Web Site", text);
        assert!(found.contains(printed), "{found}");
    }
    assert!(!added(MODULES, "Default Web Site", &["-[name='Session']"]).is_empty());
    let (new, _) = lines(ERRORS, "", &["defaultPath:/x"]);
    assert_eq!(new.len(), 1, "the server may");
    let open = FILE.replace(
        "lockAttributes=\"allow",
        "lockAllAttributesExcept=\"errorMode\" x=\"allow",
    );
    let mut open = server(&open);
    let at = |text| edit(ERRORS, "Default Web Site", change(text));
    assert!(open.apply(&at("errorMode:Detailed")).is_ok());
    assert!(open.apply(&at("defaultPath:/x")).is_err());
}

/// Changes of sections at locations, and the reasons why they are refused.
const REFUSED: &str = r#"
system.applicationHost/applicationPools | Default Web Site | ![name='x'] => for the whole server only
system.webServer/asp | | a:b => has no section "system.webServer/asp" here
configProtectedData | | a:b => has no section
system.webServer/staticContent | Shop/app | isDocFooterFileName:true => site "Shop" not found
system.applicationHost/applicationPools | | [name='x'].autoStart:true => applicationPools has no entry [name='x']
system.applicationHost/applicationPools | | [name='DefaultAppPool'].autoStar:true => applicationPools has no attribute "autoStar"
system.applicationHost/applicationPools | | [name='DefaultAppPool'].procesModel.a:1 => has no element "procesModel"
system.applicationHost/applicationPools | | [name='DefaultAppPool'].queueLength:5 => invalid queueLength "5": expected 10 to 65535
system.applicationHost/applicationPools | | +[autoStart='true'] => an entry of applicationPools requires name
system.webServer/staticContent | | +clientCache.[a='b'] => clientCache is not a collection
system.webServer/httpErrors | | +[statusCode='1',path='x'] => invalid statusCode "1"
"#;

#[test]
fn what_cannot_be_is_refused_by_name() {
    for case in REFUSED.trim().lines() {
        let (asked, printed) = case.split_once(" => ").unwrap();
        let cells: Vec<&str> = asked.split('|').map(str::trim).collect();
        let [section, location, text] = cells[..] else {
            panic!("{case}");
        };
        let found = refusal(section, location, text);
        assert!(found.contains(printed), "{text}: {found}");
    }
    let mut server = server(FILE);
    let pool = edit(
        "system.applicationHost/sites",
        "",
        change("[name='Default Web Site'].[path='/'].applicationPool:api"),
    );
    let refused = server.apply(&pool).unwrap_err();
    assert_eq!(refused.to_string(), "application pool \"api\" not found");
    let in_a_command = IisChangeError::from(refused).to_string();
    assert_eq!(
        in_a_command,
        "application pool \"api\" not found: add it first"
    );
    let encrypted = FILE.replace(
        "<staticContent ",
        "<staticContent configProtectionProvider=\"A\" ",
    );
    let mut encrypted = Server::read(encrypted.as_bytes(), schema()).unwrap();
    let refused = encrypted.apply(&edit(MIME, "", change("isDocFooterFileName:true")));
    assert!(refused.unwrap_err().to_string().contains("is encrypted"));
}

#[test]
fn sections_are_delegated_as_the_file_says() {
    let site: ConfigLocation = "Default Web Site".parse().unwrap();
    let is_delegated = |file: &str, section: &str| {
        let section = section.parse().unwrap();
        server(file).is_delegated(&section, Some(&site)).unwrap()
    };
    assert!(is_delegated(FILE, MIME));
    assert!(
        is_delegated(FILE, HANDLERS),
        "by the location of the server"
    );
    assert!(!is_delegated(FILE, POOLS));
    let denied = FILE.replace(
        "</configuration>",
        "<location path=\"default web site\" overrideMode=\"Deny\"><system.webServer><staticContent/></system.webServer></location></configuration>",
    );
    assert!(!is_delegated(&denied, MIME));
    assert!(is_delegated(&denied, HANDLERS));
}

#[test]
fn a_schema_that_is_none_is_refused_by_name() {
    for bytes in [&b"<configuration/>"[..], b"", b"<configSchema>", b"\xFF"] {
        let refused = Schema::read([("a.xml", bytes)]).unwrap_err();
        assert_eq!(refused.file, "a.xml");
    }
    let deep = format!("<configSchema>{}", "<a>".repeat(100_000));
    assert!(Schema::read([("deep.xml", deep.as_bytes())]).is_err());
}

/// FTP's schema has a part of that of sites, and rscaext.xml what exists only while IIS runs.
#[test]
fn files_of_a_schema_have_parts_of_a_section() {
    let part = |inside: &str| {
        format!(
            "<configSchema><sectionSchema name='system.applicationHost/sites'>\
             <collection addElement='site'>{inside}</collection></sectionSchema></configSchema>"
        )
    };
    let ftp =
        part("<element name='ftpServer'><attribute name='allowUTF8' type='bool' /></element>");
    let main = part(
        "<attribute name='name' type='string' isUniqueKey='true' />\
         <attribute name='id' type='uint' isUniqueKey='true' />",
    );
    let running = part("<attribute name='state' type='enum' extension='Microsoft.Rsca' />");
    let files = [("Ftp", &ftp), ("IIS", &main), ("rscaext", &running)];
    let schema = Schema::read(files.map(|(name, text)| (name, text.as_bytes()))).unwrap();
    let mut server = Server::read(FILE.as_bytes(), schema).unwrap();
    let mut set = |text| server.apply(&edit(SITES, "", change(text)));
    set("[name='Default Web Site'].ftpServer.allowUTF8:False").unwrap();
    let refused = set("[name='Default Web Site'].state:Started").unwrap_err();
    assert_eq!(refused.to_string(), "sites has no attribute \"state\"");
    let after = String::from_utf8(server.finish().unwrap()).unwrap();
    assert_contains(&after, "<ftpServer allowUTF8=\"false\" />");
}

fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// cmd expands the variables of a line, and the file has them.
#[test]
fn keys_are_compared_as_iis_reads_them() {
    let section = "system.webServer/security/isapiCgiRestriction";
    let declared = FILE.replace(
        "<sectionGroup name=\"security\">",
        "<sectionGroup name=\"security\"><section name=\"isapiCgiRestriction\" />",
    );
    let file = declared.replace(
        "        <security>",
        "        <security><isapiCgiRestriction><add path=\"%windir%\\a.dll\" allowed=\"false\" /></isapiCgiRestriction>",
    );
    let schema = "<configSchema><sectionSchema name='system.webServer/security/isapiCgiRestriction'>\
        <collection addElement='add'><attribute name='path' type='string' expanded='true' isUniqueKey='true' />\
        <attribute name='allowed' type='bool' /></collection></sectionSchema></configSchema>";
    let schema = Schema::read([("IIS_schema.xml", schema.as_bytes())]).unwrap();
    let mut server = Server::read(file.as_bytes(), schema).unwrap();
    let allowed = ConfigChange::Set {
        element: r"[path='C:\Windows\a.dll']".parse().unwrap(),
        attribute: "allowed".to_owned(),
        value: "True".to_owned(),
    };
    server.apply(&edit(section, "", allowed)).unwrap();
    let after = String::from_utf8(server.finish().unwrap()).unwrap();
    assert_contains(&after, r#"<add path="%windir%\a.dll" allowed="true" />"#);
}

#[test]
fn what_is_known_without_a_schema_is_sound() {
    let known = Schema::builtin();
    for section in [
        POOLS,
        MIME,
        HANDLERS,
        MODULES,
        "system.applicationHost/sites",
    ] {
        assert!(
            known.walk(&section.parse().unwrap(), &[]).is_ok(),
            "{section}"
        );
    }
    let mut server = Server::read(FILE.as_bytes(), Schema::read([]).unwrap()).unwrap();
    let set = edit(POOLS, "", change("[name='DefaultAppPool'].cpu.limit:50000"));
    server.apply(&set).unwrap();
    let unknown = server.apply(&edit(ERRORS, "", change("errorMode:Detailed")));
    let unknown = unknown.unwrap_err().to_string();
    assert_eq!(
        unknown,
        "the schema has no section \"system.webServer/httpErrors\""
    );
}

/// A site removes an inherited entry, its application adds it again, and the site is cleared: the
/// application's entry would be there twice.
#[test]
fn an_entry_yields_to_one_that_a_clear_uncovered() {
    let mut server = server(FILE);
    for (place, text) in [
        ("Default Web Site", "-[fileExtension='.json']"),
        (
            "Default Web Site/a",
            "+[fileExtension='.json',mimeType='a/b']",
        ),
        ("Default Web Site", "~"),
        (
            "Default Web Site/a",
            "+[fileExtension='.json',mimeType='a/b']",
        ),
    ] {
        server.apply(&edit(MIME, place, change(text))).unwrap();
    }
    let bytes = server.finish().unwrap();
    let found = mime_type(&bytes, "Default Web Site/a", ".json");
    assert_eq!(found.as_deref(), Some("a/b"));
}

/// A change that is valid for the test's file.
fn some_change() -> impl Strategy<Value = (&'static str, &'static str, String)> {
    let place = prop::sample::select(vec!["", "Default Web Site", "Default Web Site/a"]);
    let name = prop::sample::select(vec![".json", ".txt", ".new", ".é<&>\""]);
    let value = "[ -&(-~\u{e4}]{0,8}";
    let mime = (place.clone(), name, value).prop_map(|(place, name, value)| {
        (
            MIME,
            place,
            format!("+[fileExtension='{name}',mimeType='{value}']"),
        )
    });
    let gone = place
        .clone()
        .prop_map(|place| (MIME, place, "-[fileExtension='.json']".to_owned()));
    let cleared = place.prop_map(|place| (MIME, place, "~".to_owned()));
    let pool = "[a-z]{1,4}".prop_map(|name| (POOLS, "", format!("![name='{name}']")));
    prop_oneof![4 => mime, 1 => gone, 1 => cleared, 2 => pool]
}

/// Effective value of a section for a file extension at a location.
fn mime_type(text: &[u8], place: &str, extension: &str) -> Option<String> {
    let document = XmlDocument::read(text, "configuration").unwrap();
    let mut found = None;
    let root = document.root();
    let mut levels = vec![root];
    for path in ["Default Web Site", "Default Web Site/a"] {
        if place.starts_with(path) {
            levels.extend(
                document
                    .children_named(root, "location")
                    .filter(|id| document.attribute(*id, "path") == Some(path)),
            );
        }
    }
    for level in levels {
        let groups = document.children_named(level, "system.webServer");
        for section in groups.flat_map(|group| {
            document
                .children_named(group, "staticContent")
                .collect::<Vec<_>>()
        }) {
            for child in document.children(section) {
                let is_it = document.attribute(child, "fileExtension") == Some(extension);
                match document.name(child) {
                    "remove" if is_it => found = None,
                    "mimeMap" if is_it => {
                        assert_eq!(found, None, "twice");
                        found = document.attribute(child, "mimeType").map(str::to_owned);
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn changes_say_what_was_asked_for_and_repeat_as_nothing(changes in prop::collection::vec(some_change(), 1..8)) {
        let mut server = server(FILE);
        for (section, place, text) in &changes {
            server.apply(&edit(section, place, change(text))).unwrap();
            let bytes = server.finish().unwrap_or_else(|| FILE.as_bytes().to_vec());
            if let ConfigChange::Add { entry, .. } = change(text) {
                let (_, selector) = entry.split_entry().unwrap();
                let [(_, extension), (_, kind)] = selector.attributes().collect::<Vec<_>>()[..] else {
                    panic!("two attributes");
                };
                prop_assert_eq!(mime_type(&bytes, place, extension), Some(kind.to_owned()));
            }
            let mut again = Server::read(&bytes, schema()).unwrap();
            again.apply(&edit(section, place, change(text))).unwrap();
            prop_assert_eq!(again.finish(), None, "{}", String::from_utf8_lossy(&bytes));
        }
        // Outside of the two sections and the locations every line is as it was.
        let bytes = server.finish().unwrap_or_else(|| FILE.as_bytes().to_vec());
        let after = String::from_utf8(bytes).unwrap();
        let kept = |text: &str| text.lines().filter(|line| !line.contains("mimeMap") && !line.contains("staticContent")).map(str::to_owned).collect::<Vec<_>>();
        let mut lines = kept(&after).into_iter();
        for line in kept(FILE) {
            prop_assert!(lines.any(|other| other == line), "{line:?} is lost in {after}");
        }
    }

    #[test]
    fn no_text_makes_them_panic(text in "[<>/a&;!\\[\\]\\-\"'= \n\u{e9}😀?]{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for bytes in [text.as_bytes(), &bytes] {
            let _ = Schema::read([("x", bytes)]);
            let _ = Server::read(bytes, schema());
        }
    }

    #[test]
    fn no_damage_to_a_file_makes_them_panic(at in any::<prop::sample::Index>(), length in 0..40_usize, new in "[<>/= \"a-z]{0,6}") {
        let cut = |text: &str| {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            let is_sound = text.is_char_boundary(start) && text.is_char_boundary(end);
            is_sound.then(|| [&text[..start], &new, &text[end..]].concat())
        };
        let schema_text = cut(SCHEMA).unwrap_or_default();
        let damaged = Schema::read([("x", schema_text.as_bytes())]).unwrap_or_default();
        let text = cut(FILE).unwrap_or_default();
        if let Ok(mut server) = Server::read(text.as_bytes(), damaged) {
            for (section, place, text) in [
                (POOLS, "", "[name='DefaultAppPool'].processModel.idleTimeout:00:00:00"),
                (MIME, "Default Web Site/a", "+[fileExtension='.json',mimeType='a/b']"),
                (HANDLERS, "Default Web Site", "-[name='StaticFile']"),
                (ERRORS, "Default Web Site", "[statusCode='404'].path:x"),
            ] {
                let _ = server.apply(&edit(section, place, change(text)));
            }
            let _ = server.finish();
        }
    }
}
