//! Starting a program so that it gets what it should and nothing else.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, InitializeProcThreadAttributeList,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION,
    QueryFullProcessImageNameW, STARTF_USESTDHANDLES, STARTUPINFOEXW, TerminateProcess,
    UpdateProcThreadAttribute,
};

use super::environment::{lossy, standard_handles};
use super::error::{Error, Result};
use super::file::File;
use super::handle::Handle;
use super::job::Job;
use super::terminated;
use crate::{cmdline, pe};

/// What a command line names as its program; its arguments may be secret.
pub(super) fn program_name(command_line: &[u16]) -> String {
    cmdline::split(command_line)
        .first()
        .map(|token| lossy(&token.text))
        .unwrap_or_default()
}

/// A program that the shim started.
#[derive(Debug)]
pub(super) struct Child {
    process: Handle,
    id: u32,
    job: Option<Job>,
}

impl Child {
    /// Starts a program from its command line, which it gets as it is.
    ///
    /// With a process group of its own it can be sent `CTRL_BREAK` alone, and ignores `CTRL_C`.
    pub(super) fn start(command_line: &[u16], own_group: bool, job: Option<Job>) -> Result<Self> {
        let mut command_line = terminated(command_line);
        let standard = standard_handles();
        let inherited = inheritable(standard);
        let job_handles: Vec<HANDLE> = job.iter().map(|job| job.handle().raw()).collect();

        let mut attributes = Attributes::with_room_for_two()?;
        attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &inherited)?;
        attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, &job_handles)?;

        let mut startup = STARTUPINFOEXW::default();
        startup.StartupInfo.cb = u32::try_from(size_of::<STARTUPINFOEXW>()).unwrap_or(0);
        startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
        [
            startup.StartupInfo.hStdInput,
            startup.StartupInfo.hStdOutput,
            startup.StartupInfo.hStdError,
        ] = standard;
        startup.lpAttributeList = attributes.pointer();

        let group = if own_group {
            CREATE_NEW_PROCESS_GROUP
        } else {
            0
        };
        let mut created = PROCESS_INFORMATION::default();
        // SAFETY: the command line ends with a zero and may be written to, the startup information
        // is the extended one that the flags announce, and what it points to outlives the call.
        Error::unless_zero(unsafe {
            CreateProcessW(
                null(),
                command_line.as_mut_ptr(),
                null(),
                null(),
                (!inherited.is_empty()).into(),
                EXTENDED_STARTUPINFO_PRESENT | group,
                null(),
                null(),
                &raw const startup.StartupInfo,
                &raw mut created,
            )
        })?;
        drop(Handle::from_call(created.hThread));
        Ok(Self {
            process: Handle::from_call(created.hProcess)?,
            id: created.dwProcessId,
            job,
        })
    }

    /// Signalled when the program has ended.
    pub(super) fn process(&self) -> &Handle {
        &self.process
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit_code(&self) -> Result<u32> {
        let mut code = 0;
        // SAFETY: the process is open; the code is written to a local.
        Error::unless_zero(unsafe { GetExitCodeProcess(self.process.raw(), &raw mut code) })?;
        Ok(code)
    }

    /// The program and, with a job, what it started.
    pub(super) fn process_ids(&self) -> Vec<u32> {
        match &self.job {
            Some(job) => job.process_ids(),
            None => vec![self.id],
        }
    }

    /// How many processes a program that has ended left behind; `None` without a job.
    pub(super) fn left_behind(&self) -> Option<u64> {
        let left = self.job.as_ref()?.process_ids();
        Some(left.iter().filter(|&&id| id != self.id).map(|_| 1).sum())
    }

    /// Ends the program and, with a job, whatever it left.
    pub(super) fn kill(&self, exit_code: u32) {
        // SAFETY: the process is open; if it has ended already, this does nothing.
        unsafe { TerminateProcess(self.process.raw(), exit_code) };
        if let Some(job) = &self.job {
            job.terminate(exit_code);
        }
    }

    /// Whether it is a windowed program, which has no console to get events from.
    pub(super) fn is_gui(&self) -> bool {
        self.head_of_file().is_some_and(|head| pe::is_gui(&head))
    }

    fn head_of_file(&self) -> Option<Vec<u8>> {
        let mut path = vec![0_u16; 32768];
        let mut length = 32768;
        // SAFETY: the buffer is as long as it is said to be; the path in it ends with a zero.
        let found = unsafe {
            QueryFullProcessImageNameW(self.process.raw(), 0, path.as_mut_ptr(), &raw mut length)
        };
        if found == 0 {
            return None;
        }
        let path = path.get(..length as usize)?;
        let mut head = vec![0_u8; pe::HEAD];
        let read = File::open(path).and_then(|file| file.read(0, &mut head));
        head.truncate(read.ok()?);
        Some(head)
    }
}

/// The handles that a program may inherit, each once.
fn inheritable(standard: [HANDLE; 3]) -> Vec<HANDLE> {
    let mut handles = Vec::new();
    for handle in standard {
        if handle.is_null() || handle == INVALID_HANDLE_VALUE || handles.contains(&handle) {
            continue;
        }
        // SAFETY: the handle is this process's own.
        if unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) } != 0 {
            handles.push(handle);
        }
    }
    handles
}

/// What else a new process is told, in the form that Windows wants.
struct Attributes(Vec<usize>);

impl Attributes {
    fn with_room_for_two() -> Result<Self> {
        let mut bytes = 0;
        // SAFETY: with no list this only tells how long one is.
        unsafe { InitializeProcThreadAttributeList(null_mut(), 2, 0, &raw mut bytes) };
        let mut list = vec![0_usize; bytes.div_ceil(size_of::<usize>())];
        // SAFETY: the list has at least as many bytes as it was said to need.
        Error::unless_zero(unsafe {
            InitializeProcThreadAttributeList(list.as_mut_ptr().cast(), 2, 0, &raw mut bytes)
        })?;
        Ok(Self(list))
    }

    /// Sets an attribute whose value is a list of handles; an empty one is left out.
    fn set(&mut self, attribute: u32, handles: &[HANDLE]) -> Result<()> {
        if handles.is_empty() {
            return Ok(());
        }
        // SAFETY: the list is initialised, and the caller keeps the handles until it is used.
        Error::unless_zero(unsafe {
            UpdateProcThreadAttribute(
                self.pointer(),
                0,
                attribute as usize,
                handles.as_ptr().cast::<c_void>(),
                size_of_val(handles),
                null_mut(),
                null(),
            )
        })
    }

    fn pointer(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the list is initialised and not used again.
        unsafe { DeleteProcThreadAttributeList(self.pointer()) };
    }
}
