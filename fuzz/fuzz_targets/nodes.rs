//! Lists of nodes, as JSON and YAML.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|text: &str| drop(wincimg_cluster::nodes::read_nodes(text)));
