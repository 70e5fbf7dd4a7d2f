//! Selection of one update from search results.
//!
//! One article has a dozen similar updates: for clients and servers, three architectures, *Dynamic*
//! updates for setup media, deltas. A wrong one changes nothing or the wrong thing, so the selection
//! fails unless exactly one matches.

use wincimg_common::diagnose::Problem;
use wincimg_windows::update::Kb;

use super::page::{SearchResult, is_guid};
use super::product::{Arch, Product, Title};

/// Criteria of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criteria {
    /// The article.
    pub kb: Kb,
    /// Product, if given by the build or the user.
    pub product: Option<Product>,
    /// The architecture.
    pub arch: Arch,
    /// The user's choice among several matches.
    pub update_id: Option<String>,
    /// Flags of this run for the catalog, for the command in a hint.
    pub flags: String,
}

/// A hint with the command that lists the updates of an article.
pub(super) fn list_hint(kb: Kb, flags: &str) -> String {
    let hint = format!("list the available updates with: wincimg node hotfix search {kb} {flags}");
    hint.trim_end().to_owned()
}

fn describe_candidates(seen: &[(String, &'static str)]) -> String {
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
        words.push(format!("{} more do not match", seen.len() - SHOWN));
    }
    format!(": {}", words.join(", "))
}

/// Selects the one update that matches.
pub fn select<'h>(
    hits: &'h [SearchResult],
    wanted: &Criteria,
) -> Result<&'h SearchResult, Problem> {
    let mut fitting: Vec<(&SearchResult, Title)> = Vec::new();
    let mut seen = Vec::new();
    for hit in hits {
        let title = Title::read(&hit.title);
        match mismatch(hit, &title, wanted) {
            Some(why) => seen.push((hit.title.clone(), why)),
            None if fitting
                .iter()
                .any(|(known, _)| known.update_id == hit.update_id) => {}
            None => fitting.push((hit, title)),
        }
    }
    match fitting.as_slice() {
        [(hit, _)] => Ok(hit),
        [] => {
            let others = describe_candidates(&seen);
            let problem = format!("the catalog has no {}{others}", in_words(wanted));
            Err(Problem::answer("updates/not-found", problem)
                .hint_if((!seen.is_empty()).then(|| list_hint(wanted.kb, &wanted.flags))))
        }
        several => {
            let (count, wanted) = (several.len(), in_words(wanted));
            let problem = format!("the catalog has {count} updates that are {wanted}");
            Err(Problem::answer("updates/ambiguous", problem).hint(flags(several)))
        }
    }
}

/// Reason why a result does not match.
fn mismatch(hit: &SearchResult, title: &Title, wanted: &Criteria) -> Option<&'static str> {
    if title.kb != Some(wanted.kb) {
        return Some("is another article");
    }
    if let Some(id) = &wanted.update_id {
        return (!hit.update_id.eq_ignore_ascii_case(id)).then_some("has another update id");
    }
    if let Some(why) = similar_title(title) {
        return Some(why);
    }
    match (title.arch, &wanted.product) {
        (None, _) => Some("names no architecture"),
        (Some(arch), _) if arch != wanted.arch => Some("is for another architecture"),
        (_, Some(product)) if !product.matches(title) => Some("is for another product"),
        _ => None,
    }
}

/// Difference between a cumulative update and another one with the same article or name.
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
        Some("is a delta to the previous month")
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

/// Flags for the candidates: by product if it is the only one of that, else by update id.
fn flags(several: &[(&SearchResult, Title)]) -> String {
    let flag = |(hit, title): &(&SearchResult, Title)| {
        let product = Product::from_name(&title.product);
        let of_product = several.iter().filter(|(_, other)| product.matches(other));
        if of_product.count() == 1 {
            format!("--product \"{}\"", title.product)
        } else {
            format!("--update-id {} for {}", hit.update_id, hit.title)
        }
    };
    let flags: Vec<String> = several.iter().map(flag).collect();
    format!("add {}", flags.join(", or "))
}

/// Parses an update id.
pub fn parse_update_id(text: &str) -> Result<String, String> {
    if is_guid(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!(
            "invalid update id {text:?}: expected a GUID such as d001ca72-ce16-4700-9a6d-b2bb28974002"
        ))
    }
}

#[cfg(test)]
mod tests;
