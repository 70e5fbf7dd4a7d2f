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

    fn from_microsoft(link: &str) -> Result<(), &'static str> {
        check(link, &super::super::DEFAULT_CATALOG.parse().unwrap())
    }

    #[test]
    fn links_into_the_world_are_followed() {
        for link in [
            "http://download.windowsupdate.com/c/a.msu",
            "https://catalog.sf.dl.delivery.mp.microsoft.com/a.msu",
            "http://10.1.2.3/a.msu",
        ] {
            assert_eq!(from_microsoft(link), Ok(()), "{link}");
        }
    }

    #[test]
    fn links_that_only_this_machine_can_follow_are_refused() {
        for link in [
            "file:///etc/passwd",
            "\\\\server\\share\\a.msu",
            "ftp://host/a.msu",
            "C:\\a.msu",
            "http://localhost/a.msu",
            "http://LOCALHOST./a.msu",
            "http://a.localhost/a.msu",
            "http://127.0.0.1/a.msu",
            "http://2130706433/a.msu",
            "http://0x7f.1/a.msu",
            "http://0.0.0.0/a.msu",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/a.msu",
            "http://[::ffff:127.0.0.1]/a.msu",
            "http://[fe80::1]/a.msu",
            "http://[::ffff:169.254.169.254]/a.msu",
        ] {
            assert!(from_microsoft(link).is_err(), "{link}");
        }
    }

    #[test]
    fn a_catalog_on_this_machine_may_link_to_itself_but_not_to_neighbours() {
        let own: Url = "http://127.0.0.1:8080/".parse().unwrap();
        assert_eq!(check("http://localhost:8081/a.msu", &own), Ok(()));
        assert!(check("http://169.254.169.254/a.msu", &own).is_err());
    }
}
