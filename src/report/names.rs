//! Short, unique names of workloads, images and nodes in a report.

use wincimg_cluster::workloads::{Workload, WorkloadId};

use crate::report::prelude::*;

/// `Deployment shop/web`, with the file if the manifests of several have that ID.
pub(super) fn workload_ids(rollout: &Rollout) -> Vec<String> {
    let mut files: HashMap<&WorkloadId, HashSet<&str>> = HashMap::new();
    for workload in &rollout.workloads {
        let file = workload.manifest().map(|manifest| manifest.file.as_str());
        files.entry(&workload.id).or_default().extend(file);
    }
    let name = |workload: &Workload| {
        let id = &workload.id;
        match workload.manifest() {
            Some(SourceLocation { file, .. }) if files[id].len() > 1 => format!("{id} in {file}"),
            _ => id.to_string(),
        }
    };
    rollout.workloads.iter().map(name).collect()
}

/// `shop/web`, with the kind if several share that name.
pub(super) fn workloads(rollout: &Rollout) -> Vec<String> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let ids = || rollout.workloads.iter().map(|workload| &workload.id);
    for id in ids() {
        *counts.entry((&id.namespace, &id.name)).or_default() += 1;
    }
    let is_alone = |key| counts.get(&key) == Some(&1);
    ids()
        .zip(workload_ids(rollout))
        .map(|(id, whole)| {
            if is_alone((&id.namespace, &id.name)) {
                format!("{}/{}", id.namespace, id.name)
            } else {
                whole
            }
        })
        .collect()
}

/// `web:1.4`, with as many parts of its path and registry as make it unique.
pub(super) fn images(rollout: &Rollout) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for reference in rollout
        .images
        .iter()
        .filter_map(|it| it.reference.as_deref())
    {
        for end in ends(reference) {
            *counts.entry(end).or_default() += 1;
        }
    }
    let name = |image: &Image| match image.reference.as_deref() {
        Some(reference) => {
            let alone = ends(reference).find(|end| counts.get(end) == Some(&1));
            alone.unwrap_or(reference).to_owned()
        }
        None => image.label(),
    };
    rollout.images.iter().map(name).collect()
}

/// Suffixes of a reference, the shortest first: `web:1.4`, `shop/web:1.4`, … A local path has only
/// one.
fn ends(reference: &str) -> impl Iterator<Item = &str> {
    let is_path = reference.starts_with("oci:") || reference.starts_with("docker-archive:");
    let slashes = reference.rmatch_indices('/').map(|(at, _)| at + 1);
    slashes
        .filter(move |_| !is_path)
        .chain([0])
        .map(|start| &reference[start..])
}

/// A text of limited length, shortened in the middle.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    shorten_after(text, most, most.saturating_sub(1) / 2)
}

/// Same, with this number of characters before the gap.
pub(super) fn shorten_after(text: &str, most: usize, start: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    // The end is more distinctive: it has the tag or the number.
    let (start, end) = (start.min(kept), kept - start.min(kept));
    let first = text.chars().take(start);
    let last = text.chars().skip(length - end);
    first.chain(['…']).chain(last).collect()
}

/// `29 nodes`, `2 fixes`, `2 entries`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let (stem, plural) = match number {
        1 => (noun, ""),
        _ if noun.ends_with('x') => (noun, "es"),
        _ => match noun.strip_suffix("ry") {
            Some(stem) => (stem, "ries"),
            None => (noun, "s"),
        },
    };
    format!("{number} {stem}{plural}")
}

/// The texts of some values with a separator between them.
pub(crate) fn joined<T: Display>(values: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(separator)
}

/// `1 added, 2 changed`: the numbers above 0, or `none` without any.
pub(crate) fn tally<'w>(parts: impl IntoIterator<Item = (usize, &'w str)>, none: &str) -> String {
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    match joined(parts.map(|(number, word)| format!("{number} {word}")), ", ") {
        parts if parts.is_empty() => none.to_owned(),
        parts => parts,
    }
}

pub(super) fn escape_untrusted(text: impl Display) -> String {
    UntrustedText(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_as_much_as_tells_them_apart() {
        let image = |reference: &str| Image {
            reference: Some(reference.to_owned()),
            ..Image::from_version(wincimg_windows::version::WindowsVersion::new(17763, 973))
        };
        let rollout = Rollout::new(&wincimg_cluster::rollout::RolloutRequest {
            images: [
                "a.lan/shop/web:1", "a.lan/team/web:1", "b.lan/team/web:1", "a.lan/x/api:2",
                "oci:./web:1",
            ]
            .map(image)
            .into(),
            ..Default::default()
        });
        let names = [
            "shop/web:1", "a.lan/team/web:1", "b.lan/team/web:1", "api:2", "oci:./web:1",
        ];
        assert_eq!(images(&rollout), names);
    }

    #[test]
    fn nouns_have_their_plurals() {
        let nouns = ["node", "fix", "missing entry"];
        let of = |number| nouns.map(|noun| count(number, noun));
        assert_eq!(of(1), ["1 node", "1 fix", "1 missing entry"]);
        assert_eq!(of(2), ["2 nodes", "2 fixes", "2 missing entries"]);
    }

    #[test]
    fn what_is_too_long_loses_its_middle() {
        assert_eq!(shorten("service-17:1.4", 20), "service-17:1.4");
        assert_eq!(shorten("service-17:1.4", 9), "serv…:1.4");
        assert_eq!(shorten("äöüäöü", 3), "ä…ü");
        assert_eq!(shorten("abc", 1), "…");
    }
}
