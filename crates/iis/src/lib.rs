//! Configuration of IIS: application pools, sites, content types and every other section.
//!
//! Settings for a single site that every base allows there go into the site's `web.config`
//! ([`web_config`]). All others go into the server's [`config`]: as text without Windows, with
//! [`appcmd`] on Windows.
//!
//! ```
//! use wincimg_iis::config::{ConfigChange, ConfigEdit};
//! use wincimg_iis::web_config;
//!
//! let site = b"<configuration>\r\n  <!-- ours -->\r\n</configuration>\r\n";
//! let no_double_escaping = ConfigEdit {
//!     section: "system.webServer/security/requestFiltering".parse()?,
//!     location: None,
//!     change: ConfigChange::Set {
//!         element: "".parse()?,
//!         attribute: "allowDoubleEscaping".to_owned(),
//!         value: "false".to_owned(),
//!     },
//! };
//! let edited = web_config::merge(Some(site), &[no_double_escaping])?.unwrap();
//! let edited = String::from_utf8(edited)?;
//! assert!(edited.contains("<requestFiltering allowDoubleEscaping=\"false\" />"));
//! assert!(edited.contains("<!-- ours -->"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod appcmd;
mod change;
pub mod cmdlets;
pub mod config;
#[cfg(feature = "document")]
pub mod document;
mod edits;
mod settings;
mod text;
pub mod web_config;

use wincimg_windows::path::ImagePath;

pub use self::change::{IisChange, IisChangeError, RequiredFolder};
pub use self::settings::{AppPool, Application, IisSettings, Site};
pub use self::text::{Attribute, Binding, DocumentName, FileExtension, MimeType, Name, UrlPath};

/// The site that IIS is installed with.
pub const DEFAULT_SITE: &str = "Default Web Site";

/// The folder of that site.
pub const DEFAULT_PATH: &str = r"C:\inetpub\wwwroot";

/// The application pool of that site.
pub const DEFAULT_APP_POOL: &str = "DefaultAppPool";

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
