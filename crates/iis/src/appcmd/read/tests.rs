use proptest::prelude::*;

use super::super::super::config::{PathStep, Schema, Selector};
use super::super::{AppcmdCall, config, sites};
use super::*;
use crate::{AppPool, Application, IisSettings, Site};

const FILE: &str = include_str!("../../config/tests/applicationHost.config");
const SCHEMA: &str = include_str!("../../config/tests/schema.xml");

fn server() -> Server {
    let schema = Schema::read([("schema.xml", SCHEMA.as_bytes())]).unwrap();
    Server::read(FILE.as_bytes(), schema).unwrap()
}

/// Splits a line whose values with spaces are in double quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

fn asked(line: &str) -> Result<String, IisChangeError> {
    let order = read(&words(line), &server())?;
    let edits: Vec<String> = order.edits.iter().map(ToString::to_string).collect();
    let into = order.into.map(|of| format!(" in {of}'s web.config"));
    Ok(format!("{}{}", edits.join("; "), into.unwrap_or_default()))
}

#[test]
fn lines_come_to_changes_or_are_refused() {
    let cases = include_str!("lines.txt").lines();
    for case in cases.filter(|case| !case.is_empty() && !case.starts_with('#')) {
        let (line, expected) = case.split_once(" => ").unwrap();
        let found = match asked(line) {
            Ok(edits) if edits.is_empty() => "nothing".to_owned(),
            Ok(edits) => edits,
            Err(IisChangeError::Unclear(why)) => format!("unclear: {why}"),
            Err(IisChangeError::Fails(why)) => format!("fails: {why}"),
        };
        let is_expected = match expected.split_once(": ") {
            Some((kind @ ("unclear" | "fails"), part)) => {
                found.starts_with(kind) && found.contains(part)
            }
            _ => found == expected,
        };
        assert!(is_expected, "{case}\nfound: {found}");
    }
}

/// The changes of `calls`, where those that may fail only remove entries that others replace.
fn back(calls: &[AppcmdCall]) -> Vec<ConfigEdit> {
    let server = server();
    let edits = |words: &Vec<String>| read(words, &server).unwrap().edits;
    let mut all: Vec<ConfigEdit> = Vec::new();
    let mut abandoned_builds: Vec<(SectionPath, Option<ConfigLocation>, ElementPath)> = Vec::new();
    for call in calls {
        match call {
            AppcmdCall::Try(lines) => {
                for edit in lines.iter().flat_map(edits) {
                    let ConfigChange::Take { entry } = edit.change else {
                        panic!("{edit} takes nothing away");
                    };
                    abandoned_builds.push((edit.section, edit.location, entry));
                }
            }
            AppcmdCall::Run(words) => {
                for edit in edits(words) {
                    let known = edit.replaced_by_new();
                    let at = abandoned_builds
                        .iter()
                        .position(|(section, location, entry)| {
                            Some(entry) == known.as_ref()
                                && *section == edit.section
                                && *location == edit.location
                        });
                    let change = match (at, edit.change) {
                        (Some(at), ConfigChange::New { entry, first }) => {
                            abandoned_builds.remove(at);
                            ConfigChange::Add { entry, first }
                        }
                        (_, change) => change,
                    };
                    all.push(ConfigEdit { change, ..edit });
                }
            }
            AppcmdCall::Unless(..) => panic!("no line of sections depends on another one"),
        }
    }
    let removed = abandoned_builds.into_iter();
    let removed = removed.map(|(section, location, entry)| ConfigEdit {
        section,
        location,
        change: ConfigChange::Remove { entry },
    });
    removed.chain(all).collect()
}

impl ConfigEdit {
    fn replaced_by_new(&self) -> Option<ElementPath> {
        let ConfigChange::New { entry, first } = &self.change else {
            return None;
        };
        let (entry, first) = (entry.clone(), *first);
        ConfigEdit {
            change: ConfigChange::Add { entry, first },
            ..self.clone()
        }
        .replaced_entry()
    }
}

fn settings() -> IisSettings {
    IisSettings {
        site: "Default Web Site".parse().unwrap(),
        path: r"C:\inetpub\wwwroot".parse().ok(),
        file_extensions: [].into(),
        mime_types: [].into(),
        default_documents: Vec::new(),
        app_pool: "DefaultAppPool".parse().unwrap(),
        app_pool_settings: [].into(),
        app_pools: Vec::new(),
        sites: Vec::new(),
        config: Vec::new(),
    }
}

