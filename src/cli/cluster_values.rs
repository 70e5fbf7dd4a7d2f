//! Parsers of the values that manifests contain, which a cluster would refuse only when they are
//! applied.

use wincimg_cluster::builder::is_builder_name;
use wincimg_cluster::names::{
    is_dns_label, is_dns_subdomain, is_label_key, is_label_value, is_quantity,
};
use wincimg_oci::reference::{ReferenceError, parse_reference};

pub(super) fn namespace(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 63 lower-case letters, digits and dashes";
    checked(text, is_dns_label, expected)
}

pub(super) fn builder_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 40 lower-case letters, digits and dashes";
    checked(text, is_builder_name, expected)
}

/// Name of an object that is not a part of another name.
pub(super) fn object_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected at most 253 lower-case letters, digits, dashes and dots";
    checked(text, is_dns_subdomain, expected)
}

pub(super) fn quantity(text: &str) -> Result<String, &'static str> {
    let expected = "expected a quantity, such as 500m, 2 or 4Gi";
    checked(text, is_quantity, expected)
}

pub(super) fn label(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=');
    let pair = pair.filter(|(key, value)| is_label_key(key) && is_label_value(value));
    let (key, value) = pair.ok_or("expected a label, such as pool=web or example.com/pool=web")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A reference as it is typed: manifests need no default host and tag.
pub(super) fn image(text: &str) -> Result<String, ReferenceError> {
    parse_reference(text)?;
    Ok(text.to_owned())
}

fn checked(
    text: &str,
    is_valid: fn(&str) -> bool,
    expected: &'static str,
) -> Result<String, &'static str> {
    is_valid(text).then(|| text.to_owned()).ok_or(expected)
}
