//! A Windows service as the container's program.
//!
//! The service manager's functions are loaded at run time: an image without them can still use
//! everything else.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    ERROR_DEPENDENT_SERVICES_RUNNING, ERROR_SERVICE_ALREADY_RUNNING, ERROR_SERVICE_NOT_ACTIVE,
    ERROR_SERVICE_NOTIFY_CLIENT_LAGGING, ERROR_SERVICE_SPECIFIC_ERROR,
};
use windows_sys::Win32::System::Services::{
    ENUM_SERVICE_STATE, ENUM_SERVICE_STATUSW, SC_HANDLE, SC_MANAGER_CONNECT, SERVICE_ACTIVE,
    SERVICE_CONTROL_STOP, SERVICE_ENUMERATE_DEPENDENTS, SERVICE_NOTIFY, SERVICE_NOTIFY_2W,
    SERVICE_NOTIFY_RUNNING, SERVICE_NOTIFY_STATUS_CHANGE, SERVICE_NOTIFY_STOPPED,
    SERVICE_QUERY_STATUS, SERVICE_START, SERVICE_START_PENDING, SERVICE_STATUS, SERVICE_STOP,
    SERVICE_STOP_PENDING, SERVICE_STOPPED,
};
use windows_sys::core::{BOOL, PCWSTR};

use super::error::{Error, Result};
use super::handle::{Deadline, Handle, signal, wait};
use super::library::Library;
use super::terminated;

#[derive(Clone, Copy)]
struct Advapi32 {
    open_manager: unsafe extern "system" fn(PCWSTR, PCWSTR, u32) -> SC_HANDLE,
    open: unsafe extern "system" fn(SC_HANDLE, PCWSTR, u32) -> SC_HANDLE,
    close: unsafe extern "system" fn(SC_HANDLE) -> BOOL,
    start: unsafe extern "system" fn(SC_HANDLE, u32, *const PCWSTR) -> BOOL,
    control: unsafe extern "system" fn(SC_HANDLE, u32, *mut SERVICE_STATUS) -> BOOL,
    query: unsafe extern "system" fn(SC_HANDLE, *mut SERVICE_STATUS) -> BOOL,
    notify: unsafe extern "system" fn(SC_HANDLE, SERVICE_NOTIFY, *mut SERVICE_NOTIFY_2W) -> u32,
    dependents: unsafe extern "system" fn(
        SC_HANDLE,
        ENUM_SERVICE_STATE,
        *mut ENUM_SERVICE_STATUSW,
        u32,
        *mut u32,
        *mut u32,
    ) -> BOOL,
}

impl Advapi32 {
    fn load() -> Result<Self> {
        let advapi32 = Library::load("advapi32.dll")?;
        // SAFETY: the types above are those of the functions.
        unsafe {
            Ok(Self {
                open_manager: advapi32.function(c"OpenSCManagerW")?,
                open: advapi32.function(c"OpenServiceW")?,
                close: advapi32.function(c"CloseServiceHandle")?,
                start: advapi32.function(c"StartServiceW")?,
                control: advapi32.function(c"ControlService")?,
                query: advapi32.function(c"QueryServiceStatus")?,
                notify: advapi32.function(c"NotifyServiceStatusChangeW")?,
                dependents: advapi32.function(c"EnumDependentServicesW")?,
            })
        }
    }
}

/// An open service of the service manager.
struct Opened {
    functions: Advapi32,
    handle: SC_HANDLE,
}

impl Opened {
    fn open(functions: Advapi32, name: &[u16], access: u32) -> Result<Self> {
        let name = terminated(name);
        // SAFETY: no names means the manager of this machine.
        let manager = unsafe { (functions.open_manager)(null(), null(), SC_MANAGER_CONNECT) };
        if manager.is_null() {
            return Err(Error::last());
        }
        // SAFETY: the manager is open and the name ends with a zero.
        let handle = unsafe { (functions.open)(manager, name.as_ptr(), access) };
        let opened = if handle.is_null() {
            Err(Error::last())
        } else {
            Ok(Self { functions, handle })
        };
        // SAFETY: opened above, and not used again.
        unsafe { (functions.close)(manager) };
        opened
    }

    fn status(&self) -> Result<SERVICE_STATUS> {
        let mut status = SERVICE_STATUS::default();
        // SAFETY: the service is open; the status is written to a local.
        Error::unless_zero(unsafe { (self.functions.query)(self.handle, &raw mut status) })?;
        Ok(status)
    }

    /// Asks the service to stop; one that is stopped or stopping has been asked.
    fn ask_to_stop(&self) -> Result<()> {
        let mut status = SERVICE_STATUS::default();
        // SAFETY: the service is open; the status is written to a local.
        let asked = Error::unless_zero(unsafe {
            (self.functions.control)(self.handle, SERVICE_CONTROL_STOP, &raw mut status)
        });
        match asked {
            Err(Error(ERROR_SERVICE_NOT_ACTIVE)) => Ok(()),
            other => other,
        }
    }

    /// The running services that need this one, in the order in which they have to stop.
    fn dependents(&self) -> Result<Vec<Vec<u16>>> {
        let mut needed = 0;
        let mut count = 0;
        // SAFETY: with no room this only tells how much is needed.
        unsafe {
            (self.functions.dependents)(
                self.handle,
                SERVICE_ACTIVE,
                null_mut(),
                0,
                &raw mut needed,
                &raw mut count,
            )
        };
        let mut list = vec![
            ENUM_SERVICE_STATUSW::default();
            (needed as usize).div_ceil(size_of::<ENUM_SERVICE_STATUSW>())
        ];
        // SAFETY: the list has at least as many bytes as it was said to need.
        Error::unless_zero(unsafe {
            (self.functions.dependents)(
                self.handle,
                SERVICE_ACTIVE,
                list.as_mut_ptr(),
                needed,
                &raw mut needed,
                &raw mut count,
            )
        })?;
        let names = list.iter().take(count as usize).map(|service| {
            let mut length = 0;
            // SAFETY: the name is in the list's own memory and ends with a zero.
            while unsafe { *service.lpServiceName.add(length) } != 0 {
                length += 1;
            }
            // SAFETY: counted just now.
            unsafe { core::slice::from_raw_parts(service.lpServiceName, length) }.to_vec()
        });
        Ok(names.collect())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the service is open and not used again.
        unsafe { (self.functions.close)(self.handle) };
    }
}

