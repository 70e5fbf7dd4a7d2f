//! Settings of an image's IIS.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "document")]
use schemars::JsonSchema;
#[cfg(feature = "document")]
use serde::Deserialize;
use serde::Serialize;
#[cfg(feature = "document")]
use wincimg_common::document::{Pairs, Text};
use wincimg_windows::path::ImagePath;

use super::config::ConfigEdit;
#[cfg(feature = "document")]
use super::document::{environment, pool_settings};
use super::text::{Attribute, Binding, DocumentName, FileExtension, MimeType, Name, UrlPath};

/// Settings of IIS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IisSettings {
    /// The site whose `web.config` is written.
    pub site: Name,
    /// The folder with the site's files; none if only the base's configuration names it.
    pub path: Option<ImagePath>,
    /// The file extensions that it may serve, in addition to the server's list.
    pub file_extensions: BTreeSet<FileExtension>,
    /// The content type of files, by their extension.
    pub mime_types: BTreeMap<FileExtension, MimeType>,
    /// Its default documents, before the server's.
    pub default_documents: Vec<DocumentName>,
    /// The pool that the site runs in.
    pub app_pool: Name,
    /// Settings of that pool, by the path of their attribute.
    pub app_pool_settings: BTreeMap<Attribute, String>,
    /// Application pools, created if the base does not have them.
    pub app_pools: Vec<AppPool>,
    /// Sites, created if the base does not have them.
    pub sites: Vec<Site>,
    /// Further changes to the server's configuration, in order.
    pub config: Vec<ConfigEdit>,
}

/// An application pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "document", derive(Deserialize, JsonSchema))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"api\", settings = { managedRuntimeVersion = \"\" } }"
)]
pub struct AppPool {
    /// The pool's name.
    pub name: Name,
    /// Attributes as appcmd names them, such as processModel.idleTimeout = "00:00:00".
    #[serde(default, deserialize_with = "pool_settings")]
    #[cfg_attr(feature = "document", schemars(with = "Pairs<String, String>"))]
    pub settings: BTreeMap<Attribute, String>,
    /// Additional environment variables of the pool's processes.
    #[serde(default, deserialize_with = "environment")]
    #[cfg_attr(feature = "document", schemars(with = "BTreeMap<String, Text>"))]
    pub environment: BTreeMap<String, String>,
}

/// A site in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its name.
    pub name: Name,
    /// Number of a new site; the highest plus one where absent.
    pub id: Option<u32>,
    /// All of its bindings.
    pub bindings: Vec<Binding>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
    /// Its applications, by their paths in URLs; `/` always exists.
    pub applications: BTreeMap<UrlPath, Application>,
}

/// An application of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Application {
    /// Its application pool; the one in the server's defaults where absent.
    pub app_pool: Option<Name>,
    /// Its folders, by their paths in its URLs; `/` always exists.
    pub folders: BTreeMap<UrlPath, ImagePath>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
}
