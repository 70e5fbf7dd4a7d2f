//! Kubernetes manifests, and the commands that remove their objects, as results of commands.

use wincimg_cluster::build_nodes::BuildNodes;
use wincimg_cluster::manifest_text::to_yaml;
use wincimg_cluster::nodes::Node;

use crate::cli::prelude::*;

/// Writes objects to a file or stdout: as YAML, or as a list in JSON.
pub(super) fn write_objects(
    objects: &[Value],
    file: Option<&Path>,
    format: OutputFormat,
) -> Result<CommandOutcome, Failure> {
    let list = || json!({"apiVersion": "v1", "kind": "List", "items": objects});
    format.write(file, list, |out| out.write_all(to_yaml(objects).as_bytes()))
}

/// Writes commands to a file or stdout, one on each line.
pub(super) fn write_commands(
    commands: &[String],
    file: Option<&Path>,
    format: OutputFormat,
) -> Result<CommandOutcome, Failure> {
    let list = || json!({"commands": commands});
    format.write(file, list, |out| {
        commands
            .iter()
            .try_for_each(|command| writeln!(out, "{command}"))
    })
}

/// Warns of the nodes of a build that its pods do not select, also by labels of `--node-selector`.
pub(super) fn warn_of_missing_labels(
    build: &BuildNodes,
    nodes: &[Node],
    selector: &[(String, String)],
    session: &Session,
) {
    for (label, names) in build.missing_labels(nodes) {
        let mut own = selector.iter();
        let is_own = own.any(|(key, value)| format!("{key}={value}") == label);
        let or = if is_own {
            ", or correct --node-selector"
        } else {
            ""
        };
        session.warn(format_args!(
            "no pod will run on {}: the label {label} is missing; set it with `kubectl label \
             node`{or}",
            names.join(", ")
        ));
    }
}
