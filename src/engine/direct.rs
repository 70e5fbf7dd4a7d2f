//! Images without Windows and without Docker: the plan becomes one layer and a changed
//! configuration on top of the base, written here and sent straight to where the image belongs.
//!
//! [`assemble`] is pure work on values and files; [`publish`] moves what the target lacks. Of the
//! base only the manifest and the configuration are read, unless its layers have to be copied.

use std::sync::Arc;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::addition::{Addition, Additions, AssembleOptions};
use super::error::DirectError;
use crate::oci::copy::{Copier, Foreign, PlannedBlob};
use crate::oci::document::{
    self, ContainerConfig, Descriptor, Document, DocumentError, Flavour, History, Image,
};
use crate::oci::store::{Sink, Source};
use crate::progress::Progress;
use crate::recipe::Plan;
use crate::windows::iis::IisSettings;

/// An image that is ready to be published.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// Manifest and configuration.
    pub image: Image,
    /// How many of its layers are the base's.
    pub base_layers: usize,
    /// The layer that the recipe adds, if it changes anything in one.
    addition: Option<Arc<Addition>>,
    /// The base's layers as its registry describes them.
    base_blobs: Vec<Descriptor>,
}

impl Assembled {
    /// The same image in the words of a flavour.
    pub fn in_flavour(&self, flavour: Flavour) -> Result<Self, DocumentError> {
        Ok(Self {
            image: self.image.in_flavour(flavour)?,
            ..self.clone()
        })
    }
}

/// Makes the image that a plan describes. This works on the processor and the disk: call it outside
/// of asynchronous code.
pub fn assemble(
    plan: &Plan,
    base: &Image,
    options: &AssembleOptions,
    additions: &Additions,
    progress: &dyn Progress,
) -> Result<Assembled, DirectError> {
    check(plan)?;
    let config = base.config();
    if config.os != "windows" {
        return Err(DirectError::NotWindows {
            base: plan.base.name.clone(),
            os: config.os.clone(),
        });
    }
    let (created, timestamp) = time_of(plan, base, options)?;
    let image = base.with_ordinary_layers()?;
    let addition = additions.of(plan, base, timestamp, options, progress)?;
    let history = History {
        created: Some(created.clone()),
        created_by: Some(format!("wincimg build {}", plan.name)),
        empty_layer: addition.is_none(),
        ..History::default()
    };
    let image = match &addition {
        Some(addition) => {
            let image = addition.in_its_words(image)?;
            let blob = addition.descriptor(image.manifest().flavour());
            let diff_id = addition.diff_id();
            image.append_layer(document::Layer {
                blob,
                diff_id,
                history,
            })?
        }
        None => image.edit_config(|config| config.history.push(history))?,
    };
    let image = image.edit_config(|config| {
        config.created = Some(created);
        change_container(&mut config.config, plan);
    })?;
    Ok(Assembled {
        base_layers: base.manifest().layers.len(),
        base_blobs: base.manifest().layers.clone(),
        image,
        addition,
    })
}

/// Refuses a plan that cannot be made without Windows, and says what in it needs that.
pub fn check(plan: &Plan) -> Result<(), DirectError> {
    if let Some(step) = plan.steps.first() {
        return Err(DirectError::NeedsWindows {
            number: 1,
            count: plan.steps.len(),
            step: step.command.to_string(),
        });
    }
    let settings = plan.iis.iter().flat_map(IisSettings::of_the_server).next();
    match settings {
        Some(setting) => Err(DirectError::NeedsAppcmd { setting }),
        None => Ok(()),
    }
}

/// The time as the configuration has it, and in seconds for the layer.
fn time_of(
    plan: &Plan,
    base: &Image,
    options: &AssembleOptions,
) -> Result<(String, u64), DirectError> {
    let text = match options.created {
        Some(time) => time.to_string(),
        None => base.config().created.clone().unwrap_or_default(),
    };
    let seconds = text
        .parse::<Timestamp>()
        .ok()
        .and_then(|time| u64::try_from(time.as_second()).ok());
    match seconds {
        Some(seconds) => Ok((text, seconds)),
        None => Err(DirectError::NoTime {
            base: plan.base.name.clone(),
            text,
        }),
    }
}

/// Lays what the plan says over what the base says.
fn change_container(container: &mut ContainerConfig, plan: &Plan) {
    for (name, value) in &plan.env {
        set_variable(&mut container.env, name, value);
    }
    if let Some(entrypoint) = &plan.entrypoint {
        container.entrypoint = Some(entrypoint.clone());
        // The base's arguments were for the base's program.
        container.cmd = None;
        container.args_escaped = false;
    }
    if let Some(cmd) = &plan.cmd {
        container.cmd = Some(cmd.clone());
        container.args_escaped = false;
    }
    if let Some(user) = &plan.user {
        container.user = Some(user.clone());
    }
    if let Some(folder) = &plan.working_dir {
        container.working_dir = Some(folder.to_string());
    }
    for port in &plan.ports {
        container
            .exposed_ports
            .insert(port.clone(), Value::Object(Map::new()));
    }
    container.labels.extend(plan.labels.clone());
}

/// Windows does not tell names of variables apart by case.
fn set_variable(env: &mut Vec<String>, name: &str, value: &str) {
    let entry = format!("{name}={value}");
    let known = env.iter_mut().find(|line| {
        line.split_once('=')
            .is_some_and(|(known, _)| known.eq_ignore_ascii_case(name))
    });
    match known {
        Some(line) => *line = entry,
        None => env.push(entry),
    }
}

/// Brings an image to its place, under a tag or by its digest alone: first what it consists of, as
/// far as that is not there, all at once, then its manifest.
pub async fn publish(
    assembled: &Assembled,
    source: &Source,
    sink: &Sink,
    tag: Option<&str>,
    copier: &Copier,
) -> Result<(), DirectError> {
    let image = &assembled.image;
    let root = Document::Manifest(Box::new(image.manifest().clone()));
    let addition = async {
        match &assembled.addition {
            Some(addition) => {
                let descriptor = addition.descriptor(image.manifest().flavour());
                let bytes = addition.bytes();
                copier.put(&descriptor, bytes, sink).await.map(drop)
            }
            None => Ok(()),
        }
    };
    let config = copier.put(&image.manifest().config, image.config().bytes(), sink);
    let base = try_join_all(assembled.base_blobs.iter().map(|blob| async move {
        let blob = PlannedBlob::new(blob.clone(), Foreign::MakeOrdinary);
        copier.bring(&blob, source, sink).await
    }));
    tokio::try_join!(addition, config, base)?;
    Ok(sink.publish(&root, tag).await?)
}
