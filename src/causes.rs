//! Errors with their causes in one line, for places that have only one: a field, a log, a report.

use std::error::Error;

/// `cannot read a.toml: permission denied`.
pub fn in_one_line(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said += ": ";
        said += &cause.to_string();
        next = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read {name}")]
    struct Unreadable {
        name: &'static str,
        source: std::fmt::Error,
    }

    #[test]
    fn every_cause_is_said_once_the_outermost_first() {
        let error = Unreadable {
            name: "a.toml",
            source: std::fmt::Error,
        };
        let said = in_one_line(&error);
        assert_eq!(said, format!("cannot read a.toml: {}", std::fmt::Error));
    }
}
