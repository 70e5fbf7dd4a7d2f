//! The files of IIS in an image.

use std::path::Path;

use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::filled_in;

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

/// The path of a folder that the configuration names; none if an image cannot have it.
pub fn folder_path(text: &str) -> Option<ImagePath> {
    let path = filled_in(text, &[])?.replace('/', "\\");
    let path = path.trim_end_matches('\\');
    if path.eq_ignore_ascii_case("c:") {
        return Some(ImagePath::drive());
    }
    path.parse().ok()
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
    fn folders_of_the_configuration_have_variables_and_any_drive() {
        let path = |text: &str| folder_path(text).map(|path| path.to_string());
        let default = Some(r"C:\inetpub\wwwroot".to_owned());
        assert_eq!(path(r"%SystemDrive%\inetpub\wwwroot\"), default);
        assert_eq!(path("c:/"), Some(r"C:\".to_owned()));
        for text in [r"D:\shop", "D:", r"%OWN%\shop", r"\\server\share", "shop"] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn every_schema_file_is_read_in_the_same_order() {
        assert!(server_config().is_some() && schema_folder().is_some());
        let names = ["rscaext.xml", "xml", "Ftp_schema.XML", "old.xml.bak", "é"];
        assert_eq!(schema_files(names), ["Ftp_schema.XML", "rscaext.xml"]);
    }
}
