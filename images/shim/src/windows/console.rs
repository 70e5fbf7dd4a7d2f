//! Stop requests as they come in, and as they go out.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{INFINITE, Sleep};
use windows_sys::core::BOOL;

use super::error::{Error, Result};
use super::handle::{Handle, signal};
use super::library::Library;

/// The highest level that a program may ask for: it is told of a shutdown before all others.
const FIRST_TO_BE_TOLD: u32 = 0x3FF;

const NOT_YET: u32 = 0;

/// The first request that came, plus one, for a handler that Windows calls in a thread of its own.
static KIND: AtomicU32 = AtomicU32::new(NOT_YET);
static REQUESTED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Hears when this process is told to stop.
#[derive(Debug)]
pub(super) struct StopRequests {
    requested: &'static Handle,
    first: &'static AtomicU32,
}

impl StopRequests {
    /// Starts to listen; from now on a request ends the process only when the shim does.
    pub(super) fn listen() -> Result<Self> {
        let requested: &'static Handle = Box::leak(Box::new(Handle::event(true)?));
        REQUESTED.store(requested.raw(), Ordering::Release);
        // Where it fails, the shim is told later, perhaps after its program is gone, but it can
        // still run.
        let _ = be_told_first();
        // SAFETY: takes back that CTRL_C is ignored, which is inherited.
        unsafe { SetConsoleCtrlHandler(None, 0) };
        // SAFETY: the handler is a plain function and may be called at any time from now on.
        Error::unless_zero(unsafe { SetConsoleCtrlHandler(Some(on_control), 1) })?;
        Ok(Self {
            requested,
            first: &KIND,
        })
    }

    /// Signalled from the first request on.
    pub(super) fn requested(&self) -> &Handle {
        self.requested
    }

    pub(super) fn is_requested(&self) -> bool {
        self.first.load(Ordering::Acquire) != NOT_YET
    }

    /// The first request, as a word.
    pub(super) fn kind(&self) -> &'static str {
        match self.event() {
            CTRL_C_EVENT => "ctrl-c",
            CTRL_BREAK_EVENT => "ctrl-break",
            CTRL_CLOSE_EVENT => "close",
            CTRL_LOGOFF_EVENT => "logoff",
            CTRL_SHUTDOWN_EVENT => "shutdown",
            _ => "none",
        }
    }

    /// Whether the console itself told everybody on it.
    pub(super) fn was_ctrl_c(&self) -> bool {
        self.event() == CTRL_C_EVENT
    }

    fn event(&self) -> u32 {
        self.first.load(Ordering::Acquire).wrapping_sub(1)
    }
}

/// Has Windows tell this process of a shutdown before all others. The function is looked for and not
/// imported: with an import that a Nano Server lacks, Windows would not even start the shim.
fn be_told_first() -> Result<()> {
    type SetShutdownParameters = unsafe extern "system" fn(u32, u32) -> BOOL;
    let kernel = Library::load("kernel32.dll")?;
    // SAFETY: the type is the one that Windows documents for the function of that name.
    let set: SetShutdownParameters = unsafe { kernel.function(c"SetProcessShutdownParameters")? };
    // SAFETY: plain numbers.
    Error::unless_zero(unsafe { set(FIRST_TO_BE_TOLD, 0) })
}

/// Windows ends the process as soon as this returns from a close, a logoff or a shutdown, so it
/// does not: the main thread ends the process, when the clean-up is done. A request after the first
/// just waits beside it.
unsafe extern "system" fn on_control(kind: u32) -> BOOL {
    if !matches!(
        kind,
        CTRL_C_EVENT
            | CTRL_BREAK_EVENT
            | CTRL_CLOSE_EVENT
            | CTRL_LOGOFF_EVENT
            | CTRL_SHUTDOWN_EVENT
    ) {
        return 0;
    }
    // Only the first request is kept.
    let _ = KIND.compare_exchange(NOT_YET, kind + 1, Ordering::AcqRel, Ordering::Acquire);
    let requested: HANDLE = REQUESTED.load(Ordering::Acquire);
    // SAFETY: the event was stored before this function was made known, and is never closed.
    unsafe { signal(requested) };
    loop {
        // SAFETY: a plain number.
        unsafe { Sleep(INFINITE) };
    }
}

/// Sends `CTRL_BREAK` to a process group.
pub(super) fn send_ctrl_break(group: u32) -> Result<()> {
    // SAFETY: plain numbers.
    Error::unless_zero(unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) })
}

/// Sends `CTRL_C` to everything on this console, the shim included: Windows knows no other way.
pub(super) fn send_ctrl_c() -> Result<()> {
    // SAFETY: plain numbers.
    Error::unless_zero(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
}
