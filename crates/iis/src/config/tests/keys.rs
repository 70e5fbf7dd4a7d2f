//! Tests of keys that two entries cannot share: IIS would reject the whole file.

use super::*;

const DOCUMENTS: &str = "system.webServer/defaultDocument";

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

#[test]
fn a_key_of_another_entry_is_refused() {
    for (section, location, changes, printed) in [
        (
            SITES,
            "",
            &["+[name='Shop',id='1']"][..],
            "sites already has the entry [id='1']",
        ),
        (
            SITES,
            "",
            &["![name='Shop',id='2']", "![name='Api',id='2']"],
            "sites already has the entry [id='2']",
        ),
        (
            SITES,
            "",
            &["+[name='Shop']", "[name='Shop'].name:default web site"],
            "sites already has the entry [name='default web site']",
        ),
        (
            POOLS,
            "",
            &["+[name='a']", "[name='a'].name:DefaultAppPool"],
            "applicationPools already has the entry [name='DefaultAppPool']",
        ),
        (
            DOCUMENTS,
            "",
            &["files.[value='index.html'].value:default.htm"],
            "files already has the entry [value='default.htm']",
        ),
        (
            DOCUMENTS,
            "Default Web Site",
            &["files.[value='index.html'].value:default.htm"],
            "files already has the entry [value='default.htm']",
        ),
        (
            ERRORS,
            "",
            &[
                "+[statusCode='404',subStatusCode='3',path='x']",
                "[statusCode='404',subStatusCode='3'].subStatusCode:-1",
            ],
            "httpErrors already has the entry [statusCode='404',subStatusCode='-1']",
        ),
    ] {
        let found = refused(section, location, changes);
        assert_eq!(found.as_deref(), Some(printed), "{changes:?}");
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
