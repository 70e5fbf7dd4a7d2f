//! Prints changes of a rollout as the nodes of a cluster change: a table on a terminal, otherwise
//! one line per change.

use wincimg_cluster::live::{NodeChange, NodeSnapshot, NodeWatch};
use wincimg_cluster::nodes::NodeList;
use wincimg_cluster::rollout::{Image, Rollout, RolloutCheck, RolloutRequest};

use super::table::Table;
use crate::cli::output::stdout;
use crate::cli::prelude::*;
use crate::cli::shutdown;
use crate::report::ReportFormat;

/// Subject of a verdict.
type CheckKey = (String, Option<String>);

/// Name of the verdict, its rule, and the reason.
type CheckResult = (&'static str, &'static str, String);

/// Prints every changed verdict until stdout is closed or a signal ends the command. On a terminal,
/// text is a table that is redrawn.
pub(super) fn follow(
    hosts: &HostArgs,
    nodes: NodeSnapshot,
    request: &RolloutRequest,
    format: ReportFormat,
) -> Result<()> {
    shutdown::expect_signal();
    let mut table = match format {
        ReportFormat::Text => Table::on_terminal(request),
        _ => None,
    };
    if let Some(table) = &mut table {
        writeln!(io::stdout())?;
        table.draw()?;
    }
    registry_args::run_single_threaded(async {
        let mut watch = NodeWatch::new(hosts.cluster.connect().await?, nodes);
        loop {
            let NodeChange { before, after } = watch.next().await?;
            let change = NodeChange {
                before: before.map(|list| hosts.matching(list)),
                after: after.map(|list| hosts.matching(list)),
            };
            let events = events(&change, request);
            let reported = match &mut table {
                Some(table) => {
                    table.take(&change, &events);
                    table.draw()
                }
                None => print(&events, format),
            };
            match reported {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                other => other?,
            }
        }
    })
}

/// A changed verdict, in words and in JSON.
pub(super) type Event = (String, Value);

fn events(change: &NodeChange, request: &RolloutRequest) -> Vec<Event> {
    let before = answers(change.before.as_ref(), request);
    let after = answers(change.after.as_ref(), request);
    let (old_name, was) = name_and_build(change.before.as_ref());
    let (new_name, is) = name_and_build(change.after.as_ref());
    let name = if new_name.is_empty() {
        old_name
    } else {
        new_name
    };
    let new = after.keys().filter(|key| !before.contains_key(*key));
    let events = before.keys().chain(new).filter_map(|question| {
        let (image, workload) = question;
        let old = before.get(question).map(|(verdict, ..)| *verdict);
        let new = after.get(question);
        let verdict = new.map(|(verdict, ..)| *verdict);
        if old == verdict {
            return None;
        }
        let whose = workload.as_ref();
        let whose = whose.map(|name| format!(" of {name}")).unwrap_or_default();
        let why = new.map(|(.., reason)| format!(": {reason}"));
        let words = format!(
            "{name} {} -> {}: {image}{whose} {} -> {}{}",
            or_dash(was.as_ref()),
            or_dash(is.as_ref()),
            or_dash(old),
            or_dash(verdict),
            why.unwrap_or_default(),
        );
        let event = json!({
            "host": {"name": name, "build_before": was, "build": is},
            "image": image,
            "workload": workload,
            "verdict_before": old,
            "verdict": verdict,
            "rule": new.map(|(_, rule, _)| *rule),
            "reason": new.map(|(.., reason)| reason),
        });
        Some((UntrustedText(words).to_string(), event))
    });
    events.collect()
}

/// One line for each change.
fn print(events: &[Event], format: ReportFormat) -> io::Result<()> {
    let mut out = stdout().lock();
    for (words, event) in events {
        match format {
            ReportFormat::Json => writeln!(out, "{event}")?,
            _ => writeln!(out, "{words}")?,
        }
    }
    out.flush()
}

fn name_and_build(list: Option<&NodeList>) -> (String, Option<String>) {
    let node = list.and_then(|list| list.windows.first().or(list.others.first()));
    let name = node.and_then(|node| node.name.clone()).unwrap_or_default();
    (name, node.and_then(|node| Some(node.build?.to_string())))
}

/// The verdicts about one node.
fn answers(node: Option<&NodeList>, request: &RolloutRequest) -> BTreeMap<CheckKey, CheckResult> {
    let Some(node) = node else {
        return BTreeMap::new();
    };
    let rollout = Rollout::on(node.clone(), request);
    let placed = rollout.checks().filter(|check| check.host.is_some());
    placed
        .map(|check: RolloutCheck<'_>| {
            let image = check.image.map(Image::label).unwrap_or_default();
            let workload = check.workload.map(|workload| workload.id.to_string());
            let finding = check.finding;
            let answer = (finding.outcome.name(), finding.rule, finding.reason.clone());
            ((image, workload), answer)
        })
        .collect()
}
