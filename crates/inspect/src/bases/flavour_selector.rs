//! Selection among the programs that share a repository.
//!
//! The flavour is chosen before the version: it decides what the image does, and all hosts of an
//! index get the same.

use std::collections::BTreeSet;

use wincimg_common::diagnose::{Problem, closest_match};
use wincimg_windows::compat::{Architecture, HostBuild};

use super::best_fit::BaseMatch;
use super::candidates::CandidateQueue;
use super::flavour::BaseFlavour;
use super::tag::BaseTag;

/// Requested flavour of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum FlavourSelector {
    /// The one that starts with these words.
    Named(Vec<String>),
    /// Tags without a flavour, else the newest one: the meaning of a short name.
    Usual,
    /// The only one.
    #[default]
    Only,
}

/// Error for an ambiguous or missing flavour.
fn no_flavour(problem: String, hint: Option<String>) -> Problem {
    Problem::answer("base/flavour", problem).hint_if(hint)
}

/// Error for hosts that share no flavour.
fn none_for_all(
    repository: &str,
    hosts: &[HostBuild],
    of_hosts: &[BTreeSet<BaseFlavour>],
) -> Problem {
    let each = hosts.iter().zip(of_hosts).map(|(host, own)| {
        let own = names(&own.iter().map(plain).collect());
        format!("{host} has {}", listed(&own))
    });
    let each: Vec<String> = each.collect();
    let each = each.join("; ");
    let problem = format!("no flavour of {repository} is available for all hosts: {each}");
    let hint = "build for hosts that share a flavour, and use another base for the others";
    no_flavour(problem, Some(hint.to_owned()))
}