/// What a service is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Starting,
    Running,
    Stopping,
    Stopped { exit_code: u32 },
}

/// A service, and news of it.
pub(super) struct Service {
    name: Vec<u16>,
    opened: Opened,
    /// Signalled when there may be news.
    changed: &'static Handle,
    /// Windows writes to it when it likes, so it is never freed.
    request: &'static mut SERVICE_NOTIFY_2W,
    /// Whether the request is with Windows.
    listening: bool,
}

const ACCESS: u32 =
    SERVICE_START | SERVICE_STOP | SERVICE_QUERY_STATUS | SERVICE_ENUMERATE_DEPENDENTS;

impl Service {
    pub(super) fn open(name: &[u16]) -> Result<Self> {
        let changed = &*Box::leak(Box::new(Handle::event(false)?));
        Ok(Self {
            name: name.to_vec(),
            opened: Opened::open(Advapi32::load()?, name, ACCESS)?,
            changed,
            request: Box::leak(Box::new(SERVICE_NOTIFY_2W {
                dwVersion: SERVICE_NOTIFY_STATUS_CHANGE,
                pfnNotifyCallback: Some(on_change),
                pContext: changed.raw(),
                ..SERVICE_NOTIFY_2W::default()
            })),
            listening: false,
        })
    }

    /// Starts the service, if it is not running. It may still be starting afterwards.
    pub(super) fn start(&self) -> Result<()> {
        // SAFETY: the service is open and gets no arguments.
        let started = Error::unless_zero(unsafe {
            (self.opened.functions.start)(self.opened.handle, 0, null())
        });
        match started {
            Err(Error(ERROR_SERVICE_ALREADY_RUNNING)) => Ok(()),
            other => other,
        }
    }

    /// Signalled some time after the state changed to running or stopped; then call `heard`.
    pub(super) fn changed(&self) -> &'static Handle {
        self.changed
    }

    /// Takes note that the last change was signalled.
    pub(super) fn heard(&mut self) {
        self.listening = false;
    }

    /// What the service is doing now. The next change is signalled.
    pub(super) fn state(&mut self) -> Result<State> {
        // Listened to first: a change between the two calls is then not lost.
        let before = self.opened.status()?;
        self.listen(match before.dwCurrentState {
            SERVICE_START_PENDING => SERVICE_NOTIFY_RUNNING | SERVICE_NOTIFY_STOPPED,
            _ => SERVICE_NOTIFY_STOPPED,
        })?;
        let status = self.opened.status()?;
        Ok(match status.dwCurrentState {
            SERVICE_STOPPED => State::Stopped {
                exit_code: exit_code(&status),
            },
            SERVICE_START_PENDING => State::Starting,
            SERVICE_STOP_PENDING => State::Stopping,
            _ => State::Running,
        })
    }

    /// Stops the service and waits until it is stopped; false when the time was up before.
    pub(super) fn stop(&mut self, deadline: Deadline) -> Result<bool> {
        let mut asked = false;
        loop {
            match self.state()? {
                State::Stopped { .. } => return Ok(true),
                State::Running if !asked => {
                    self.ask_to_stop(deadline)?;
                    asked = true;
                }
                _ => {}
            }
            if wait(&[self.changed], deadline)?.is_none() {
                return Ok(false);
            }
            self.heard();
        }
    }

    fn ask_to_stop(&self, deadline: Deadline) -> Result<()> {
        match self.opened.ask_to_stop() {
            Err(Error(ERROR_DEPENDENT_SERVICES_RUNNING)) => {
                for dependent in self.opened.dependents()? {
                    Self::open(&dependent)?.stop(deadline)?;
                }
                self.opened.ask_to_stop()
            }
            other => other,
        }
    }

    fn listen(&mut self, mask: SERVICE_NOTIFY) -> Result<()> {
        if self.listening {
            return Ok(());
        }
        let mut status = self.request_news(mask);
        if status == ERROR_SERVICE_NOTIFY_CLIENT_LAGGING {
            // Windows dropped the client; a new handle makes a new one.
            self.opened = Opened::open(self.opened.functions, &self.name, ACCESS)?;
            status = self.request_news(mask);
        }
        if status != 0 {
            return Err(Error(status));
        }
        self.listening = true;
        Ok(())
    }

    fn request_news(&mut self, mask: SERVICE_NOTIFY) -> u32 {
        // SAFETY: the service is open; the request lives for ever and is not with Windows now.
        unsafe { (self.opened.functions.notify)(self.opened.handle, mask, self.request) }
    }
}

/// Windows calls it in the main thread, while that waits.
unsafe extern "system" fn on_change(request: *const c_void) {
    // SAFETY: Windows hands back the request, whose context is the event, which is never closed.
    unsafe { signal((*request.cast::<SERVICE_NOTIFY_2W>()).pContext) };
}

fn exit_code(status: &SERVICE_STATUS) -> u32 {
    if status.dwWin32ExitCode == ERROR_SERVICE_SPECIFIC_ERROR {
        status.dwServiceSpecificExitCode
    } else {
        status.dwWin32ExitCode
    }
}
