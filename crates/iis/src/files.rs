//! The files of IIS in an image.

use wincimg_windows::path::ImagePath;

/// Path of the server's configuration.
const SERVER_CONFIG: &str = r"C:\Windows\System32\inetsrv\config\applicationHost.config";

/// Folder of the schema files.
const SCHEMA_FOLDER: &str = r"C:\Windows\System32\inetsrv\config\schema";

/// The schema files of IIS and of its extensions.
const SCHEMAS: [&str; 8] = [
    "IIS_schema.xml",
    "ASPNET_schema.xml",
    "FX_schema.xml",
    "aspnetcore_schema.xml",
    "aspnetcore_schema_v2.xml",
    "rewrite_schema.xml",
    "arr_schema.xml",
    "WebDAV_schema.xml",
];

/// The server's own configuration.
pub fn server_config() -> Option<ImagePath> {
    SERVER_CONFIG.parse().ok()
}

/// The possible schema files of a base.
pub fn schema_files() -> impl Iterator<Item = ImagePath> {
    let paths = SCHEMAS
        .iter()
        .map(|name| format!(r"{SCHEMA_FOLDER}\{name}"));
    paths.filter_map(|path| path.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_path() {
        assert!(server_config().is_some());
        assert_eq!(schema_files().count(), SCHEMAS.len());
    }
}
