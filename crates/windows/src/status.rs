//! Exit codes that are statuses of Windows: 3221225781 is `0xC0000135`, a missing DLL.

use std::fmt;
use std::sync::LazyLock;

use super::table::{TableError, TableRow, embedded};

/// The exit code of a program on Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCode(u32);

struct Status {
    code: u32,
    name: &'static str,
    meaning: &'static str,
}

static STATUSES: LazyLock<Vec<Status>> =
    LazyLock::new(|| embedded(include_str!("data/ntstatus.tsv"), read_row));

impl ExitCode {
    /// Reads an exit code, which some programs write as a signed number; none for other numbers.
    pub fn new(code: i64) -> Option<Self> {
        let signed = || i32::try_from(code).map(i32::cast_unsigned);
        let code = u32::try_from(code).or_else(|_| signed());
        code.ok().map(Self)
    }

    fn status(self) -> Option<&'static Status> {
        STATUSES.iter().find(|status| status.code == self.0)
    }

    /// Meaning of the exit code, if it is a known status.
    pub fn meaning(self) -> Option<&'static str> {
        self.status().map(|status| status.meaning)
    }
}

impl fmt::Display for ExitCode {
    /// `1`, or `0xC0000135 (3221225781, STATUS_DLL_NOT_FOUND)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status() {
            Some(status) => write!(f, "0x{0:08X} ({0}, {1})", self.0, status.name),
            None => self.0.fmt(f),
        }
    }
}

fn read_row(row: &mut TableRow<'static>) -> Result<Status, TableError> {
    let code = row.text("status")?;
    let digits = code.strip_prefix("0x").unwrap_or_default();
    Ok(Status {
        code: u32::from_str_radix(digits, 16)
            .map_err(|_| row.error(format!("invalid status {code:?}")))?,
        name: row.text("name")?,
        meaning: row.text("meaning")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_windows_is_shown_as_people_look_it_up() {
        let shown = |code| ExitCode::new(code).unwrap().to_string();
        let missing = "0xC0000135 (3221225781, STATUS_DLL_NOT_FOUND)";
        assert_eq!(shown(3_221_225_781), missing);
        assert_eq!(shown(-1_073_741_515), missing, "as PowerShell writes it");
        assert_eq!(shown(1), "1");
        assert_eq!(shown(4_294_967_295), "4294967295");
        assert_eq!(ExitCode::new(1 << 40), None);
        assert_eq!(ExitCode::new(-(1 << 40)), None);
    }

    #[test]
    fn every_status_has_a_name_and_a_meaning_of_its_own_place() {
        for pair in STATUSES.windows(2) {
            assert!(pair[0].code < pair[1].code, "{}", pair[1].name);
        }
        for status in STATUSES.iter() {
            assert!(
                status.code >= 0x8000_0000,
                "{} is not a failure",
                status.name
            );
            assert!(status.name.starts_with("STATUS_"), "{}", status.name);
            assert!(!status.meaning.is_empty(), "{}", status.name);
        }
    }
}
