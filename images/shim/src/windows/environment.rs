//! What the process was given: its command line, its variables, its standard handles.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Globalization::{CP_UTF8, MultiByteToWideChar};
use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{
    GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE,
    STD_OUTPUT_HANDLE, WriteConsoleW,
};
use windows_sys::Win32::System::Environment::{GetCommandLineW, GetEnvironmentVariableW};

use super::terminated;

pub(super) fn command_line() -> Vec<u16> {
    // SAFETY: no arguments, no conditions.
    let start = unsafe { GetCommandLineW() };
    let mut length = 0;
    // SAFETY: Windows ends the string with a zero, and nothing before that is out of bounds.
    while unsafe { *start.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: counted just now; nobody changes the command line while it is copied.
    unsafe { core::slice::from_raw_parts(start, length) }.to_vec()
}

pub(super) fn variable(name: &str) -> Option<Vec<u16>> {
    let name = terminated(&wide(name.as_bytes()));
    let mut value = vec![0_u16; 256];
    loop {
        let capacity = u32::try_from(value.len()).ok()?;
        // SAFETY: the name ends with a zero and the buffer is as long as it is said to be.
        let length =
            unsafe { GetEnvironmentVariableW(name.as_ptr(), value.as_mut_ptr(), capacity) };
        let length = usize::try_from(length).ok().filter(|&length| length > 0)?;
        let fits = length < value.len();
        value.resize(length, 0);
        if fits {
            return Some(value);
        }
    }
}

/// Standard input, output and error; null where there is none.
pub(super) fn standard_handles() -> [HANDLE; 3] {
    [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE].map(standard_handle)
}

fn standard_handle(which: STD_HANDLE) -> HANDLE {
    // SAFETY: any of the three is a valid argument.
    let handle = unsafe { GetStdHandle(which) };
    if handle == INVALID_HANDLE_VALUE {
        null_mut()
    } else {
        handle
    }
}

pub(super) fn print(text: &str) {
    write(STD_OUTPUT_HANDLE, text.as_bytes());
}

/// Whole lines, mostly in UTF-8.
pub(super) fn print_lines(lines: &[u8]) {
    write(STD_OUTPUT_HANDLE, lines);
}

pub(super) fn print_error(text: &str) {
    write(STD_ERROR_HANDLE, text.as_bytes());
}

/// Writes in one piece, so that lines of several processes do not mix. There is nowhere to report
/// a failure to.
fn write(to: STD_HANDLE, text: &[u8]) {
    let handle = standard_handle(to);
    if handle.is_null() {
        return;
    }
    let mut mode = 0;
    let mut written = 0;
    // SAFETY: the mode is written to a local.
    if unsafe { GetConsoleMode(handle, &raw mut mode) } != 0 {
        let wide = wide(text);
        let length = u32::try_from(wide.len()).unwrap_or(0);
        // SAFETY: the buffer has that many units.
        unsafe { WriteConsoleW(handle, wide.as_ptr(), length, &raw mut written, null()) };
    } else {
        let length = u32::try_from(text.len()).unwrap_or(0);
        // SAFETY: the buffer has that many bytes, and the handle is not an overlapped one's.
        unsafe { WriteFile(handle, text.as_ptr(), length, &raw mut written, null_mut()) };
    }
}

/// UTF-8 as Windows reads it; what is none is replaced.
pub(super) fn wide(text: &[u8]) -> Vec<u16> {
    let mut wide = vec![0; text.len()];
    let length = i32::try_from(text.len()).unwrap_or(0);
    // SAFETY: both buffers have that length, and no text has more units than bytes.
    let count = unsafe {
        MultiByteToWideChar(CP_UTF8, 0, text.as_ptr(), length, wide.as_mut_ptr(), length)
    };
    wide.truncate(usize::try_from(count).unwrap_or(0));
    wide
}

pub(super) fn lossy(text: &[u16]) -> String {
    String::from_utf16_lossy(text)
}
