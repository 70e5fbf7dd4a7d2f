//! The workloads that a check is about, from files.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::cli::failure::Failure;
use crate::cluster::workloads::{Workload, WorkloadId, WorkloadList};

/// Reads the workloads of all files; `-` is stdin.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Workload>, Failure> {
    let mut list = WorkloadList::default();
    for file in files {
        let (text, name) = text_of(file)?;
        list.read(&text, &name).map_err(|error| {
            Failure::usage(anyhow!("{name}: {error}"))
                .hint("--workloads takes Kubernetes YAML, or the output of: kubectl get … -o json")
        })?;
    }
    Ok(list.into_workloads())
}

fn text_of(file: &Path) -> Result<(String, String), Failure> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(|error| Failure::from(error).context("cannot read stdin"))?;
        return Ok((text, "stdin".to_owned()));
    }
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::from(error).context(format!("cannot read {name}")))?;
    Ok((text, name))
}

/// The first few workloads by name.
pub(super) fn names(workloads: &[WorkloadId]) -> String {
    const NAMED: usize = 5;
    let mut names: Vec<String> = workloads
        .iter()
        .take(NAMED)
        .map(|id| format!("{} {}/{}", id.kind, id.namespace, id.name))
        .collect();
    if workloads.len() > NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}
