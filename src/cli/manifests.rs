//! Kubernetes manifests, the values in them, and the commands that remove their objects.

use wincimg_cluster::build_nodes::BuildNodes;
use wincimg_cluster::builder::is_builder_name;
use wincimg_cluster::manifest_text::to_yaml;
use wincimg_cluster::names::{
    is_dns_label, is_dns_subdomain, is_label_key, is_label_value, is_quantity,
};
use wincimg_cluster::nodes::Node;
use wincimg_oci::reference::ReferenceError;

use crate::cli::prelude::*;

/// Writes objects to a file or stdout: as YAML, or as a list in JSON.
pub(super) fn write_objects(
    objects: &[Value],
    file: Option<&Path>,
    format: OutputFormat,
) -> Result<CommandOutcome> {
    let list = || json!({"apiVersion": "v1", "kind": "List", "items": objects});
    format.write(file, list, |out| out.write_all(to_yaml(objects).as_bytes()))
}

/// Writes commands to a file or stdout, one on each line.
pub(super) fn write_commands(
    commands: &[String],
    file: Option<&Path>,
    format: OutputFormat,
) -> Result<CommandOutcome> {
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

pub(super) fn namespace(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 63 lower-case letters, digits and dashes";
    checked(text, is_dns_label, expected)
}

pub(super) fn builder_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 40 lower-case letters, digits and dashes";
    checked(text, is_builder_name, expected)
}

/// Name of an object that is not a part of another name.
pub(super) fn object_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 253 lower-case letters, digits, dashes and dots";
    checked(text, is_dns_subdomain, expected)
}

pub(super) fn quantity(text: &str) -> Result<String, &'static str> {
    let expected = "expected a quantity, such as 500m, 2 or 4Gi";
    checked(text, is_quantity, expected)
}

pub(super) fn label(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=');
    let pair = pair.filter(|(key, value)| is_label_key(key) && is_label_value(value));
    let (key, value) = pair.ok_or("expected a label, such as pool=web or example.com/pool=web")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A reference as it is typed: manifests need no default host and tag.
pub(super) fn image(text: &str) -> Result<String, ReferenceError> {
    parse_reference(text)?;
    Ok(text.to_owned())
}

fn checked(
    text: &str,
    is_valid: fn(&str) -> bool,
    expected: &'static str,
) -> Result<String, &'static str> {
    is_valid(text).then(|| text.to_owned()).ok_or(expected)
}
