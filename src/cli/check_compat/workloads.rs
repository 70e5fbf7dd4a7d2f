//! Reads the workloads of a check from files.

use std::path::PathBuf;

use anyhow::anyhow;
use wincimg_cluster::workloads::WorkloadList;

use crate::cli::command_context::Session;
use crate::cli::error::Failure;
use crate::cli::input;
use crate::cli::input::read_text;

const HINT: &str =
    "--workloads takes Kubernetes YAML or JSON, as helm template and kubectl get -o yaml print it";

/// Reads the workloads of all files; `-` is stdin. Files without any are an error: a gate must not
/// pass because its input is empty.
pub(super) fn read(files: &[PathBuf], session: &Session) -> Result<WorkloadList, Failure> {
    let mut list = WorkloadList::default();
    for file in files {
        let name = input::name(file);
        list.read(&read_text(file)?, &name)
            .map_err(|error| Failure::from(error).at(&name))?;
    }
    for warning in &list.warnings {
        session.warn(warning);
    }
    if list.workloads.is_empty() && !files.is_empty() {
        let names: Vec<String> = files.iter().map(|file| input::name(file)).collect();
        return Err(
            Failure::usage(anyhow!("found no workload in {}", names.join(", "))).hint(HINT),
        );
    }
    Ok(list)
}

/// The first few names.
pub(super) fn names(all: &[impl ToString]) -> String {
    const NAMED: usize = 5;
    let mut names: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    if all.len() > NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}
