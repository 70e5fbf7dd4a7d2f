//! Lists of nodes, as JSON and YAML.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| drop(wincimg_cluster::nodes::read_nodes(bytes)));
