//! Workloads, as JSON and YAML.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_cluster::workloads::WorkloadList;

fuzz_target!(|text: &str| {
    let mut workloads = WorkloadList::default();
    drop(workloads.read(text, "f"));
});
