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
mod settings;
mod text;
pub mod web_config;

pub use self::change::{IisChange, IisChangeError, RequiredFolder};
pub use self::settings::{
    AppPool, Application, IisSettings, Site, folder_path, schema_files, schema_folder,
    server_config,
};
pub use self::text::{Attribute, Binding, DocumentName, FileExtension, MimeType, Name, UrlPath};

/// The site that IIS is installed with.
pub const DEFAULT_SITE: &str = "Default Web Site";

/// The folder of that site.
pub const DEFAULT_PATH: &str = r"C:\inetpub\wwwroot";

/// The application pool of that site.
pub const DEFAULT_APP_POOL: &str = "DefaultAppPool";
