//! Transfers by a daemon, with a line of progress for each layer.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::Docker;
use wincimg_common::progress::{Progress, Task};

use super::daemon::Daemon;
use super::error::DockerError;
use super::transport::{Message, Messages, one_line};

/// Statuses with which a layer is finished.
const ENDS: [&str; 6] = [
    "Pull complete", "Already exists", "Pushed", "Layer already exists", "Mounted from", "Skipped",
];

pub(super) struct Layers<'a> {
    progress: &'a dyn Progress,
    /// By layer: its status, and its line.
    lines: HashMap<String, (String, Arc<dyn Task>)>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            lines: HashMap::new(),
        }
    }

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
        let Some((current, total)) = message.progress else {
            return;
        };
        let known = self.lines.get(id).filter(|(doing, _)| doing == status);
        let line = match known {
            Some((_, line)) => Arc::clone(line),
            None => {
                let label = format!("layer {id} {}", status.to_lowercase());
                let line = self.progress.task(&label, total);
                let entry = (status.clone(), Arc::clone(&line));
                self.lines.insert(id.clone(), entry);
                line
            }
        };
        line.set_position(current);
    }
}

impl Daemon {
    /// Makes a call that transfers layers, shows them, and passes each message on.
    pub(super) async fn follow_transfer<T>(
        &self,
        what: &str,
        progress: &dyn Progress,
        call: impl AsyncFnOnce(Docker) -> Result<T, bollard::errors::Error>,
        mut each: impl FnMut(&Message),
    ) -> Result<(), DockerError> {
        let answer = self.client.call_raw(what, "", call).await?;
        let mut messages = Messages::new(what, answer);
        let mut layers = Layers::new(progress);
        while let Some(message) = messages.next().await? {
            if let Some(complaint) = &message.complaint {
                return Err(DockerError::Refused {
                    what: what.to_owned(),
                    status: None,
                    message: one_line(&complaint.message),
                    image: None,
                });
            }
            layers.show(&message);
            each(&message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct RecordedProgress(Arc<Mutex<Vec<String>>>);

    struct Line(RecordedProgress, String);

    impl RecordedProgress {
        fn write(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }
    }

    impl Progress for RecordedProgress {
        fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
            self.write(format!("{label} of {total:?}"));
            Arc::new(Line(self.clone(), label.to_owned()))
        }

        fn note(&self, message: &dyn Display) {
            self.write(message.to_string());
        }

        fn warn(&self, message: &dyn Display) {
            self.write(message.to_string());
        }
    }

    impl Task for Line {
        fn advance(&self, _bytes: u64) {}

        fn set_position(&self, bytes: u64) {
            self.0.write(format!("{} at {bytes}", self.1));
        }

        fn done(&self, outcome: &str) {
            self.0.write(format!("{} {outcome}", self.1));
        }
    }

    #[test]
    fn each_layer_has_a_line_for_what_is_done_about_it() {
        let reported = RecordedProgress::default();
        let mut layers = Layers::new(&reported);
        for message in [
            r#"{"status": "The push refers to repository [x]"}"#,
            r#"{"status": "Preparing", "progressDetail": {}, "id": "aa"}"#,
            r#"{"status": "Downloading", "progressDetail": {"current": 1, "total": 9}, "id": "aa"}"#,
            r#"{"status": "Downloading", "progressDetail": {"current": 9, "total": 9}, "id": "aa"}"#,
            r#"{"status": "Extracting", "progressDetail": {"current": 4}, "id": "aa"}"#,
            r#"{"status": "Layer already exists", "progressDetail": {}, "id": "bb"}"#,
            r#"{"status": "Pull complete", "progressDetail": {}, "id": "aa"}"#,
            r#"{"status": "Mounted from library/app", "id": "cc"}"#,
        ] {
            layers.show(&Message::read(message.as_bytes()));
        }
        let reported = reported.0.lock().unwrap().clone();
        assert_eq!(
            reported,
            [
                "layer aa downloading of Some(9)",
                "layer aa downloading at 1",
                "layer aa downloading at 9",
                "layer aa extracting of None",
                "layer aa extracting at 4",
                "layer bb of None",
                "layer bb layer already exists",
                "layer aa extracting pull complete",
                "layer cc of None",
                "layer cc mounted from library/app",
            ]
        );
    }
}
