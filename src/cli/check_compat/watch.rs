//! What changes about a roll-out as the nodes of a cluster change, a line at a time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use super::Format;
use super::kube::KubeArgs;
use crate::cli::failure::Failure;
use crate::cli::{registry_args, stop};
use crate::cluster::live::{NodeChange, NodeSnapshot, NodeWatch};
use crate::cluster::nodes::NodeList;
use crate::foreign::Foreign;
use crate::rollout::{Check, Image, Request, Rollout};

/// A question that has one answer at a time.
type Question = (String, Option<String>);

/// An answer: the verdict's name and the rule's.
type Answer = (&'static str, &'static str, String);

/// Prints every change of a verdict until nobody listens any more, or a signal ends it.
pub(super) fn follow(
    kube: &KubeArgs,
    nodes: NodeSnapshot,
    request: &Request,
    format: Format,
) -> Result<(), Failure> {
    stop::is_the_usual_end();
    registry_args::run_in_one_thread(async {
        let mut watch = NodeWatch::new(kube.connect().await?, nodes);
        loop {
            match print(&watch.next().await?, request, format) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                other => other?,
            }
        }
    })
}

fn print(change: &NodeChange, request: &Request, format: Format) -> io::Result<()> {
    let before = answers(change.before.as_ref(), request);
    let after = answers(change.after.as_ref(), request);
    let (name, was) = name_and_build(change.before.as_ref());
    let (new_name, is) = name_and_build(change.after.as_ref());
    let name = if new_name.is_empty() { name } else { new_name };
    let mut out = io::stdout().lock();
    for question in before
        .keys()
        .chain(after.keys().filter(|key| !before.contains_key(*key)))
    {
        let verdict = |answers: &BTreeMap<Question, Answer>| {
            answers.get(question).map(|(verdict, _, _)| *verdict)
        };
        let (old, new) = (verdict(&before), verdict(&after));
        if old == new {
            continue;
        }
        let (image, workload) = question;
        if matches!(format, Format::Json) {
            let line = json!({
                "host": {"name": name, "build_before": was, "build": is},
                "image": image,
                "workload": workload,
                "verdict_before": old,
                "verdict": new,
                "rule": after.get(question).map(|(_, rule, _)| *rule),
                "reason": after.get(question).map(|(_, _, reason)| reason),
            });
            writeln!(out, "{line}")?;
        } else {
            let whose = workload
                .as_ref()
                .map(|name| format!(" of {name}"))
                .unwrap_or_default();
            let why = after
                .get(question)
                .map(|(_, _, reason)| format!(": {reason}"));
            let line = format!(
                "{name} {} -> {}: {image}{whose} {} -> {}{}",
                was.as_deref().unwrap_or("-"),
                is.as_deref().unwrap_or("-"),
                old.unwrap_or("-"),
                new.unwrap_or("-"),
                why.unwrap_or_default()
            );
            writeln!(out, "{}", Foreign(line))?;
        }
    }
    out.flush()
}

fn name_and_build(list: Option<&NodeList>) -> (String, Option<String>) {
    let node = list.and_then(|list| list.windows.first().or(list.others.first()));
    let name = node.and_then(|node| node.name.clone()).unwrap_or_default();
    (name, node.and_then(|node| Some(node.build?.to_string())))
}

/// The answers about one node alone.
fn answers(node: Option<&NodeList>, request: &Request) -> BTreeMap<Question, Answer> {
    let Some(node) = node else {
        return BTreeMap::new();
    };
    let rollout = Rollout::new(Request {
        nodes: node.clone(),
        ..request.clone()
    });
    let placed = rollout.checks().filter(|check| check.host.is_some());
    placed
        .map(|check: Check<'_>| {
            let image = check.image.map(Image::label).unwrap_or_default();
            let workload = check.workload.map(|workload| workload.id.to_string());
            let finding = check.finding;
            let answer = (finding.outcome.name(), finding.rule, finding.reason.clone());
            ((image, workload), answer)
        })
        .collect()
}
