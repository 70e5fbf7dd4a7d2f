//! Files as the shim reads them: programs' heads, and logs that others write, rename and delete.

use alloc::vec::Vec;
use core::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    ERROR_FILE_NOT_FOUND, ERROR_HANDLE_EOF, ERROR_PATH_NOT_FOUND, GENERIC_READ,
    INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, CreateFileW, FILE_ATTRIBUTE_DIRECTORY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FindClose,
    FindFirstFileW, FindNextFileW, GetFileInformationByHandle, OPEN_EXISTING, ReadFile,
    WIN32_FIND_DATAW,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use super::error::{Error, Result};
use super::handle::Handle;
use super::terminated;

/// What stays of a file that is renamed, and no other file on its volume has.
pub(super) type Identity = [u32; 3];

/// What a folder tells of a file. It is late while the file is open.
pub(super) type Stamp = [u32; 4];

const IO_REPARSE_TAG_MOUNT_POINT: u32 = 0xA000_0003;
const IO_REPARSE_TAG_SYMLINK: u32 = 0xA000_000C;

const DOT: u16 = b'.' as u16;

/// A file, open for reading; others may do everything with it.
pub(super) struct File {
    handle: Handle,
    pub(super) identity: Identity,
    pub(super) size: u64,
}

impl File {
    pub(super) fn open(path: &[u16]) -> Result<Self> {
        let path = terminated(path);
        // SAFETY: the path ends with a zero.
        let handle = Handle::from_call(unsafe {
            CreateFileW(
                path.as_ptr(),
                GENERIC_READ,
                FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                null(),
                OPEN_EXISTING,
                0,
                null_mut(),
            )
        })?;
        let mut about = BY_HANDLE_FILE_INFORMATION::default();
        // SAFETY: the file is open; the answer is written to a local.
        Error::unless_zero(unsafe { GetFileInformationByHandle(handle.raw(), &raw mut about) })?;
        Ok(Self {
            handle,
            identity: [
                about.dwVolumeSerialNumber,
                about.nFileIndexHigh,
                about.nFileIndexLow,
            ],
            size: u64::from(about.nFileSizeHigh) << 32 | u64::from(about.nFileSizeLow),
        })
    }

    /// Reads from a place on; 0 at the end.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut place = OVERLAPPED::default();
        place.Anonymous.Anonymous.Offset = low(at);
        place.Anonymous.Anonymous.OffsetHigh = low(at >> 32);
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let mut count = 0;
        // SAFETY: the buffer is at least that long, and the call waits, as the handle is not an
        // overlapped one's.
        let done = unsafe {
            ReadFile(
                self.handle.raw(),
                buffer.as_mut_ptr(),
                length,
                &raw mut count,
                &raw mut place,
            )
        };
        match Error::unless_zero(done) {
            Err(Error(ERROR_HANDLE_EOF)) => Ok(0),
            other => other.map(|()| count as usize),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the half that is wanted")]
fn low(number: u64) -> u32 {
    number as u32
}

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) name: Vec<u16>,
    pub(super) is_folder: bool,
    pub(super) stamp: Stamp,
}

/// The entries that a path stands for, whose last part may have wildcards; none of what is not there.
pub(super) fn entries(path: &[u16]) -> Result<Vec<Entry>> {
    let path = terminated(path);
    let mut all = Vec::new();
    let mut found = WIN32_FIND_DATAW::default();
    // SAFETY: the path ends with a zero; the entry is written to a local.
    let search = unsafe { FindFirstFileW(path.as_ptr(), &raw mut found) };
    if search == INVALID_HANDLE_VALUE {
        return match Error::last() {
            Error(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => Ok(all),
            error => Err(error),
        };
    }
    loop {
        let mut name = found.cFileName.to_vec();
        let end = name.iter().position(|&unit| unit == 0);
        name.truncate(end.unwrap_or(name.len()));
        let is = |attribute| found.dwFileAttributes & attribute != 0;
        let is_folder = is(FILE_ATTRIBUTE_DIRECTORY);
        // Links to folders can lead in circles.
        let is_link = is(FILE_ATTRIBUTE_REPARSE_POINT)
            && matches!(
                found.dwReserved0,
                IO_REPARSE_TAG_MOUNT_POINT | IO_REPARSE_TAG_SYMLINK
            );
        let is_dots = matches!(*name, [DOT] | [DOT, DOT]);
        if !(is_folder && (is_link || is_dots)) {
            all.push(Entry {
                name,
                is_folder,
                stamp: [
                    found.nFileSizeHigh,
                    found.nFileSizeLow,
                    found.ftLastWriteTime.dwHighDateTime,
                    found.ftLastWriteTime.dwLowDateTime,
                ],
            });
        }
        // SAFETY: the search is open; the entry is written to a local.
        if unsafe { FindNextFileW(search, &raw mut found) } == 0 {
            break;
        }
    }
    // SAFETY: the search is open and not used again.
    unsafe { FindClose(search) };
    Ok(all)
}