/// Changes without two of the same target.
fn change() -> impl Strategy<Value = ConfigChange> {
    let value = "[a-zA-Z0-9 .:*/\\\\=,'\\[\\]-]{1,12}";
    let entry = ("[.][a-z]{1,8}", value).prop_map(|(extension, kind)| {
        ElementPath::default().entry([("fileExtension", extension.as_str()), ("mimeType", &kind)])
    });
    prop_oneof![
        entry.clone().prop_map(|entry| ConfigChange::Add {
            entry,
            first: false
        }),
        entry
            .clone()
            .prop_map(|entry| ConfigChange::Add { entry, first: true }),
        entry.clone().prop_map(|entry| ConfigChange::New {
            entry,
            first: false
        }),
        "[.][a-z]{1,8}".prop_map(|extension| ConfigChange::Take {
            entry: ElementPath::default().entry([("fileExtension", extension.as_str())]),
        }),
        "[.][a-z]{1,8}".prop_map(|extension| ConfigChange::Remove {
            entry: ElementPath::default().entry([("fileExtension", extension.as_str())]),
        }),
        value.prop_map(|value| ConfigChange::Set {
            element: ElementPath::default().element("clientCache"),
            attribute: "cacheControlMode".to_owned(),
            value,
        }),
        any::<bool>().prop_map(|allowed| ConfigChange::Delegate { allowed }),
        Just(ConfigChange::Clear {
            element: ElementPath::default().element("clientCache"),
        }),
        Just(ConfigChange::Clear {
            element: ElementPath::default(),
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(change in change(), place in 0..3_usize) {
        let location = ["Default Web Site", "Default Web Site/app"].get(place);
        let edit = ConfigEdit {
            section: "system.webServer/staticContent".parse().unwrap(),
            location: location.map(|text: &&str| text.parse().unwrap()),
            change,
        };
        let settings = IisSettings { config: vec![edit.clone()], ..settings() };
        prop_assert_eq!(back(&config(&settings)), vec![edit]);
    }

    #[test]
    fn sites_that_are_written_are_made_by_what_is_read(
        names in proptest::collection::btree_set("[A-Za-z][a-z .-]{0,6}[a-z]", 1..4),
        id in proptest::option::of(2..9_u32),
        port in 1..9999_u16,
        has_app in any::<bool>(),
    ) {
        let folder = || r"C:\x y".parse().unwrap();
        let application = |pool: Option<&str>| Application {
            app_pool: pool.map(|name| name.parse().unwrap()),
            folders: [("/".parse().unwrap(), folder()), ("/f".parse().unwrap(), folder())].into(),
            settings: [("preloadEnabled".parse().unwrap(), "true".to_owned())].into(),
        };
        let mut known = std::collections::BTreeSet::new();
        let sites_of: Vec<Site> = names
            .iter()
            .filter(|name| known.insert(name.to_lowercase()))
            .enumerate()
            .map(|(at, name)| Site {
                name: name.parse().unwrap(),
                id: id.filter(|_| at == 0),
                bindings: vec![format!("http/*:{port}:h{at}").parse().unwrap()],
                settings: [("limits.maxConnections".parse().unwrap(), "5".to_owned())].into(),
                applications: std::iter::once(("/".parse().unwrap(), application(Some("p"))))
                    .chain(has_app.then(|| ("/a".parse().unwrap(), application(None))))
                    .collect(),
            })
            .collect();
        let pool = AppPool {
            name: "p".parse().unwrap(),
            settings: [("startMode".parse().unwrap(), "AlwaysRunning".to_owned())].into(),
            environment: [("A".to_owned(), "b".to_owned())].into(),
        };
        let settings = IisSettings { app_pools: vec![pool], sites: sites_of, ..settings() };
        let mut one = server();
        for edit in settings.server_edits() {
            one.apply(&edit).unwrap();
        }
        let mut other = server();
        let run = |words: &Vec<String>, server: &mut Server| -> Result<(), IisChangeError> {
            for edit in read(words, server)?.edits {
                server.apply(&edit)?;
            }
            Ok(())
        };
        let calls = super::super::app_pools(&settings);
        for call in calls.into_iter().chain(sites(&settings)) {
            match call {
                AppcmdCall::Run(words) => run(&words, &mut other).unwrap(),
                AppcmdCall::Try(lines) => for words in lines {
                    let _ = run(&words, &mut other);
                },
                AppcmdCall::Unless(check, words) => {
                    let is_there = if check[1] == "app" || check[1] == "vdir" {
                        false
                    } else {
                        run(&check, &mut other).is_ok()
                    };
                    if !is_there {
                        run(&words, &mut other).unwrap();
                    }
                }
            }
        }
        prop_assert_eq!(
            String::from_utf8(one.finish().unwrap()).unwrap(),
            String::from_utf8(other.finish().unwrap()).unwrap()
        );
    }

    #[test]
    fn no_words_make_it_panic(
        verb in "(set|add|delete|clear|unlock|list)",
        object in "(config|site|app|vdir|apppool|module)",
        rest in proptest::collection::vec("[-/+]{0,2}(section|name|path|bindings)?[:\\[\\]a='@.,/ é]{0,12}", 0..4),
    ) {
        let words: Vec<String> = [verb, object].into_iter().chain(rest).collect();
        let server = server();
        if let Ok(order) = read(&words, &server) {
            let mut server = server;
            for edit in &order.edits {
                let _ = server.apply(edit);
            }
        }
    }
}

#[test]
fn sections_of_other_files_are_unclear_and_those_of_iis_fail() {
    let schema = ["system.web/httpRuntime", "system.webServer/asp"].map(|name| {
        format!("<sectionSchema name='{name}'><attribute name='a' type='string' /></sectionSchema>")
    });
    let schema = format!("<configSchema>{}</configSchema>", schema.concat());
    let schema = Schema::read([("schema.xml", schema.as_bytes())]).unwrap();
    let mut server = Server::read(FILE.as_bytes(), schema).unwrap();
    for (section, is_unclear) in [("httpRuntime", true), ("asp", false)] {
        let line = format!("set config /section:{section} /a:b");
        let order = read(&words(&line), &server).unwrap();
        let refused = IisChangeError::from(server.apply(&order.edits[0]).unwrap_err());
        let found = matches!(refused, IisChangeError::Unclear(_));
        assert_eq!(found, is_unclear, "{refused:?}");
    }
}

#[test]
fn selectors_survive_quotes() {
    let order = read(
        &words(
            "set config /section:staticContent \"/+[fileExtension='.a]'':b',mimeType='x:''y''']\"",
        ),
        &server(),
    );
    let expected = Selector::from_attributes([("fileExtension", ".a]':b"), ("mimeType", "x:'y'")]);
    assert_eq!(
        order.unwrap().edits[0].change,
        ConfigChange::New {
            entry: ElementPath::default().with(PathStep::Entry(expected)),
            first: false,
        }
    );
}