/// The first few flavours, and the number of the others; "none" without any.
pub(super) fn listed(known: &[String]) -> String {
    const SHOWN: usize = 12;
    if known.is_empty() {
        return "none".to_owned();
    }
    let shown = known[..known.len().min(SHOWN)].join(", ");
    match known.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl FlavourSelector {
    /// Parses the text after a repository's colon.
    pub(super) fn parse(text: &str) -> Self {
        Self::Named(text.split(['-', '_']).map(str::to_owned).collect())
    }

    /// The parts of a tag besides its Windows version.
    pub(super) fn from_flavour(flavour: &BaseFlavour) -> Self {
        let words: Vec<String> = flavour
            .words
            .iter()
            .chain(&flavour.edition)
            .cloned()
            .collect();
        if words.is_empty() {
            return Self::Usual;
        }
        Self::Named(words)
    }

    pub(super) fn requested(&self) -> Option<String> {
        match self {
            Self::Named(words) => Some(words.join("-")),
            Self::Usual | Self::Only => None,
        }
    }

    /// The other flavours with an image for a host, the newest first; none if any was acceptable.
    pub(super) fn others_for(
        &self,
        tags: &[String],
        host: HostBuild,
        wanted: BaseMatch,
    ) -> Vec<String> {
        let Self::Named(words) = self else {
            return Vec::new();
        };
        let offers: CandidateQueue<()> = CandidateQueue::new(tags, host, wanted);
        let fitting = offers.flavours();
        let others = fitting.iter().filter(|flavour| !flavour.begins_with(words));
        names(&others.map(plain).collect())
    }

    /// The tags for Windows that start with the requested words; all tags if no words are requested.
    pub(super) fn matching_tags(
        &self,
        repository: &str,
        tags: &[String],
        architecture: Architecture,
    ) -> Result<Vec<BaseTag>, Problem> {
        let all: Vec<BaseTag> = tags
            .iter()
            .filter_map(|text| BaseTag::parse(text))
            .filter(|tag| tag.is_for(architecture))
            .collect();
        let Self::Named(words) = self else {
            return Ok(all);
        };
        let (named, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|tag| tag.flavour.begins_with(words));
        if named.is_empty() && !others.is_empty() {
            let (named, known) = (
                words.join("-"),
                others.iter().map(|tag| plain(&tag.flavour)),
            );
            let known = names(&known.collect());
            let problem = format!(
                "{repository} has no flavour {named:?} for Windows; it has {}",
                listed(&known)
            );
            let meant = closest_match(&named, known.iter().map(String::as_str));
            let hint = match meant {
                Some(meant) => Some(format!("did you mean {repository}:{meant}?")),
                None if known.is_empty() => Some(format!("name the base alone: {repository}")),
                None => None,
            };
            return Err(no_flavour(problem, hint));
        }
        Ok(named)
    }

    /// The tags of the requested flavour if all hosts have it; all tags if no flavour fits any
    /// host, because the reason is determined later.
    pub(super) fn narrow(
        &self,
        repository: &str,
        tags: &[String],
        hosts: &[HostBuild],
        wanted: BaseMatch,
    ) -> Result<Vec<String>, Problem> {
        let architecture = hosts.first().map(|host| host.architecture);
        let named = self.matching_tags(repository, tags, architecture.unwrap_or_default())?;
        let texts: Vec<String> = named.iter().map(|tag| tag.text.clone()).collect();
        let offers = hosts
            .iter()
            .map(|host| CandidateQueue::<()>::new(&texts, *host, wanted));
        let of_hosts: Vec<BTreeSet<BaseFlavour>> = offers.map(|it| it.flavours()).collect();
        let serving: Vec<&BTreeSet<BaseFlavour>> =
            of_hosts.iter().filter(|own| !own.is_empty()).collect();
        let Some((first, rest)) = serving.split_first() else {
            return Ok(texts);
        };
        let is_common = |flavour: &BaseFlavour| {
            let has = |own: &&BTreeSet<BaseFlavour>| own.iter().any(|o| o.words == flavour.words);
            rest.iter().all(has)
        };
        let common: BTreeSet<BaseFlavour> = first
            .iter()
            .filter(|flavour| is_common(flavour))
            .map(plain)
            .collect();
        let Some(newest) = common.last() else {
            return Err(none_for_all(repository, hosts, &of_hosts));
        };
        let picked = match self {
            _ if common.len() == 1 => newest,
            Self::Usual => common
                .first()
                .filter(|flavour| flavour.words.is_empty())
                .unwrap_or(newest),
            Self::Named(_) | Self::Only => {
                let known = names(&common);
                let problem = format!("{repository} has several flavours: {}", listed(&known));
                let first = known.first();
                let hint = first
                    .map(|first| format!("append one to the base, as in {repository}:{first}"));
                return Err(no_flavour(problem, hint));
            }
        };
        let edition = edition(repository, &of_hosts, picked);
        Ok(named
            .into_iter()
            .filter(|tag| tag.flavour.words == picked.words)
            .filter(|tag| match (&edition, &tag.flavour.edition) {
                (Some(wanted), Some(own)) => wanted == own,
                _ => true,
            })
            .map(|tag| tag.text)
            .collect())
    }
}

/// The flavour without its edition.
fn plain(flavour: &BaseFlavour) -> BaseFlavour {
    BaseFlavour {
        words: flavour.words.clone(),
        edition: None,
    }
}

/// The names of flavours, the newest first.
fn names(flavours: &BTreeSet<BaseFlavour>) -> Vec<String> {
    let named = flavours.iter().rev().map(ToString::to_string);
    named.filter(|name| !name.is_empty()).collect()
}

/// The edition of the publishers' multi-platform tags, where there are several: Nano Server for
/// .NET, Server Core for all others.
fn edition(
    repository: &str,
    of_hosts: &[BTreeSet<BaseFlavour>],
    picked: &BaseFlavour,
) -> Option<String> {
    let of_picked = |own: &BTreeSet<BaseFlavour>| -> BTreeSet<String> {
        own.iter()
            .filter(|flavour| flavour.words == picked.words)
            .filter_map(|flavour| flavour.edition.clone())
            .collect()
    };
    let mut sets = of_hosts.iter().map(of_picked).filter(|own| !own.is_empty());
    let first = sets.next()?;
    let common = sets.fold(first, |all, own| all.intersection(&own).cloned().collect());
    let is_dotnet = repository
        .split('/')
        .zip(repository.split('/').skip(1))
        .any(|(folder, name)| folder == "dotnet" && name != "framework");
    let usual = if is_dotnet {
        "nanoserver"
    } else {
        "windowsservercore"
    };
    common.get(usual).or(common.first()).cloned()
}

#[cfg(test)]
mod tests {
    use wincimg_common::diagnose::{Blame, Diagnose};

    use super::*;

    const ASPNET: [&str; 12] = [
        "latest",
        "8.0",
        "8.0-jammy",
        "8.0-nanoserver-1809",
        "8.0-nanoserver-ltsc2022",
        "8.0-windowsservercore-ltsc2019",
        "8.0-windowsservercore-ltsc2022",
        "8.0.11-nanoserver-ltsc2022-amd64",
        "9.0-nanoserver-1809",
        "9.0-nanoserver-ltsc2022",
        "10.0-nanoserver-ltsc2022",
        "11.0-preview-nanoserver-ltsc2022",
    ];

    fn narrow(
        choice: &FlavourSelector,
        repository: &str,
        tags: &[&str],
        hosts: &[&str],
    ) -> Result<Vec<String>, Problem> {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        let hosts: Vec<HostBuild> = hosts
            .iter()
            .map(|host| HostBuild::new(host.parse().unwrap()))
            .collect();
        choice.narrow(repository, &tags, &hosts, BaseMatch::Nearest)
    }

    fn aspnet(choice: &FlavourSelector, hosts: &[&str]) -> Result<Vec<String>, Problem> {
        narrow(choice, "mcr.microsoft.com/dotnet/aspnet", &ASPNET, hosts)
    }

    #[test]
    fn several_flavours_are_listed_where_none_is_named() {
        let error = aspnet(&FlavourSelector::Only, &["20348.2402"]).unwrap_err();
        let several =
            "mcr.microsoft.com/dotnet/aspnet has several flavours: 10.0, 9.0, 8.0.11, 8.0";
        assert_eq!(error.to_string(), several);
        let hint = "append one to the base, as in mcr.microsoft.com/dotnet/aspnet:10.0";
        assert_eq!(error.diagnosis().hint.unwrap(), hint);
        assert_eq!(error.diagnosis().blame, Blame::Answer);
        let both = aspnet(&FlavourSelector::Only, &["17763.5696", "20348.2402"]).unwrap_err();
        assert!(both.to_string().ends_with("flavours: 9.0, 8.0"), "{both}");
    }

    #[test]
    fn a_named_flavour_is_that_of_all_hosts() {
        let named = FlavourSelector::parse;
        let tags = aspnet(&named("8.0"), &["17763.5696", "20348.2402"]).unwrap();
        let expected = ["8.0", "8.0-nanoserver-1809", "8.0-nanoserver-ltsc2022"];
        assert_eq!(tags, expected);
        let tags = aspnet(&named("8.0-windowsservercore"), &["17763.5696"]).unwrap();
        let mut all = tags.iter();
        assert!(all.all(|tag| tag.contains("servercore")), "{tags:?}");
        let error = aspnet(&named("8.1"), &["17763.5696"]).unwrap_err();
        assert!(error.to_string().contains("no flavour \"8.1\""), "{error}");
        let hint = error.diagnosis().hint.unwrap();
        assert!(hint.contains("dotnet/aspnet:8.0"), "{hint}");
    }

    #[test]
    fn a_flavour_that_is_not_for_all_hosts_is_not_mixed_with_another() {
        let tags = [
            "4.8-windowsservercore-ltsc2019",
            "4.8.1-windowsservercore-ltsc2025",
        ];
        let hosts = ["17763.5696", "26100.1742"];
        let error = narrow(&FlavourSelector::Usual, "r/aspnet", &tags, &hosts).unwrap_err();
        let none = "no flavour of r/aspnet is available for all hosts: 17763.5696 has 4.8; 26100.1742 has 4.8.1";
        assert_eq!(error.to_string(), none);
        let tags = narrow(&FlavourSelector::Usual, "r/aspnet", &tags, &hosts[..1]).unwrap();
        assert_eq!(tags, ["4.8-windowsservercore-ltsc2019"]);
    }

    #[test]
    fn repositories_of_others_have_flavours_too() {
        let golang = [
            "1.26-windowsservercore-ltsc2022",
            "1.26-nanoserver-ltsc2022",
            "1.26rc1-windowsservercore-ltsc2022",
            "windowsservercore-ltsc2022",
            "1.26-bookworm",
        ];
        let named = |text: &str, tags: &[&str]| {
            let flavour = FlavourSelector::parse(text);
            narrow(&flavour, "docker.io/library/x", tags, &["20348.2402"])
        };
        assert_eq!(named("1.26", &golang).unwrap(), [golang[0]]);
        assert_eq!(named("1.26-nanoserver", &golang).unwrap(), [golang[1]]);
        let temurin = [
            "21-jdk-windowsservercore-ltsc2022",
            "21-jre-windowsservercore-ltsc2022",
            "21.0.5_11-jdk-windowsservercore-ltsc2022",
        ];
        assert_eq!(named("21-jdk", &temurin).unwrap(), [temurin[0]]);
        assert_eq!(named("21.0.5_11-jdk", &temurin).unwrap(), [temurin[2]]);
        let error = named("21", &temurin).unwrap_err().to_string();
        assert!(error.ends_with("flavours: 21-jre, 21-jdk"), "{error}");
    }

    #[test]
    fn what_has_no_flavour_needs_none() {
        let tags = ["10.0.17763.973", "ltsc2019", "1809-KB4534273", "latest"];
        let all = narrow(&FlavourSelector::Only, "r/nano", &tags, &["17763.973"]);
        assert_eq!(all.unwrap(), tags);
        let odd = ["rs1_release-10.0.14393.206", "10.0.14393.206"];
        let found = narrow(&FlavourSelector::Usual, "r/nano", &odd, &["14393.206"]);
        assert_eq!(found.unwrap(), [odd[1]]);
    }
}
