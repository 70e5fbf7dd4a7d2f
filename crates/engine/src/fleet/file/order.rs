//! Images of a fleet that others of it are made of.

use std::collections::{HashMap, HashSet};
use std::ptr;

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

/// Keeps the images below that are in the file, and rejects an image that is below itself.
pub(super) fn check_order(
    file: &FleetFile,
    entries: &mut [FleetEntry],
    origin: &FleetSource<'_>,
) -> Result<(), Problem> {
    let labels = entries.iter().map(FleetEntry::label).zip(0..);
    let places: HashMap<String, usize> = labels.collect();
    for entry in &mut *entries {
        entry.below.retain(|label| places.contains_key(label));
    }
    for (place, entry) in entries.iter().enumerate() {
        let mut seen = HashSet::new();
        let mut open = vec![entry];
        while let Some(above) = open.pop() {
            for below in above.below.iter().map(|label| places[label]) {
                if below == place {
                    let label = entry.label();
                    let through = if ptr::eq(above, entry) {
                        String::new()
                    } else {
                        format!(", through {}", above.label())
                    };
                    let problem = format!("{label} is built on itself{through}");
                    let hint = "set another name or tag for one of the images".to_owned();
                    let start = file.image[place].start();
                    return Err(origin.error(start, problem).hint(hint));
                }
                if seen.insert(below) {
                    open.push(&entries[below]);
                }
            }
        }
    }
    Ok(())
}
