//! A configuration of IIS, its schema, and settings that cover all of it.

/// The `applicationHost.config` after the installation of IIS.
pub const SERVER: &str = include_str!("../../iis/src/config/tests/applicationHost.config");
/// The schema of that configuration.
pub const SCHEMA: &str = include_str!("../../iis/src/config/tests/schema.xml");
/// Settings of every kind.
pub const SETTINGS: &str = include_str!("../../iis/src/config/tests/settings.toml");
