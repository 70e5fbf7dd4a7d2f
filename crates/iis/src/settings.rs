//! Settings of an image's IIS.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wincimg_windows::path::ImagePath;

use super::config::ConfigEdit;
use super::text::{Attribute, Binding, DocumentName, FileExtension, MimeType, Name, UrlPath};

/// Settings of IIS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IisSettings {
    /// The site whose `web.config` is written.
    pub site: Name,
    /// The folder with the site's files.
    pub path: ImagePath,
    /// The file extensions that it may serve, whatever the server's own list says.
    pub file_extensions: BTreeSet<FileExtension>,
    /// The content type of files, by their extension.
    pub mime_types: BTreeMap<FileExtension, MimeType>,
    /// The files that it serves where a folder is asked for, before those that the server names.
    pub default_documents: Vec<DocumentName>,
    /// The pool that the site runs in.
    pub app_pool: Name,
    /// Settings of that pool, by the path of their attribute.
    pub app_pool_settings: BTreeMap<Attribute, String>,
    /// Application pools, made where the base does not have them.
    pub app_pools: Vec<AppPool>,
    /// Sites, made where the base does not have them.
    pub sites: Vec<Site>,
    /// Further changes of the server's configuration, in order.
    pub config: Vec<ConfigEdit>,
}

/// An application pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppPool {
    /// Its name.
    pub name: Name,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
    /// Additional environment variables of its processes.
    pub environment: BTreeMap<String, String>,
}

/// A site in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its name.
    pub name: Name,
    /// Its number, if it is new; the one after the highest where absent.
    pub id: Option<u32>,
    /// How it is reached: in no other ways.
    pub bindings: Vec<Binding>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
    /// Its applications, by their paths in URLs; `/` is always there.
    pub applications: BTreeMap<UrlPath, Application>,
}

/// An application of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Application {
    /// The pool that it runs in; the one that the server has for all where absent.
    pub app_pool: Option<Name>,
    /// Its folders, by their paths in its URLs; `/` is always there.
    pub folders: BTreeMap<UrlPath, ImagePath>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
}
