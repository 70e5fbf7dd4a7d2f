//! The layers that a daemon pulls or pushes, each with a line of its own for whoever waits.

use std::collections::HashMap;
use std::sync::Arc;

use super::api::Message;
use crate::progress::{Progress, Task};

/// What the daemon says when there is nothing more to do about a layer.
const ENDS: [&str; 8] = [
    "Pull complete",
    "Already exists",
    "Pushed",
    "Layer already exists",
    "Mounted from",
    "Skipped",
    "Download complete",
    "Not pushing",
];

pub(super) struct Layers<'a> {
    progress: &'a dyn Progress,
    /// By layer: what is being done about it, and the line that says so.
    lines: HashMap<String, (String, Arc<dyn Task>)>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            lines: HashMap::new(),
        }
    }

    /// Shows what a message says of a layer.
    pub(super) fn show(&mut self, message: &Message) {
        let (Some(id), Some(status)) = (&message.id, &message.status) else {
            return;
        };
        if ENDS.iter().any(|end| status.starts_with(end)) {
            let line = match self.lines.remove(id) {
                Some((_, line)) => line,
                None => self.progress.task(&format!("layer {id}"), None),
            };
            line.done(&status.to_lowercase());
            return;
        }
        let Some(detail) = &message.progress_detail else {
            return;
        };
        let Some(current) = detail.current else {
            return;
        };
        let known = self.lines.get(id).filter(|(doing, _)| doing == status);
        let line = match known {
            Some((_, line)) => Arc::clone(line),
            None => {
                let label = format!("layer {id} {}", status.to_lowercase());
                let line = self.progress.task(&label, detail.total);
                let entry = (status.clone(), Arc::clone(&line));
                self.lines.insert(id.clone(), entry);
                line
            }
        };
        line.set_position(current);
    }
}
