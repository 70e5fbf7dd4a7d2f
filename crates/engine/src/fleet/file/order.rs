//! Images of a fleet that others of it are made of.

use std::collections::{BTreeSet, HashMap, HashSet};

use wincimg_common::diagnose::Problem;
use wincimg_oci::reference::parse_reference;

use super::FleetSource;
use super::schema::FleetFile;
use crate::fleet::FleetEntry;

/// The label of an entry with this name of an image; none for a name with a digest, which no build
/// changes.
pub(super) fn label_of(name: &str) -> Option<String> {
    let reference = parse_reference(name).ok()?;
    reference.digest().is_none().then(|| reference.to_string())
}

/// Keeps the images below that are in the file, sets the levels, and rejects an image that is below
/// itself.
pub(super) fn set_levels(
    file: &FleetFile,
    entries: &mut [FleetEntry],
    origin: &FleetSource<'_>,
) -> Result<(), Problem> {
    let labels = entries.iter().map(FleetEntry::label).zip(0..);
    let places: HashMap<String, usize> = labels.collect();
    for entry in &mut *entries {
        entry.below.retain(|label| places.contains_key(label));
    }
    let mut waiting: BTreeSet<usize> = (0..entries.len()).collect();
    for level in 0.. {
        let waits = |label: &String| waiting.contains(&places[label]);
        let ready = |place: &&usize| !entries[**place].below.iter().any(waits);
        let next: Vec<usize> = waiting.iter().filter(ready).copied().collect();
        if next.is_empty() {
            break;
        }
        for place in next {
            waiting.remove(&place);
            entries[place].level = level;
        }
    }
    // What waits is on a circle, or above one.
    let mut circles = waiting
        .iter()
        .filter_map(|place| Some((*place, circle(entries, &places, *place)?)));
    let Some((place, above)) = circles.next() else {
        return Ok(());
    };
    let label = entries[place].label();
    let through = if above == place {
        String::new()
    } else {
        format!(", through {}", entries[above].label())
    };
    let problem = format!("{label} is built on itself{through}");
    let hint = "set another name or tag for one of the images".to_owned();
    Err(origin.error(file.image[place].start(), problem).hint(hint))
}

/// The entry that is made of this one, which is made of it in turn.
fn circle(entries: &[FleetEntry], places: &HashMap<String, usize>, place: usize) -> Option<usize> {
    let mut seen = HashSet::new();
    let mut open = vec![place];
    while let Some(above) = open.pop() {
        for below in entries[above].below.iter().map(|label| places[label]) {
            if below == place {
                return Some(above);
            }
            if seen.insert(below) {
                open.push(below);
            }
        }
    }
    None
}
