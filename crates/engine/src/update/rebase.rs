//! Configuration of a rebased image: the image's changes stay, and inherited values become those of
//! the new base.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use wincimg_common::diagnose::Problem;
use wincimg_oci::document::{
    BASE_DIGEST, BASE_NAME, CREATED, ContainerConfig, Descriptor, Digest, History, Image,
    ImageConfig, ManifestFormat,
};
use wincimg_windows::search_path;

/// The label with an image's version, which some images inherit from their base.
const VERSION: &str = "org.opencontainers.image.version";
const ANNOTATIONS: &str = "annotations";

/// Reference of the new base in the image.
pub(super) struct BaseLabel<'a> {
    pub(super) name: &'a str,
    /// True if an image that does not name its base must name it from now on.
    pub(super) note: bool,
}

/// Puts the configuration of an image above its old base on the new one, with its own layers and
/// their diff IDs.
pub(super) fn rebase(
    image: &Image,
    (old, new): (&Image, &Image),
    own: Vec<(Descriptor, Digest)>,
    called: &BaseLabel<'_>,
) -> Result<Image, Problem> {
    let format = image.manifest().format();
    let base = new.in_format(format)?;
    let (own, own_ids): (Vec<_>, Vec<_>) = own.into_iter().unzip();
    let layers: Vec<Descriptor> = base.manifest().layers.iter().cloned().chain(own).collect();
    let config = image.config().edit(|config| {
        let merged = configuration(config, old.config(), new.config());
        *config = merged;
        let diff_ids = &mut config.rootfs.diff_ids;
        diff_ids.clone_from(&new.config().rootfs.diff_ids);
        diff_ids.extend(own_ids);
        note_base(config, format, new, called);
        if let Some(label) = config.config.labels.get_mut(CREATED)
            && Some(&*label) == image.config().created.as_ref()
            && let Some(created) = &config.created
        {
            label.clone_from(created);
        }
        let version = |it: &ImageConfig| it.os_version.clone();
        let label = config.config.labels.get_mut(VERSION);
        if let (Some(label), Some(before), Some(now)) =
            (label, version(old.config()), version(new.config()))
            && *label == before
        {
            *label = now;
        }
    })?;
    let manifest = image.manifest().edit(|manifest| {
        manifest.layers = layers;
        manifest.make_layers_distributable();
        if manifest.config.digest != *config.digest() {
            manifest.config.digest = config.digest().clone();
            manifest.config.size = config.size();
            // An embedded copy of the old configuration would contradict the digest.
            manifest.config.other.remove("data");
        }
        annotate_base(&mut manifest.other, format, new, called, image);
        let annotation = manifest.other.get_mut(ANNOTATIONS);
        if let Some(annotation) = annotation.and_then(|all| all.get_mut(CREATED))
            && let Some(label) = config.config.labels.get(CREATED)
        {
            *annotation = label.as_str().into();
        }
    })?;
    Image::new(manifest, config)
}

/// Records the base in the configuration, if the image names it there.
fn note_base(
    config: &mut ImageConfig,
    format: ManifestFormat,
    new: &Image,
    called: &BaseLabel<'_>,
) {
    let labels = &mut config.config.labels;
    let says_name = labels.contains_key(BASE_NAME);
    let notes_here = called.note && format == ManifestFormat::Docker;
    if says_name || notes_here {
        labels.insert(BASE_NAME.to_owned(), called.name.to_owned());
    }
    if says_name || notes_here || labels.contains_key(BASE_DIGEST) {
        labels.insert(BASE_DIGEST.to_owned(), new.digest().to_string());
    }
}

