//! web.config files: reading, one change, and writing; applicationHost.config, and other XML, such as
//! .nuspec and project files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_common::xml::XmlElement;
use wincimg_iis::config::{ConfigChange, ConfigEdit, ElementPath, Schema, Server};
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
        assert_eq!(merge(Some(&changed), std::slice::from_ref(&edit)), Ok(None));
    }
    if let Ok(schema) = Schema::read([])
        && let Ok(mut server) = Server::read(bytes, schema)
    {
        drop((server.sites(), server.app_pools(), server.shared_bindings()));
        drop((server.apply(&edit), server.finish()));
    }
    drop(str::from_utf8(bytes).map(XmlElement::read));
});
