//! Which of the updates that a search found is the one that was meant.
//!
//! One article has a dozen look-alikes: clients beside servers, three architectures, *Dynamic*
//! updates for setup media, deltas. Installing one of them does nothing or the wrong thing, so
//! either exactly one is left, or there is no answer.

use wincimg_common::diagnose::Diagnose;
use wincimg_windows::update::Kb;

use super::page::{SearchResult, is_guid};
use super::product::{Arch, Product, Title};

/// What an update has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criteria {
    /// The article.
    pub kb: Kb,
    /// The product, where the build or the user says which.
    pub product: Option<Product>,
    /// The architecture.
    pub arch: Arch,
    /// The user's pick out of several that fit.
    pub update_id: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[diagnose(code = "updates/not-found", blame = Answer)]
pub enum SelectError {
    /// None of what was found fits.
    #[error("the catalog has no {wanted}{}", seen_instead(.seen))]
    #[diagnose(hint = (!seen.is_empty()).then(|| format!("see what there is with: wincimg hotfix search {kb}")))]
    Nothing {
        /// The article.
        kb: Kb,
        /// What was looked for, in words.
        wanted: String,
        /// What there is instead, with the reason why it is not taken.
        seen: Vec<(String, &'static str)>,
    },
    /// More than one fits.
    #[error("the catalog has {} updates that are {wanted}", .candidates.len())]
    #[diagnose(code = "updates/ambiguous", hint = Some(flags(candidates)))]
    Ambiguous {
        /// What was looked for, in words.
        wanted: String,
        /// What fits.
        candidates: Vec<Candidate>,
    },
}

fn flags(candidates: &[Candidate]) -> String {
    let flags = candidates
        .iter()
        .map(|candidate| format!("\n  {}  for {}", candidate.flag, candidate.title));
    format!("add the flag that picks one:{}", flags.collect::<String>())
}

/// An update that fits, and the flag that picks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its title.
    pub title: String,
    /// What to add to the command line to get this one.
    pub flag: String,
}

fn seen_instead(seen: &[(String, &'static str)]) -> String {
    const SHOWN: usize = 3;
    if seen.is_empty() {
        return String::new();
    }
    let mut words: Vec<String> = seen
        .iter()
        .take(SHOWN)
        .map(|(title, why)| format!("{title:?} {why}"))
        .collect();
    if seen.len() > SHOWN {
        words.push(format!("{} more do not fit either", seen.len() - SHOWN));
    }
    format!(": {}", words.join(", "))
}

/// Picks the one update that is wanted.
pub fn select<'h>(
    hits: &'h [SearchResult],
    wanted: &Criteria,
) -> Result<&'h SearchResult, SelectError> {
    let mut fitting: Vec<(&SearchResult, Title)> = Vec::new();
    let mut seen = Vec::new();
    for hit in hits {
        let title = Title::read(&hit.title);
        match misfit(hit, &title, wanted) {
            Some(why) => seen.push((hit.title.clone(), why)),
            None if fitting
                .iter()
                .any(|(known, _)| known.update_id == hit.update_id) => {}
            None => fitting.push((hit, title)),
        }
    }
    match fitting.as_slice() {
        [(hit, _)] => Ok(hit),
        [] => Err(SelectError::Nothing {
            kb: wanted.kb,
            wanted: in_words(wanted),
            seen,
        }),
        several => Err(SelectError::Ambiguous {
            wanted: in_words(wanted),
            candidates: candidates(several),
        }),
    }
}

/// Why a hit is not what is wanted.
fn misfit(hit: &SearchResult, title: &Title, wanted: &Criteria) -> Option<&'static str> {
    if title.kb != Some(wanted.kb) {
        return Some("is another article");
    }
    if let Some(id) = &wanted.update_id {
        return (!hit.update_id.eq_ignore_ascii_case(id)).then_some("has another update id");
    }
    if let Some(why) = similar_title(title) {
        return Some(why);
    }
    if title.arch != Some(wanted.arch) {
        return Some("is for another architecture");
    }
    match &wanted.product {
        Some(product) if !product.matches(title) => Some("is for another product"),
        _ => None,
    }
}

/// How an update that shares an article or a name with a cumulative update differs from it.
fn similar_title(title: &Title) -> Option<&'static str> {
    let has = |word: &str| {
        let words = |text: &str| {
            text.split_whitespace()
                .any(|own| own.eq_ignore_ascii_case(word))
        };
        words(&title.kind) || words(&title.product)
    };
    if has("Dynamic") {
        Some("is for setup media (dynamic)")
    } else if has(".NET") {
        Some("is for .NET")
    } else if has("Delta") {
        Some("is a delta to the month before")
    } else {
        None
    }
}

fn in_words(wanted: &Criteria) -> String {
    let product = wanted.product.as_ref();
    let product = product.map_or_else(String::new, |product| format!(" for {product}"));
    let id = wanted.update_id.as_deref();
    let id = id.map_or_else(String::new, |id| format!(" with the update id {id}"));
    format!("{}{product} ({}){id}", wanted.kb, wanted.arch)
}

/// A product tells candidates apart where each has its own; an update id always does.
fn candidates(several: &[(&SearchResult, Title)]) -> Vec<Candidate> {
    several
        .iter()
        .map(|(hit, title)| {
            let product = Product::from_name(&title.product);
            let alone = several
                .iter()
                .filter(|(_, other)| product.matches(other))
                .count()
                == 1;
            Candidate {
                title: hit.title.clone(),
                flag: if alone {
                    format!("--product \"{}\"", title.product)
                } else {
                    format!("--update-id {}", hit.update_id)
                },
            }
        })
        .collect()
}

/// A text that cannot be read as an update id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid update id {0:?}: expected a GUID such as d001ca72-ce16-4700-9a6d-b2bb28974002")]
pub struct ParseUpdateIdError(String);

/// Reads what a user gives as an update id.
pub fn parse_update_id(text: &str) -> Result<String, ParseUpdateIdError> {
    if is_guid(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(ParseUpdateIdError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
