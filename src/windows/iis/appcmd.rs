//! What `appcmd`, the command line of IIS, is called with.

use super::{DEFAULT_PATH, IisSettings};

/// Where IIS has it; the folder is not on the path.
pub const PROGRAM: &str = r"C:\Windows\System32\inetsrv\appcmd.exe";

/// Which section says what files a site may serve.
pub const REQUEST_FILTERING: &str = "/section:system.webServer/security/requestFiltering";

/// Which section says of what type files are.
pub const STATIC_CONTENT: &str = "/section:system.webServer/staticContent";

/// The site's own folder, as `set vdir` takes it; none where it is the one that IIS comes with.
pub fn physical_path(settings: &IisSettings) -> Option<[String; 2]> {
    let path = settings.path.to_string();
    (path != DEFAULT_PATH).then(|| {
        [
            format!("{}/", settings.site),
            format!("/physicalPath:{path}"),
        ]
    })
}

/// What lets the site serve each file extension.
pub fn file_extensions(settings: &IisSettings) -> Vec<String> {
    let extensions = settings.file_extensions.iter();
    extensions
        .map(|extension| format!("/+fileExtensions.[fileExtension='{extension}',allowed='true']"))
        .collect()
}

/// What gives files their content types.
pub fn mime_types(settings: &IisSettings) -> Vec<String> {
    let types = settings.mime_types.iter();
    types
        .map(|(extension, kind)| format!("/+[fileExtension='{extension}',mimeType='{kind}']"))
        .collect()
}

/// The settings of the application pool.
pub fn app_pool_settings(settings: &IisSettings) -> Vec<String> {
    let attributes = settings.app_pool_settings.iter();
    attributes
        .map(|(attribute, value)| format!("/{attribute}:{value}"))
        .collect()
}

/// The command lines that take away the entries which the others add, where there are any. Each
/// fails where there is none.
pub fn removals(settings: &IisSettings) -> Vec<Vec<String>> {
    let filtering = settings.file_extensions.iter().map(|extension| {
        let operand = format!("/-fileExtensions.[fileExtension='{extension}']");
        (REQUEST_FILTERING, operand)
    });
    let types = settings.mime_types.keys().map(|extension| {
        let operand = format!("/-[fileExtension='{extension}']");
        (STATIC_CONTENT, operand)
    });
    filtering
        .chain(types)
        .map(|(section, operand)| {
            let words = [
                PROGRAM,
                "set",
                "config",
                settings.site.as_str(),
                section,
                &operand,
            ];
            words.map(str::to_owned).to_vec()
        })
        .collect()
}
