//! Parts of Windows that not every image has, looked for when they are needed.

use core::ffi::CStr;
use core::ptr::null_mut;

use windows_sys::Win32::Foundation::{FARPROC, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_AS_DATAFILE, LOAD_LIBRARY_FLAGS, LOAD_LIBRARY_SEARCH_SYSTEM32,
    LoadLibraryExW,
};

use super::environment::wide;
use super::error::{Error, Result};
use super::terminated;

/// A DLL of Windows itself, loaded until the process ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Library(HMODULE);

impl Library {
    /// Loads a DLL from Windows' own directory and nowhere else.
    pub(super) fn load(name: &str) -> Result<Self> {
        Self::load_as(name, 0)
    }

    /// Whether Windows has a DLL, found out without running any of it.
    pub(super) fn exists(name: &str) -> bool {
        Self::load_as(name, LOAD_LIBRARY_AS_DATAFILE).is_ok()
    }

    fn load_as(name: &str, flags: LOAD_LIBRARY_FLAGS) -> Result<Self> {
        let name = terminated(&wide(name.as_bytes()));
        let flags = LOAD_LIBRARY_SEARCH_SYSTEM32 | flags;
        // SAFETY: the name ends with a zero. What Windows' own DLLs do when loaded is sound.
        let module = unsafe { LoadLibraryExW(name.as_ptr(), null_mut(), flags) };
        if module.is_null() {
            Err(Error::last())
        } else {
            Ok(Self(module))
        }
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    pub(super) unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F> {
        const { assert!(size_of::<F>() == size_of::<FARPROC>()) };
        // SAFETY: the module stays loaded and the name ends with a zero.
        let function = unsafe { GetProcAddress(self.0, name.as_ptr().cast()) };
        let function = function.ok_or_else(Error::last)?;
        // SAFETY: both are pointers to a function, and the caller knows its type.
        Ok(unsafe { core::mem::transmute_copy(&function) })
    }
}