/// Records the base in the manifest's annotations, which Docker's manifests do not have.
fn annotate_base(
    manifest: &mut Map<String, Value>,
    format: ManifestFormat,
    new: &Image,
    called: &BaseLabel<'_>,
    image: &Image,
) {
    let says_in_labels = image.config().config.labels.contains_key(BASE_NAME);
    let notes_here = called.note && format == ManifestFormat::Oci && !says_in_labels;
    if notes_here && !manifest.contains_key(ANNOTATIONS) {
        manifest.insert(ANNOTATIONS.to_owned(), Value::Object(Map::new()));
    }
    let Some(Value::Object(annotations)) = manifest.get_mut(ANNOTATIONS) else {
        return;
    };
    let says_name = annotations.contains_key(BASE_NAME);
    if says_name || notes_here {
        annotations.insert(BASE_NAME.to_owned(), called.name.into());
    }
    if says_name || notes_here || annotations.contains_key(BASE_DIGEST) {
        let digest = new.digest().to_string();
        annotations.insert(BASE_DIGEST.to_owned(), digest.into());
    }
}

/// The configuration on the new base; the list of layers is still the image's.
fn configuration(image: &ImageConfig, old: &ImageConfig, new: &ImageConfig) -> ImageConfig {
    ImageConfig {
        // The later of the two creation times.
        created: later(image.created.as_ref(), new.created.as_ref()),
        architecture: new.architecture.clone(),
        os: new.os.clone(),
        os_version: new.os_version.clone(),
        os_features: changed(&image.os_features, &old.os_features, &new.os_features),
        variant: changed(&image.variant, &old.variant, &new.variant),
        config: container(&image.config, &old.config, &new.config),
        rootfs: image.rootfs.clone(),
        history: history(image, old, new),
        other: fields(&image.other, &old.other, &new.other),
    }
}

fn later(image: Option<&String>, new: Option<&String>) -> Option<String> {
    let time = |text: Option<&String>| text?.parse::<Timestamp>().ok();
    let is_newer = match (time(image), time(new)) {
        (Some(image), Some(new)) => new > image,
        (None, Some(_)) => image.is_none(),
        _ => false,
    };
    if is_newer {
        new.cloned()
    } else {
        image.cloned()
    }
}

fn container(
    image: &ContainerConfig,
    old: &ContainerConfig,
    new: &ContainerConfig,
) -> ContainerConfig {
    // A program of the image has its own arguments, or none.
    let has_program = image.entrypoint != old.entrypoint;
    let has_arguments = has_program || image.cmd != old.cmd;
    ContainerConfig {
        user: changed(&image.user, &old.user, &new.user),
        exposed_ports: merged(&image.exposed_ports, &old.exposed_ports, &new.exposed_ports),
        env: environment(&image.env, &old.env, &new.env),
        entrypoint: changed(&image.entrypoint, &old.entrypoint, &new.entrypoint),
        cmd: if has_arguments {
            image.cmd.clone()
        } else {
            new.cmd.clone()
        },
        args_escaped: if has_arguments {
            image.args_escaped
        } else {
            changed(&image.args_escaped, &old.args_escaped, &new.args_escaped)
        },
        working_dir: changed(&image.working_dir, &old.working_dir, &new.working_dir),
        labels: merged(&image.labels, &old.labels, &new.labels),
        // The base's applied to this image, not to those built on it.
        on_build: image.on_build.clone(),
        shell: changed(&image.shell, &old.shell, &new.shell),
        other: fields(&image.other, &old.other, &new.other),
    }
}

/// The image's value if it changed it, else the new base's.
fn changed<T: PartialEq + Clone>(image: &T, old: &T, new: &T) -> T {
    if image == old {
        new.clone()
    } else {
        image.clone()
    }
}

/// Labels or ports, each merged by itself.
fn merged<V: PartialEq + Clone>(
    image: &BTreeMap<String, V>,
    old: &BTreeMap<String, V>,
    new: &BTreeMap<String, V>,
) -> BTreeMap<String, V> {
    let own = image.iter().filter_map(|(key, value)| {
        let value = match old.get(key) {
            Some(before) if before == value => new.get(key)?,
            _ => value,
        };
        Some((key.clone(), value.clone()))
    });
    let came = new.iter();
    let came = came.filter(|(key, _)| !old.contains_key(*key) && !image.contains_key(*key));
    own.chain(came.map(|(key, value)| (key.clone(), value.clone())))
        .collect()
}

