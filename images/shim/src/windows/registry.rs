//! The two values by which Windows ends a container's processes.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::time::Duration;

use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, REG_ROUTINE_FLAGS, REG_VALUE_TYPE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ,
};
use windows_sys::core::{PCWSTR, w};

use super::error::Result;
use super::library::Library;
use crate::limit;

type RegGetValue = unsafe extern "system" fn(
    HKEY,
    PCWSTR,
    PCWSTR,
    REG_ROUTINE_FLAGS,
    *mut REG_VALUE_TYPE,
    *mut c_void,
    *mut u32,
) -> u32;

/// The time that this container's registry allows for a stop.
pub(super) fn allowed_time() -> Result<Duration> {
    // SAFETY: the type is that of RegGetValueW.
    let get: RegGetValue = unsafe { Library::load("advapi32.dll")?.function(c"RegGetValueW") }?;

    let mut seconds = 0_u32;
    // SAFETY: the buffer is a DWORD, and no other kind of value is let in.
    let seconds = unsafe {
        read(
            get,
            w!(r"SYSTEM\CurrentControlSet\Services\cexecsvc"),
            w!("ProcessShutdownTimeoutSeconds"),
            RRF_RT_REG_DWORD,
            (&raw mut seconds).cast(),
            4,
        )
    }
    .map(|_| seconds);

    let mut text = [0_u16; 32];
    // SAFETY: the buffer has that many bytes.
    let length = unsafe {
        read(
            get,
            w!(r"SYSTEM\CurrentControlSet\Control"),
            w!("WaitToKillServiceTimeout"),
            RRF_RT_REG_SZ,
            text.as_mut_ptr().cast(),
            64,
        )
    };
    // The length is in bytes and counts the zero at the end.
    let text = length.and_then(|bytes| text.get(..(bytes as usize / 2).saturating_sub(1)));
    Ok(limit::allowed(seconds, text))
}

/// Reads a value into a buffer and tells its length; none where it is not there, is of another
/// kind or does not fit.
///
/// # Safety
/// `get` is `RegGetValueW`, and the buffer has `capacity` bytes.
unsafe fn read(
    get: RegGetValue,
    key: PCWSTR,
    value: PCWSTR,
    kind: REG_ROUTINE_FLAGS,
    buffer: *mut c_void,
    capacity: u32,
) -> Option<u32> {
    let mut length = capacity;
    // SAFETY: the names end with zeros; the rest is the caller's promise.
    let status = unsafe {
        get(
            HKEY_LOCAL_MACHINE,
            key,
            value,
            kind,
            null_mut(),
            buffer,
            &raw mut length,
        )
    };
    (status == 0).then_some(length)
}
