//! Check of the catalog's links against server-side request forgery: a page from a proxy or a copy
//! could link to a service that only this machine, or a node that runs a script, can reach.

use reqwest::Url;
use wincimg_http::AddressScope;

/// Checks that a link may be followed. A catalog on this machine may link to this machine.
pub(super) fn check(link: &str, catalog: &Url) -> Result<(), &'static str> {
    let url: Url = link.parse().map_err(|_| "it is not a web address")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is not a web address");
    }
    match AddressScope::of_url(&url) {
        AddressScope::World => Ok(()),
        AddressScope::ThisMachine if AddressScope::of_url(catalog) == AddressScope::ThisMachine => {
            Ok(())
        }
        AddressScope::ThisMachine => Err("it refers to this machine"),
        AddressScope::Metadata => Err("it is an address where clouds keep their credentials"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIS_MACHINE: &str = "it refers to this machine";
    const METADATA: &str = "it is an address where clouds keep their credentials";

    #[test]
    fn links_lead_to_web_addresses_of_other_machines_alone() {
        let catalog = super::super::DEFAULT_CATALOG.parse().unwrap();
        for (link, expected) in [
            ("http://download.windowsupdate.com/c/a.msu", Ok(())),
            ("http://10.1.2.3/a.msu", Ok(())),
            ("file:///etc/passwd", Err("it is not a web address")),
            (r"\\server\share\a.msu", Err("it is not a web address")),
            ("ftp://host/a.msu", Err("it is not a web address")),
            (r"C:\a.msu", Err("it is not a web address")),
            ("http://a.localhost/a.msu", Err(THIS_MACHINE)),
            ("http://0x7f.1/a.msu", Err(THIS_MACHINE)),
            ("http://[::ffff:127.0.0.1]/a.msu", Err(THIS_MACHINE)),
            ("http://169.254.169.254/latest/meta-data", Err(METADATA)),
            ("http://[fe80::1]/a.msu", Err(METADATA)),
        ] {
            assert_eq!(check(link, &catalog), expected, "{link}");
        }
    }

    #[test]
    fn a_catalog_on_this_machine_may_link_to_itself_but_not_to_neighbours() {
        let own: Url = "http://127.0.0.1:8080/".parse().unwrap();
        assert_eq!(check("http://localhost:8081/a.msu", &own), Ok(()));
        assert!(check("http://169.254.169.254/a.msu", &own).is_err());
    }
}
