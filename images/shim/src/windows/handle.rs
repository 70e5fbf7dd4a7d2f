//! Handles that close themselves, and waiting for them.

use alloc::vec::Vec;
use core::ptr::null;
use core::time::Duration;

use windows_sys::Win32::Foundation::{
    CloseHandle, HANDLE, INVALID_HANDLE_VALUE, WAIT_FAILED, WAIT_IO_COMPLETION, WAIT_OBJECT_0,
    WAIT_TIMEOUT,
};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, SetEvent, SleepEx, WaitForMultipleObjectsEx,
};

use super::error::{Error, Result};

/// A handle of this process's own.
#[derive(Debug)]
pub(super) struct Handle(HANDLE);

impl Handle {
    /// Takes over what a call returned, where that is a handle.
    pub(super) fn from_call(returned: HANDLE) -> Result<Self> {
        if returned.is_null() || returned == INVALID_HANDLE_VALUE {
            Err(Error::last())
        } else {
            Ok(Self(returned))
        }
    }

    /// An event, not signalled; it resets itself when a wait sees it, unless it is to stay.
    pub(super) fn event(stays_signalled: bool) -> Result<Self> {
        // SAFETY: neither attributes nor a name are given.
        Self::from_call(unsafe { CreateEventW(null(), stays_signalled.into(), 0, null()) })
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and this is its only owner.
        unsafe { CloseHandle(self.0) };
    }
}

/// Signals an event.
///
/// # Safety
/// The handle is an open event's.
pub(super) unsafe fn signal(event: HANDLE) {
    // SAFETY: the caller's promise.
    unsafe { SetEvent(event) };
}

/// A moment after which nobody waits any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Option<u64>);

impl Deadline {
    pub(super) const NEVER: Self = Self(None);

    pub(super) fn now() -> Self {
        Self::after(Duration::ZERO)
    }

    pub(super) fn after(time: Duration) -> Self {
        Self(Some(now().saturating_add(milliseconds(time))))
    }

    pub(super) fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(mine), Some(theirs)) => Self(Some(mine.min(theirs))),
            (mine, theirs) => Self(mine.or(theirs)),
        }
    }

    pub(super) fn remaining(self) -> Option<Duration> {
        self.0
            .map(|at| Duration::from_millis(at.saturating_sub(now())))
    }

    pub(super) fn is_past(self) -> bool {
        self.remaining().is_some_and(|left| left.is_zero())
    }

    fn timeout(self) -> u32 {
        self.remaining().map_or(INFINITE, |left| {
            u32::try_from(milliseconds(left)).map_or(INFINITE - 1, |left| left.min(INFINITE - 1))
        })
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since Windows started.
pub(super) fn now() -> u64 {
    // SAFETY: no arguments, no conditions.
    unsafe { GetTickCount64() }
}

/// Waits for the first of some handles and tells which; none when the time was up before.
///
/// The wait lets Windows call back, which is how news of a service arrives.
pub(super) fn wait(handles: &[&Handle], deadline: Deadline) -> Result<Option<usize>> {
    let raw: Vec<HANDLE> = handles.iter().map(|handle| handle.raw()).collect();
    let count = u32::try_from(raw.len()).unwrap_or(u32::MAX);
    loop {
        if count == 0 {
            // SAFETY: plain numbers.
            unsafe { SleepEx(deadline.timeout(), 1) };
            if deadline.is_past() {
                return Ok(None);
            }
            continue;
        }
        // SAFETY: the vector has that many handles, and their owners are borrowed until the end.
        let woken =
            unsafe { WaitForMultipleObjectsEx(count, raw.as_ptr(), 0, deadline.timeout(), 1) };
        match woken {
            WAIT_TIMEOUT if deadline.is_past() => return Ok(None),
            WAIT_TIMEOUT | WAIT_IO_COMPLETION => {}
            WAIT_FAILED => return Err(Error::last()),
            signalled => return Ok(usize::try_from(signalled - WAIT_OBJECT_0).ok()),
        }
    }
}
