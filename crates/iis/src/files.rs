//! The files of IIS in an image.

use std::path::Path;

use wincimg_windows::path::ImagePath;

/// Path of the server's configuration.
const SERVER_CONFIG: &str = r"C:\Windows\System32\inetsrv\config\applicationHost.config";

/// Folder of the schema files of IIS and of its extensions.
const SCHEMA_FOLDER: &str = r"C:\Windows\System32\inetsrv\config\schema";

/// The server's own configuration.
pub fn server_config() -> Option<ImagePath> {
    SERVER_CONFIG.parse().ok()
}

/// The folder whose schema files IIS reads.
pub fn schema_folder() -> Option<ImagePath> {
    SCHEMA_FOLDER.parse().ok()
}

/// The schema files among the names in that folder, in the order in which they are read.
pub fn schema_files<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let is_schema = |name: &&str| {
        let end = Path::new(name).extension();
        end.is_some_and(|end| end.eq_ignore_ascii_case("xml"))
    };
    let mut files: Vec<&str> = names.into_iter().filter(is_schema).collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_file_is_read_in_the_same_order() {
        assert!(server_config().is_some() && schema_folder().is_some());
        let names = ["rscaext.xml", "xml", "Ftp_schema.XML", "old.xml.bak", "é"];
        assert_eq!(schema_files(names), ["Ftp_schema.XML", "rscaext.xml"]);
    }
}
