//! web.config files: reading, one change, and writing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_iis::config::{ConfigChange, ConfigEdit, ElementPath};
use wincimg_iis::web_config::merge;

fuzz_target!(|bytes: &[u8]| {
    let edit = ConfigEdit {
        section: "system.webServer/directoryBrowse".parse().unwrap(),
        location: None,
        change: ConfigChange::Set {
            element: ElementPath::default(),
            attribute: "enabled".to_owned(),
            value: "true".to_owned(),
        },
    };
    if let Ok(Some(changed)) = merge(Some(bytes), std::slice::from_ref(&edit)) {
        // What was written has the change, so that nothing is left to do.
        assert_eq!(merge(Some(&changed), &[edit]), Ok(None));
    }
});
