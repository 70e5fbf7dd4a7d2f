//! Tests of sites that share a binding, and of names of sections.

use super::*;

/// A site with these attributes and bindings, such as `http/*:80:`.
fn site(attributes: &str, bindings: &[&str]) -> String {
    let bindings = bindings.iter().map(|binding| {
        let (protocol, information) = binding.split_once('/').unwrap();
        format!("<binding protocol=\"{protocol}\" bindingInformation=\"{information}\" />")
    });
    let bindings: String = bindings.collect();
    format!("<site {attributes}><bindings>{bindings}</bindings></site>")
}

/// What is said of the test's file with another site.
fn shared(other: &str) -> Vec<String> {
    let server = server(&FILE.replace("<siteDefaults>", &format!("{other}<siteDefaults>")));
    let shared = server.shared_bindings();
    shared.iter().map(ToString::to_string).collect()
}

#[test]
fn two_sites_that_start_with_one_binding_are_named() {
    let found = shared(&site(
        "name=\"Shop\" id=\"2\"",
        &["http/*:81:", "HTTP/*:80:"],
    ));
    assert_eq!(
        found,
        [
            "the sites \"Default Web Site\" and \"Shop\" have the binding http/*:80:, and Windows starts \
             only one of them: change or remove one, or stop a site with serverAutoStart = false"
        ]
    );
    for (attributes, binding) in [
        ("name=\"Shop\"", "http/*:81:"),
        ("name=\"Shop\"", "http/*:80:www.example.com"),
        ("name=\"Shop\"", "http/10.0.0.1:80:"),
        ("name=\"Shop\"", "https/*:80:"),
        ("name=\"Shop\"", "net.pipe/*"),
        ("name=\"Shop\" serverAutoStart=\"False\"", "http/*:80:"),
    ] {
        let found = shared(&site(attributes, &[binding, binding]));
        assert_eq!(found, Vec::<String>::new(), "{attributes} {binding}");
    }
    let pipes = ["name=\"a\"", "name=\"b\""].map(|name| site(name, &["net.pipe/*"]));
    assert_eq!(shared(&pipes.concat()), Vec::<String>::new());
}

/// IIS's schema has a section `modules`, too, which is one of administration.config.
#[test]
fn a_section_of_the_file_is_meant_before_others_of_the_schema() {
    let other = "<configSchema><sectionSchema name='modules' /></configSchema>";
    let schema = Schema::read([("IIS_schema.xml", other.as_bytes())]).unwrap();
    let server = Server::read(FILE.as_bytes(), schema).unwrap();
    let named = |text| server.find_section(text).map(|path| path.to_string());
    assert_eq!(named("Modules").unwrap(), MODULES);
    assert_eq!(named("system.webserver/HANDLERS/").unwrap(), HANDLERS);
    assert!(named("webServer").is_err());
}

#[test]
fn a_section_is_changed_by_its_last_name_as_with_appcmd() {
    let short = edit("HttpErrors", "", change("errorMode:Detailed"));
    let mut by_name = server(FILE);
    by_name.apply(&short).unwrap();
    let mut by_path = server(FILE);
    by_path
        .apply(&edit(ERRORS, "", change("errorMode:Detailed")))
        .unwrap();
    assert_eq!(by_name.finish().unwrap(), by_path.finish().unwrap());
    for (section, problem) in [
        ("system.web/machineKey", "in another file"),
        ("machineKy", "IIS has no section \"machineKy\""),
        ("system.webServer/rewrite/rules", "lacks the feature"),
    ] {
        let refused = server(FILE).apply(&edit(section, "", change("a:b")));
        let printed = refused.unwrap_err().to_string();
        assert!(printed.contains(problem), "{printed}");
    }
}
