//! Events on nodes, as `kubectl describe node` prints them.
//!
//! An event is recorded once: its name is derived from its content, so the server refuses a
//! duplicate, even after a restart or from another replica.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use wincimg_common::digest::sha256;
use wincimg_common::untrusted::UntrustedText;

use super::{Cluster, LiveError, MAX_PAGES, REQUEST_TIMEOUT};

/// Namespace of events about objects without a namespace.
const NAMESPACE: &str = "default";

/// Events per page of a list.
const PAGE: u32 = 1000;

/// Maximum length of a note in the API, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Maximum length of the node name in an event's name.
const LONGEST_NAME: usize = 253 - 1 - 16;

/// An event about a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// True for an event of type `Warning`.
    pub is_warning: bool,
    /// Reason, in one word.
    pub reason: &'static str,
    /// Action, in one word.
    pub action: &'static str,
    /// Message, one sentence.
    pub note: String,
}

/// The node that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeReference {
    /// Its name.
    pub name: String,
    /// UID, which distinguishes it from an earlier node of the same name.
    pub uid: String,
}

/// Writes events.
pub struct EventRecorder {
    cluster: Cluster,
    events: Api<Event>,
    controller: &'static str,
    instance: String,
    /// Count of each event that this recorder wrote.
    printed: HashMap<String, i32>,
    /// Names of events on the server, which need not be refused one by one.
    existing: HashSet<String>,
}

impl EventRecorder {
    /// Creates a recorder for one replica of a controller.
    pub fn new(cluster: Cluster, controller: &'static str, instance: String) -> Self {
        let events = Api::namespaced(cluster.client.clone(), NAMESPACE);
        Self {
            cluster,
            events,
            controller,
            instance,
            printed: HashMap::new(),
            existing: HashSet::new(),
        }
    }

    /// Lists the events about nodes that exist. Without permission for it, each is created again,
    /// and refused.
    pub async fn read_existing(&mut self) {
        self.existing.clear();
        let mut page = ListParams::default()
            .fields("regarding.kind=Node")
            .limit(PAGE);
        for _ in 0..MAX_PAGES {
            let listing = self.events.list_metadata(&page);
            let listed = self
                .cluster
                .within(REQUEST_TIMEOUT, "list events about nodes", listing);
            let Ok(listed) = listed.await else { return };
            let names = listed.items.into_iter().filter_map(|it| it.metadata.name);
            self.existing.extend(names);
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return,
            }
        }
    }

    /// Records an event about a node. An existing event is counted again if the node's state
    /// changed in between; on the first check it is unchanged.
    pub async fn record(
        &mut self,
        node: &NodeReference,
        event: &NodeEvent,
        is_news: bool,
    ) -> Result<(), LiveError> {
        let event = self.event(node, event);
        let name = event.metadata.name.clone().unwrap_or_default();
        if !is_news && self.existing.contains(&name) {
            return Ok(());
        }
        let what = format!("create an event about node {}", node.name);
        let parameters = PostParams::default();
        let asked = self.events.create(&parameters, &event);
        match self.cluster.within(REQUEST_TIMEOUT, &what, asked).await {
            Ok(_) => {
                self.printed.insert(name, 1);
            }
            Err(LiveError::Refused(_, 409)) if is_news => {
                let count = self.printed.get(&name).map_or(2, |count| count + 1);
                let series = json!({"series": {
                    "count": count,
                    "lastObservedTime": MicroTime(Timestamp::now()),
                }});
                let (parameters, patch) = (PatchParams::default(), Patch::Merge(&series));
                let asked = self.events.patch(&name, &parameters, &patch);
                let what = format!("update the count of an event about node {}", node.name);
                match self.cluster.within(REQUEST_TIMEOUT, &what, asked).await {
                    // The event expired on the server, but was recorded.
                    Ok(_) | Err(LiveError::Refused(_, 404)) => {
                        self.printed.insert(name, count);
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(LiveError::Refused(_, 409)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn event(&self, node: &NodeReference, event: &NodeEvent) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name_of(node, event)),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            type_: Some(
                if event.is_warning {
                    "Warning"
                } else {
                    "Normal"
                }
                .to_owned(),
            ),
            reason: Some(event.reason.to_owned()),
            action: Some(event.action.to_owned()),
            note: Some(shortened(&UntrustedText(&event.note).to_string())),
            event_time: Some(MicroTime(Timestamp::now())),
            regarding: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.name.clone()),
                uid: (!node.uid.is_empty()).then(|| node.uid.clone()),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// Name of the event, the same for every replica.
fn name_of(node: &NodeReference, event: &NodeEvent) -> String {
    let printed = [&node.uid, event.reason, event.action, event.note.as_str()].join("\n");
    let digest = sha256(printed.as_bytes());
    let start = &node.name[..node.name.floor_char_boundary(LONGEST_NAME)];
    format!(
        "{}.{}",
        start.trim_end_matches(['.', '-']),
        &digest.digest()[..16]
    )
}

/// Shortens a note to the length that the server accepts.
fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let room = LONGEST_NOTE - '…'.len_utf8();
    format!("{}…", &note[..note.floor_char_boundary(room)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_has_a_name_that_the_api_takes() {
        let event = NodeEvent {
            is_warning: false,
            reason: "ImagesReady",
            action: "Build",
            note: "2 images are there".to_owned(),
        };
        let node = |name: &str, uid: &str| NodeReference {
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        let name = name_of(&node("win-a", "1"), &event);
        assert_eq!(name, name_of(&node("win-a", "1"), &event));
        assert_ne!(name, name_of(&node("win-a", "2"), &event));
        assert!(name.starts_with("win-a.") && name.len() == 22, "{name}");
        let longest = format!("{}.{}", "a".repeat(235), "b".repeat(17));
        let name = name_of(&node(&longest, "1"), &event);
        assert!(name.len() <= 253 && !name.contains(".."), "{name}");
    }

    #[test]
    fn a_note_that_is_too_long_ends_at_a_character() {
        assert_eq!(shortened("short"), "short");
        let note = shortened(&"é".repeat(600));
        assert!(note.len() <= LONGEST_NOTE && note.ends_with("é…"), "{note}");
    }
}
