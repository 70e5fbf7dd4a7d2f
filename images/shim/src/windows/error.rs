//! Windows' error numbers, in words.

use alloc::string::String;
use core::fmt;
use core::ptr::null;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BAD_EXE_FORMAT, ERROR_EXE_MACHINE_TYPE_MISMATCH,
    ERROR_EXE_MARKED_INVALID, ERROR_INVALID_EXE_SIGNATURE, GetLastError,
};
use windows_sys::Win32::System::Diagnostics::Debug::{
    FORMAT_MESSAGE_FROM_SYSTEM, FORMAT_MESSAGE_IGNORE_INSERTS, FormatMessageW,
};

/// Asks for words without line ends.
const FORMAT_MESSAGE_MAX_WIDTH_MASK: u32 = 0xFF;

const PLACE: [u16; 2] = [b'%' as u16, b'1' as u16];
const IT: [u16; 2] = [b'i' as u16, b't' as u16];

/// The result of a call to Windows.
pub(super) type Result<T> = core::result::Result<T, Error>;

/// Why a call to Windows failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Error(pub(super) u32);

impl Error {
    /// The reason of the call that just failed.
    pub(super) fn last() -> Self {
        // SAFETY: no arguments, no conditions.
        Self(unsafe { GetLastError() })
    }

    /// Turns what most calls return, zero for failure, into a result.
    pub(super) fn unless_zero(returned: i32) -> Result<()> {
        if returned == 0 {
            Err(Self::last())
        } else {
            Ok(())
        }
    }

    /// Whether a file is there, but cannot be run as a program.
    pub(super) fn means_no_program(self) -> bool {
        matches!(
            self.0,
            ERROR_ACCESS_DENIED
                | ERROR_BAD_EXE_FORMAT
                | ERROR_EXE_MACHINE_TYPE_MISMATCH
                | ERROR_EXE_MARKED_INVALID
                | ERROR_INVALID_EXE_SIGNATURE
        )
    }

    fn words(self) -> Option<String> {
        let mut buffer = [0_u16; 512];
        // SAFETY: the buffer is as long as it is said to be, and no inserts are asked for.
        let length = unsafe {
            FormatMessageW(
                FORMAT_MESSAGE_FROM_SYSTEM
                    | FORMAT_MESSAGE_IGNORE_INSERTS
                    | FORMAT_MESSAGE_MAX_WIDTH_MASK,
                null(),
                self.0,
                0,
                buffer.as_mut_ptr(),
                512,
                null(),
            )
        };
        let text = buffer.get_mut(..length as usize)?;
        // Windows' own text has a place for the program's name, which the message begins with.
        let place = text.windows(2).position(|units| units == PLACE);
        if let Some(place) = place.and_then(|at| text.get_mut(at..at + 2)) {
            place.copy_from_slice(&IT);
        }
        let is_end = |unit: &u16| b" .\r\n".iter().any(|&end| *unit == u16::from(end));
        let last = text.iter().rposition(|unit| !is_end(unit))?;
        text.get(..=last).map(String::from_utf16_lossy)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = u64::from(self.0);
        if let Some(words) = self.words() {
            write!(f, "{words} (Windows error {code})")
        } else {
            write!(f, "Windows error {code}")
        }
    }
}
