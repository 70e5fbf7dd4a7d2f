//! A configuration of IIS, its schema, and settings that use all of it.

/// What `applicationHost.config` is after IIS was installed.
pub const SERVER: &str = include_str!("../../iis/src/config/tests/applicationHost.config");
/// The schema that belongs to it.
pub const SCHEMA: &str = include_str!("../../iis/src/config/tests/schema.xml");
/// Settings of every kind.
pub const SETTINGS: &str = include_str!("../../iis/src/config/tests/settings.toml");
