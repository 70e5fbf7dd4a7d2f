//! Tests of keys that two entries cannot share: IIS would reject the whole file.

use super::*;

const RULES: &str = "system.webServer/security/authorization";
const ADDRESSES: &str = "system.webServer/security/ipSecurity";

/// The error of the last change, after the others.
fn refused(section: &str, location: &str, changes: &[&str]) -> Option<String> {
    let mut server = server(FILE);
    let (last, first) = changes.split_last().unwrap();
    for text in first {
        server
            .apply(&edit(section, location, change(text)))
            .unwrap();
    }
    let last = server.apply(&edit(section, location, change(last)));
    last.err().map(|error| error.to_string())
}

/// Changes of sections at locations, and how the last one is refused.
const TAKEN: &str = r"
system.applicationHost/sites | | +[name='Shop',id='1'] => sites already has the entry [id='1']
system.applicationHost/sites | | ![name='Shop',id='2'] ; ![name='Api',id='2'] => sites already has the entry [id='2']
system.applicationHost/sites | | +[name='Shop'] ; [name='Shop'].name:default web site => sites already has the entry [name='default web site']
system.applicationHost/applicationPools | | +[name='a'] ; [name='a'].name:DefaultAppPool => applicationPools already has the entry [name='DefaultAppPool']
system.webServer/defaultDocument | | files.[value='index.html'].value:default.htm => files already has the entry [value='default.htm']
system.webServer/defaultDocument | Default Web Site | files.[value='index.html'].value:default.htm => files already has the entry [value='default.htm']
system.webServer/httpErrors | | +[statusCode='404',subStatusCode='3',path='x'] ; [statusCode='404',subStatusCode='3'].subStatusCode:-1 => httpErrors already has the entry [statusCode='404',subStatusCode='-1']
system.webServer/security/authorization | | +[accessType='Deny',users='?'] ; [users='?'].users:* => authorization already has the entry [roles='',users='*',verbs='']
";

#[test]
fn a_key_of_another_entry_is_refused() {
    for case in TAKEN.trim().lines() {
        let (asked, printed) = case.split_once(" => ").unwrap();
        let cells: Vec<&str> = asked.split('|').map(str::trim).collect();
        let [section, location, changes] = cells[..] else {
            panic!("{case}");
        };
        let changes: Vec<&str> = changes.split(" ; ").collect();
        let found = refused(section, location, &changes);
        assert_eq!(found.as_deref(), Some(printed), "{case}");
    }
}

#[test]
fn other_keys_are_set() {
    for (section, changes) in [
        (SITES, &["![name='Default Web Site',id='7']"][..]),
        (SITES, &["[name='Default Web Site'].id:1"]),
        (SITES, &["+[name='Default Web Site',id='1']"]),
        (SITES, &["[name='Default Web Site'].id:5"]),
        (SITES, &["[name='Default Web Site'].name:DEFAULT WEB SITE"]),
        (
            SITES,
            &["-[name='Default Web Site']", "+[name='Shop',id='1']"],
        ),
        (
            ERRORS,
            &[
                "+[statusCode='404',subStatusCode='3',path='x']",
                "[statusCode='404',subStatusCode='3'].subStatusCode:4",
            ],
        ),
    ] {
        assert_eq!(refused(section, "", changes), None, "{changes:?}");
    }
    let mut server = server(FILE);
    let binding = [("protocol", "http"), ("bindingInformation", "*:80:")];
    let bindings = "[name='Default Web Site'].bindings".parse::<ElementPath>();
    let set = ConfigChange::Set {
        element: bindings.unwrap().entry(binding),
        attribute: "bindingInformation".to_owned(),
        value: "*:8080:".to_owned(),
    };
    server.apply(&edit(SITES, "", set)).unwrap();
}

/// As in Microsoft's samples.
#[test]
fn a_combined_key_is_empty_where_it_is_left_out() {
    assert_eq!(
        added(
            RULES,
            "",
            &[
                "+[accessType='Allow',roles='administrators']",
                "+[accessType='Deny',users='?',verbs='POST']",
                "+[accessType='Allow',users='?']",
            ]
        ),
        [
            "                <add accessType=\"Allow\" roles=\"administrators\" />",
            "                <add accessType=\"Deny\" users=\"?\" verbs=\"POST\" />",
            "                <add accessType=\"Allow\" users=\"?\" />",
        ]
    );
    let address = "+[ipAddress='192.168.100.1',allowed='False']";
    assert_eq!(
        added(ADDRESSES, "Default Web Site", &[address])[4],
        "                    <add ipAddress=\"192.168.100.1\" allowed=\"false\" />"
    );
    let new = |text: &str| ConfigChange::New {
        entry: ElementPath::with_entry(text).unwrap(),
        first: false,
    };
    let mut server = server(FILE);
    for text in [
        "[accessType='Deny',users='?',verbs='GET']",
        "[accessType='Allow',users='?']",
    ] {
        server.apply(&edit(RULES, "", new(text))).unwrap();
    }
    let twice = new("[accessType='Deny',users='?',roles='']");
    assert!(server.apply(&edit(RULES, "", twice)).is_err());
    let take = ConfigChange::Take {
        entry: ElementPath::with_entry("[users='*',roles='',verbs='']").unwrap(),
    };
    server.apply(&edit(RULES, "", take)).unwrap();
    let after = String::from_utf8(server.finish().unwrap()).unwrap();
    assert!(!after.contains("users=\"*\""), "{after}");
}

/// IIS rejects the same entry at a location, if it does not remove the one of the server.
#[test]
fn a_location_removes_the_entry_with_the_same_keys() {
    let lines = added(
        RULES,
        "Default Web Site",
        &[
            "+[accessType='Deny',users='*',verbs='POST']",
            "+[accessType='Deny',users='*']",
        ],
    );
    assert_eq!(
        lines[4..7],
        [
            "                    <add accessType=\"Deny\" users=\"*\" verbs=\"POST\" />",
            "                    <remove users=\"*\" roles=\"\" verbs=\"\" />",
            "                    <add accessType=\"Deny\" users=\"*\" />",
        ]
    );
}
