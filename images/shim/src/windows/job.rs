//! Job objects: a program and everything it starts, as one.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};

use super::error::{Error, Result};
use super::handle::Handle;

/// A job whose processes end when its last handle is closed, by whatever way this process ends.
#[derive(Debug)]
pub(super) struct Job(Handle);

/// As many processes as the shim looks for windows in, or counts, when a program ends.
const LISTED: usize = 256;

/// `JOBOBJECT_BASIC_PROCESS_ID_LIST` with room at its end.
#[repr(C)]
struct ProcessIds {
    assigned: u32,
    listed: u32,
    ids: [usize; LISTED],
}

impl Job {
    pub(super) fn new() -> Result<Self> {
        // SAFETY: neither attributes nor a name are given.
        let job = Handle::from_call(unsafe { CreateJobObjectW(null(), null()) })?;
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the structure is the one that this class of information takes.
        Error::unless_zero(unsafe {
            SetInformationJobObject(
                job.raw(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast::<c_void>(),
                size_of_u32::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            )
        })?;
        Ok(Self(job))
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.0
    }

    /// The processes that are in the job now.
    pub(super) fn process_ids(&self) -> alloc::vec::Vec<u32> {
        let mut list = ProcessIds {
            assigned: 0,
            listed: 0,
            ids: [0; LISTED],
        };
        // SAFETY: the structure is the one that this class takes, with room at its end. That there
        // may be more processes than room is an error whose part of the list is good all the same.
        unsafe {
            QueryInformationJobObject(
                self.0.raw(),
                JobObjectBasicProcessIdList,
                (&raw mut list).cast::<c_void>(),
                size_of_u32::<ProcessIds>(),
                null_mut(),
            )
        };
        let ids = list.ids.get(..list.listed as usize).unwrap_or_default();
        ids.iter()
            .map(|&id| u32::try_from(id).unwrap_or(0))
            .collect()
    }

    pub(super) fn terminate(&self, exit_code: u32) {
        // SAFETY: the job is open.
        unsafe { TerminateJobObject(self.0.raw(), exit_code) };
    }
}

fn size_of_u32<T>() -> u32 {
    const { assert!(size_of::<T>() <= u32::MAX as usize) };
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}
