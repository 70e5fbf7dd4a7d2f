//! The addresses that a request may go to.
//!
//! A recipe, a page or a redirect can name a service that only this machine can reach: its own
//! servers, or the metadata service of a cloud, which hands out keys. A name is checked after it is
//! resolved, and the checked address is the one that is used. A proxy resolves names itself: of
//! these, only known ones are refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::proxy;
use super::urls::{host_of, is_loopback};

/// Metadata services outside the link-local ranges: Azure, Alibaba Cloud, Oracle Cloud.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Metadata services of Google, Oracle, Scaleway, Akamai and Alibaba Cloud.
const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200),
];
/// Services of Amazon's cloud on an instance: metadata, and the credentials of pods.
const AMAZON_V6: [u16; 2] = [0xfd00, 0xec2];

/// Names of metadata services, which a proxy would resolve.
const METADATA_NAMES: [&str; 5] = [
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
];

/// Owner of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// Any other machine.
    World,
    /// This machine.
    ThisMachine,
    /// The link, where clouds serve instance metadata, or a metadata service elsewhere.
    Metadata,
}

impl AddressScope {
    /// Scope of an address, also of one that IPv6 embeds.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) if address.is_loopback() || address.is_unspecified() => {
                Self::ThisMachine
            }
            IpAddr::V6(address) if address.is_unicast_link_local() || is_metadata_v6(address) => {
                Self::Metadata
            }
            IpAddr::V6(address) => {
                let mut scopes = embedded(address).into_iter().map(Self::of_v4);
                let own = scopes.find(|scope| *scope != Self::World);
                own.unwrap_or(Self::World)
            }
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        // All of 0.0.0.0/8 is this machine on Linux.
        if address.is_loopback() || address.octets()[0] == 0 {
            Self::ThisMachine
        } else if address.is_link_local() || METADATA_V4.contains(&address) {
            Self::Metadata
        } else {
            Self::World
        }
    }

    /// Scope of a URL's host, as far as its text says it.
    pub fn of_url(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Self::of(address);
        }
        let name = bare.trim_end_matches('.').to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") {
            Self::ThisMachine
        } else if is_metadata_name(&name) {
            Self::Metadata
        } else {
            Self::World
        }
    }
}

fn is_metadata_v6(address: Ipv6Addr) -> bool {
    METADATA_V6.contains(&address) || address.segments().starts_with(&AMAZON_V6)
}

/// Returns true if a name without a final dot is a metadata service's.
pub(super) fn is_metadata_name(name: &str) -> bool {
    let is_one = |known: &&str| name.eq_ignore_ascii_case(known);
    METADATA_NAMES.iter().any(is_one)
}

/// The IPv4 addresses that an address can stand for: as a mapped one, or for translators, by
/// `64:ff9b::/96` or a prefix of RFC 6052's lengths in the local `64:ff9b:1::/48`.
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    const LAST: [usize; 4] = [12, 13, 14, 15];
    const LENGTHS: [[usize; 4]; 4] = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], LAST];
    let bytes = address.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| bytes[place]));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![at(LAST)],
        [0x64, 0xff9b, 1, ..] => {
            let all = LENGTHS.map(at).into_iter();
            // Most are the zeros around the one that is meant.
            all.filter(|found| found.octets()[0] != 0).collect()
        }
        _ => address.to_ipv4_mapped().into_iter().collect(),
    }
}

/// Addresses that a request may go to. Hosts that the user listed may have any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressPolicy {
    /// Every address.
    Any,
    /// Also this machine's: the user named the host.
    ThisMachineToo,
    /// Other machines'.
    OtherMachines,
}

impl AddressPolicy {
    /// Policy for a URL that a server names: only a server on this machine may refer to this
    /// machine, except for itself.
    pub fn for_link(from: &Url, to: &Url) -> Self {
        if is_loopback(from) || from.host_str() == to.host_str() {
            Self::ThisMachineToo
        } else {
            Self::OtherMachines
        }
    }

    fn allows(self, scope: AddressScope) -> bool {
        match (self, scope) {
            (Self::Any, _) | (_, AddressScope::World) => true,
            (Self::ThisMachineToo, scope) => scope == AddressScope::ThisMachine,
            (Self::OtherMachines, _) => false,
        }
    }

    /// Checks a URL whose host is an address: these are not resolved.
    pub(super) fn check(self, url: &Url) -> Result<(), RefusedAddress> {
        let scope = AddressScope::of_url(url);
        if self.allows(scope) {
            return Ok(());
        }
        Err(RefusedAddress {
            host: host_of(url),
            scope,
        })
    }
}