/// Other fields, and volumes, each merged by itself.
fn fields(
    image: &Map<String, Value>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for (name, value) in image {
        let value = match (value, old.get(name), new.get(name)) {
            (value, Some(before), now) if before == value => now.cloned(),
            (Value::Object(own), Some(Value::Object(before)), Some(Value::Object(now)))
                if name == "Volumes" =>
            {
                Some(Value::Object(fields(own, before, now)))
            }
            (value, ..) => Some(value.clone()),
        };
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, value) in new {
        if !old.contains_key(name) && !image.contains_key(name) {
            merged.insert(name.clone(), value.clone());
        }
    }
    merged
}

/// Variables, whose names are not case-sensitive on Windows. Those added by the new base follow the
/// inherited ones.
fn environment(image: &[String], old: &[String], new: &[String]) -> Vec<String> {
    let mut merged: Vec<String> = Vec::new();
    let mut behind = 0;
    for line in image {
        let Some((name, value)) = line.split_once('=') else {
            merged.push(line.clone());
            continue;
        };
        let (before, now) = (variable(old, name), variable(new, name));
        match before {
            Some((_, same)) if same == value => {
                merged.extend(now.map(|(name, value)| format!("{name}={value}")));
            }
            _ if name.eq_ignore_ascii_case(search_path::VARIABLE) => {
                let text =
                    |found: Option<(&str, &str)>| found.map_or("", |(_, value)| value).to_owned();
                let path = search_path::replace_prefix(value, &text(before), &text(now));
                merged.push(format!("{name}={path}"));
            }
            _ => merged.push(line.clone()),
        }
        if before.is_some() {
            behind = merged.len();
        }
    }
    let came = new.iter().filter(|line| {
        let name = line.split_once('=').map_or(line.as_str(), |(name, _)| name);
        variable(old, name).is_none() && variable(image, name).is_none()
    });
    let came: Vec<String> = came.cloned().collect();
    merged.splice(behind..behind, came);
    merged
}

fn variable<'e>(env: &'e [String], name: &str) -> Option<(&'e str, &'e str)> {
    let mut lines = env.iter().filter_map(|line| line.split_once('='));
    lines.find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// The new base's steps, then the image's own.
fn history(image: &ImageConfig, old: &ImageConfig, new: &ImageConfig) -> Vec<History> {
    let own = own_history(image, old);
    new.history.iter().chain(own.iter()).cloned().collect()
}

/// The steps of an image above its base. If the history does not match the layers, each layer gets
/// an empty step.
fn own_history<'i>(image: &'i ImageConfig, old: &ImageConfig) -> Cow<'i, [History]> {
    let (all, count) = (&image.history, image.rootfs.diff_ids.len());
    let below = old.rootfs.diff_ids.len();
    let layers = |steps: &[History]| steps.iter().filter(|step| !step.empty_layer).count();
    let begins = all.starts_with(&old.history) && layers(&old.history) == below;
    if layers(all) != count {
        return Cow::Owned(vec![History::default(); count - below]);
    }
    let end = if begins {
        Some(old.history.len())
    } else {
        (0..=all.len()).find(|end| layers(&all[..*end]) == below)
    };
    Cow::Borrowed(&all[end.unwrap_or(all.len())..])
}

/// The instruction of each layer of an image above its base.
pub(super) fn instructions(image: &ImageConfig, old: &ImageConfig) -> Vec<Option<String>> {
    let count = image.rootfs.diff_ids.len() - old.rootfs.diff_ids.len();
    let steps = own_history(image, old);
    let mut made: Vec<Option<String>> = steps
        .iter()
        .filter(|step| !step.empty_layer)
        .map(|step| step.created_by.clone().filter(|text| !text.is_empty()))
        .collect();
    if made.len() != count {
        made = vec![None; count];
    }
    made
}

#[cfg(test)]
mod tests;
