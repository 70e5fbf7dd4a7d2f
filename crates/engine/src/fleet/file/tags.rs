//! Tags of a fleet: expanded, and unique.

use std::collections::HashMap;

use wincimg_common::diagnose::{Problem, closest_match};
use wincimg_oci::reference::{Reference, is_tag};
use wincimg_recipe::Field;
use wincimg_windows::version::WindowsVersion;

use super::FleetSource;
use super::schema::FleetFile;
use crate::definition::BuildInput;
use crate::fleet::FleetEntry;

/// Expands the `${…}` of a tag.
pub(super) fn expand_tag(
    pattern: &Field<String>,
    name: Option<&str>,
    named: &BuildInput,
    origin: &FleetSource<'_>,
) -> Result<String, Problem> {
    let start = pattern.offset;
    let known = |wanted: &str| {
        let values = named.values.iter().chain(&named.arguments);
        let mut values = values.filter(|(known, _)| known == wanted);
        match wanted {
            "name" => name.map(|name| name.replace('/', "-")),
            _ => values.next().map(|(_, value)| value.clone()),
        }
    };
    let mut tag = String::new();
    let mut rest = pattern.value.as_str();
    while let Some((before, behind)) = rest.split_once("${") {
        tag += before;
        let Some((wanted, behind)) = behind.split_once('}') else {
            return Err(origin.error(start, "unclosed ${"));
        };
        match known(wanted) {
            Some(value) => tag += &value,
            // The definition cannot be read, which its build reports.
            None if wanted == "name" => tag += "unknown",
            None => {
                let values = named.values.iter().chain(&named.arguments);
                let known = values.map(|(name, _)| name.as_str()).chain(["name"]);
                let hint = closest_match(wanted, known).map_or_else(
                    || format!("set the value for this image: set = {{ {wanted} = \"…\" }}"),
                    |meant| format!("did you mean ${{{meant}}}?"),
                );
                let problem = format!("this image has no value for ${{{wanted}}}");
                return Err(origin.error(start, problem).hint(hint));
            }
        }
        rest = behind;
    }
    tag += rest;
    if is_tag(&tag) {
        return Ok(tag);
    }
    let expected = "expected 1 to 128 letters, digits, dots, dashes and underscores";
    Err(origin.error(start, format!("invalid tag {tag:?}: {expected}")))
}

/// Rejects a tag of two images: of an index, or of an image in one.
pub(super) fn check_tags(
    file: &FleetFile,
    entries: &[FleetEntry],
    origin: &FleetSource<'_>,
) -> Result<(), Problem> {
    let twice = |reference: &Reference, one: usize, other: usize| {
        let (first, second) = (one.min(other), one.max(other));
        let start = file.image[second].start();
        let line = entries[first].line;
        let problem = format!("duplicate tag {reference}: the image in line {line} has it too");
        let hint = "set another name or tag for one of them".to_owned();
        origin.error(start, problem).hint(hint)
    };
    let mut known: HashMap<String, usize> = HashMap::with_capacity(entries.len());
    let named = entries.iter().enumerate();
    let named = named.filter_map(|(place, entry)| Some((place, entry.reference()?)));
    let named: Vec<(usize, Reference)> = named.collect();
    for (place, reference) in &named {
        if let Some(other) = known.insert(reference.to_string(), *place) {
            return Err(twice(reference, *place, other));
        }
    }
    // `1.4-10.0.17763.973` belongs to the index `1.4`.
    for (place, reference) in &named {
        let whole = reference.to_string();
        let ends = whole.rmatch_indices("-10.0.").map(|(end, _)| end);
        let mut indexes = ends
            .filter(|end| whole[end + 1..].parse::<WindowsVersion>().is_ok())
            .filter_map(|end| known.get(&whole[..end]));
        if let Some(other) = indexes.next() {
            return Err(twice(reference, *place, *other));
        }
    }
    Ok(())
}