/// An address that the policy excludes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is {}", self.reason())]
pub(super) struct RefusedAddress {
    pub(super) host: String,
    pub(super) scope: AddressScope,
}

impl RefusedAddress {
    /// The hint to list a host and port; none for an address that must not be trusted.
    pub(super) fn hint(&self, host: &str) -> Option<String> {
        (self.scope == AddressScope::ThisMachine)
            .then(|| format!("if you trust {host}, add --insecure-registry {host}"))
    }

    pub(super) fn reason(&self) -> &'static str {
        match self.scope {
            AddressScope::Metadata => "an address where clouds serve their keys",
            _ => "an address of this machine",
        }
    }
}

/// A resolver of names that drops the addresses that its policy excludes.
pub(super) struct CheckingResolver {
    policy: AddressPolicy,
    /// Hosts of the user's proxies, which may be on this machine.
    proxies: Vec<String>,
}

impl CheckingResolver {
    pub(super) fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            proxies: proxy::hosts(),
        }
    }
}

impl Resolve for CheckingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let is_proxy = self.proxies.iter().any(|it| it.eq_ignore_ascii_case(&host));
        let policy = if is_proxy {
            AddressPolicy::Any
        } else {
            self.policy
        };
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let scope = |address: &SocketAddr| AddressScope::of(address.ip());
            let (allowed, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.into_iter().partition(|it| policy.allows(scope(it)));
            match refused.first() {
                Some(first) if allowed.is_empty() => {
                    let scope = scope(first);
                    Err(RefusedAddress { host, scope }.into())
                }
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(url: &str) -> AddressScope {
        AddressScope::of_url(&url.parse().unwrap())
    }

    #[test]
    fn every_spelling_of_an_own_address_is_known() {
        for url in [
            "http://127.0.0.1/x",
            "http://127.9.9.9:81/x",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0/",
            "http://0.0.0.0:5000/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
        ] {
            assert_eq!(scope(url), AddressScope::ThisMachine, "{url}");
        }
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://[fd00:ec2::23]/v1/credentials",
            "http://[fd20:ce::254]/",
            "http://[fd00:c1::a9fe:a9fe]/",
            "http://[fd00:42::42]/",
            "http://[fd00:a9fe:a9fe::1]/",
            "http://[fd00:100::100:200]/",
            "http://[::ffff:169.254.169.254]/",
            "http://168.63.129.16/",
            "http://100.100.100.200/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[64:ff9b:1:fffe::a9fe:a9fe]/",
            "http://[64:ff9b:1:a9fe:a9:fe00::]/",
            "http://Metadata.google.internal./",
        ] {
            assert_eq!(scope(url), AddressScope::Metadata, "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "http://[fd00::1]/",
            "http://[fd20:ce::1]/",
            "http://[64:ff9b:1:fffe::a00:1]/",
            "https://repo.lan/",
            "https://metadata.lan/",
        ] {
            assert_eq!(scope(url), AddressScope::World, "{url}");
        }
    }

    #[test]
    fn only_this_machine_refers_to_this_machine() {
        let policy = |from: &str, to: &str| {
            AddressPolicy::for_link(&from.parse().unwrap(), &to.parse().unwrap())
        };
        let local = "http://127.0.0.1:5000/";
        let remote = "https://repo.lan/";
        let neighbour = policy(local, "http://127.0.0.1:9000/");
        assert_eq!(neighbour, AddressPolicy::ThisMachineToo);
        assert_eq!(policy(remote, local), AddressPolicy::OtherMachines);
        // Its own name may be in /etc/hosts.
        assert_eq!(policy(remote, remote), AddressPolicy::ThisMachineToo);
    }

    #[tokio::test]
    async fn a_name_is_checked_after_it_is_resolved() {
        let resolved = |policy| {
            let name = "localhost".parse().unwrap();
            CheckingResolver::new(policy).resolve(name)
        };
        let error = resolved(AddressPolicy::OtherMachines).await.err().unwrap();
        assert_eq!(error.to_string(), "localhost is an address of this machine");
        let refused = error.downcast_ref::<RefusedAddress>().unwrap();
        let hint = refused.hint("localhost:8080").unwrap();
        let flag = " --insecure-registry localhost:8080";
        assert!(hint.ends_with(flag), "{hint}");
        let found = resolved(AddressPolicy::ThisMachineToo).await.unwrap();
        assert!(found.count() > 0);
    }
}
