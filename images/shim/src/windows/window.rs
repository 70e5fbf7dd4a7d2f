//! Asking programs with windows to close.
//!
//! user32 is loaded only when a stop is under way: Windows does not tell a console program that
//! has it loaded of a shutdown.

use alloc::vec::Vec;
use core::time::Duration;

use windows_sys::Win32::Foundation::{HWND, LPARAM, LRESULT, WPARAM};
use windows_sys::Win32::UI::WindowsAndMessaging::{
    ENDSESSION_CLOSEAPP, GET_WINDOW_CMD, GW_OWNER, SEND_MESSAGE_TIMEOUT_FLAGS, SMTO_ABORTIFHUNG,
    WM_CLOSE, WM_ENDSESSION, WM_QUERYENDSESSION, WNDENUMPROC,
};
use windows_sys::core::BOOL;

use super::error::Result;
use super::handle::milliseconds;
use super::library::Library;

type EnumWindows = unsafe extern "system" fn(WNDENUMPROC, LPARAM) -> BOOL;
type GetWindowThreadProcessId = unsafe extern "system" fn(HWND, *mut u32) -> u32;
type GetWindow = unsafe extern "system" fn(HWND, GET_WINDOW_CMD) -> HWND;
type PostMessage = unsafe extern "system" fn(HWND, u32, WPARAM, LPARAM) -> BOOL;
type SendMessageTimeout = unsafe extern "system" fn(
    HWND,
    u32,
    WPARAM,
    LPARAM,
    SEND_MESSAGE_TIMEOUT_FLAGS,
    u32,
    *mut usize,
) -> LRESULT;

struct User32 {
    enumerate: EnumWindows,
    process_of: GetWindowThreadProcessId,
    related: GetWindow,
    post: PostMessage,
    send: SendMessageTimeout,
}

impl User32 {
    fn load() -> Result<Self> {
        let user32 = Library::load("user32.dll")?;
        // SAFETY: the types above are those of the functions.
        unsafe {
            Ok(Self {
                enumerate: user32.function(c"EnumWindows")?,
                process_of: user32.function(c"GetWindowThreadProcessId")?,
                related: user32.function(c"GetWindow")?,
                post: user32.function(c"PostMessageW")?,
                send: user32.function(c"SendMessageTimeoutW")?,
            })
        }
    }

    fn top_level_windows(&self) -> Vec<HWND> {
        unsafe extern "system" fn remember(window: HWND, windows: LPARAM) -> BOOL {
            // SAFETY: the address of the vector below, which nothing else uses meanwhile.
            let windows = unsafe { &mut *(windows as *mut Vec<HWND>) };
            windows.push(window);
            1
        }
        let mut windows: Vec<HWND> = Vec::new();
        // SAFETY: the callback is only called before this returns.
        unsafe { (self.enumerate)(Some(remember), (&raw mut windows) as LPARAM) };
        windows
    }

    /// Whether a window is one of the processes' own and no other window's helper.
    fn is_main_window_of(&self, window: HWND, processes: &[u32]) -> bool {
        let mut process = 0;
        // SAFETY: a window that is gone meanwhile has no process and no owner.
        unsafe { (self.process_of)(window, &raw mut process) };
        // SAFETY: as above.
        processes.contains(&process) && unsafe { (self.related)(window, GW_OWNER) }.is_null()
    }

    /// Says that the session ends, as Windows does, so that a program does not ask "Save?" of
    /// nobody, and then to close.
    fn close(&self, window: HWND, patience: Duration) {
        let patience = u32::try_from(milliseconds(patience)).unwrap_or(u32::MAX);
        let reason = ENDSESSION_CLOSEAPP.cast_signed() as LPARAM;
        let mut agrees = 0_usize;
        // SAFETY: plain numbers; the answer is written to a local.
        let answered = unsafe {
            (self.send)(
                window, WM_QUERYENDSESSION, 0, reason, SMTO_ABORTIFHUNG, patience, &raw mut agrees,
            )
        };
        if answered != 0 {
            let mut nothing = 0_usize;
            // SAFETY: as above.
            unsafe {
                (self.send)(
                    window,
                    WM_ENDSESSION,
                    usize::from(agrees != 0),
                    reason,
                    SMTO_ABORTIFHUNG,
                    patience,
                    &raw mut nothing,
                )
            };
        }
        // SAFETY: plain numbers.
        unsafe { (self.post)(window, WM_CLOSE, 0, 0) };
    }
}

/// Asks every main window of the processes to close and tells how many there are.
pub(super) fn close_windows(processes: &[u32], time_left: Duration) -> Result<usize> {
    let user32 = User32::load()?;
    let mut windows = user32.top_level_windows();
    windows.retain(|&window| user32.is_main_window_of(window, processes));
    for &window in &windows {
        user32.close(window, (time_left / 4).min(Duration::from_secs(2)));
    }
    Ok(windows.len())
}
