//! Starts a program under wine as a container would: with the command line, the environment and the
//! folder that a file says, and reports its whole exit code in another one.
//!
//! `wincimg try` brings it along. wine's own way in takes arguments, puts them together by itself,
//! lets its registry win over variables, and leaves eight bits of an exit code.
//!
//! The file, named by the variable `WINCIMG_START`, is UTF-16 in records that end with a zero: the
//! report's path, the folder, the command line, names of variables that go and an empty record, names
//! and values of variables. The report is two numbers of four bytes: 0 and the program's exit code, or
//! else the step that failed and Windows' error.
//!
//! Whatever the program leaves running ends with this one.

#![cfg_attr(windows, no_std, no_main)]

#[cfg(not(windows))]
fn main() -> std::process::ExitCode {
    // Built here only so that the workspace's checks see it.
    std::process::ExitCode::from(125)
}

#[cfg(windows)]
mod windows {
    use core::cell::UnsafeCell;
    use core::panic::PanicInfo;
    use core::ptr::{null, null_mut};

    use windows_sys::Win32::Foundation::{
        CloseHandle, GENERIC_READ, GENERIC_WRITE, GetLastError, HANDLE, INVALID_HANDLE_VALUE,
    };
    use windows_sys::Win32::Storage::FileSystem::{
        CREATE_ALWAYS, CreateFileW, FILE_SHARE_READ, OPEN_EXISTING, ReadFile, WriteFile,
    };
    use windows_sys::Win32::System::Environment::{
        GetEnvironmentVariableW, SetCurrentDirectoryW, SetEnvironmentVariableW,
    };
    use windows_sys::Win32::System::JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
        SetInformationJobObject,
    };
    use windows_sys::Win32::System::Threading::{
        CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, ExitProcess,
        GetExitCodeProcess, GetStartupInfoW, INFINITE, PROCESS_INFORMATION, ResumeThread,
        STARTUPINFOW, WaitForSingleObject,
    };

    /// What failed, in the report.
    const READING: u32 = 1;
    const VARIABLE: u32 = 2;
    const FOLDER: u32 = 3;
    const STARTING: u32 = 4;

    /// As much as the file may have: an environment has at most 32,767 units, and so has a line.
    const UNITS: u32 = 256 << 10;
    const PATH_UNITS: u32 = 4096;

    /// Room that needs no heap. Only the one thread of this program uses it.
    struct Room<const N: usize>(UnsafeCell<[u16; N]>);

    // SAFETY: the program has one thread.
    unsafe impl<const N: usize> Sync for Room<N> {}

    static FILE: Room<{ UNITS as usize }> = Room(UnsafeCell::new([0; UNITS as usize]));
    static PATH: Room<{ PATH_UNITS as usize }> = Room(UnsafeCell::new([0; PATH_UNITS as usize]));

    /// Where Windows starts the program; the name is the linker's default.
    #[unsafe(no_mangle)]
    extern "C" fn mainCRTStartup() -> ! {
        // SAFETY: this is the only thread, and the only place that takes the rooms.
        let (file, path) = unsafe { (&mut *FILE.0.get(), &mut *PATH.0.get()) };
        let code = match read(file, path) {
            Ok(length) => {
                let mut records = Records(&mut file[..length]);
                let report = records.next();
                let (step, value) = match run(&mut records) {
                    Ok(code) => (0, code),
                    Err(step) => (step, last_error()),
                };
                tell(report, step, value);
                u32::from(step != 0)
            }
            Err(step) => step,
        };
        end(code)
    }

    fn end(code: u32) -> ! {
        // SAFETY: ends the process.
        unsafe { ExitProcess(code) }
    }

    fn last_error() -> u32 {
        // SAFETY: always allowed.
        unsafe { GetLastError() }
    }

    /// Reads the file that the variable names; how many units it has.
    fn read(
        file: &mut [u16; UNITS as usize],
        path: &mut [u16; PATH_UNITS as usize],
    ) -> Result<usize, u32> {
        let name: [u16; 14] = wide(b"WINCIMG_START\0");
        // SAFETY: the name ends with a zero, and the room is as long as is said. What does not fit
        // is not written.
        let length =
            unsafe { GetEnvironmentVariableW(name.as_ptr(), path.as_mut_ptr(), PATH_UNITS) };
        if length == 0 || length >= PATH_UNITS {
            return Err(READING);
        }
        // SAFETY: the name ends with a zero; without a value the variable goes.
        unsafe { SetEnvironmentVariableW(name.as_ptr(), null()) };
        let handle = open(path.as_ptr(), GENERIC_READ, OPEN_EXISTING).ok_or(READING)?;
        let mut bytes = 0;
        // SAFETY: the room is one byte longer than what may be read into it.
        let done = unsafe {
            ReadFile(
                handle,
                file.as_mut_ptr().cast(),
                UNITS * 2 - 2,
                &raw mut bytes,
                null_mut(),
            )
        };
        // SAFETY: the handle is open.
        unsafe { CloseHandle(handle) };
        if done == 0 || bytes == 0 {
            return Err(READING);
        }
        // The last record ends, whatever the file says.
        Ok(bytes as usize / 2 + 1)
    }

    fn open(path: *const u16, access: u32, how: u32) -> Option<HANDLE> {
        // SAFETY: paths here end with a zero.
        let handle =
            unsafe { CreateFileW(path, access, FILE_SHARE_READ, null(), how, 0, null_mut()) };
        (handle != INVALID_HANDLE_VALUE).then_some(handle)
    }

    /// Pieces that end with a zero; empty ones after the last.
    struct Records<'f>(&'f mut [u16]);

    impl Records<'_> {
        fn next(&mut self) -> *mut u16 {
            let units = core::mem::take(&mut self.0);
            let start = units.as_mut_ptr();
            let end = units.iter().position(|unit| *unit == 0);
            let Some(end) = end.filter(|end| end + 1 < units.len()) else {
                // The file's last unit is a zero, and an empty record.
                let last = units.len() - 1;
                self.0 = &mut units[last..];
                return start;
            };
            self.0 = &mut units[end + 1..];
            start
        }
    }

    /// Starts what the rest of the records say and waits for its end.
    fn run(records: &mut Records<'_>) -> Result<u32, u32> {
        let folder = records.next();
        let line = records.next();
        loop {
            let name = records.next();
            // SAFETY: every record ends with a zero.
            if unsafe { *name } == 0 {
                break;
            }
            // SAFETY: as above; without a value the variable goes, and need not have been there.
            unsafe { SetEnvironmentVariableW(name, null()) };
        }
        loop {
            let (name, value) = (records.next(), records.next());
            // SAFETY: every record ends with a zero.
            if unsafe { *name } == 0 {
                break;
            }
            // SAFETY: as above.
            if unsafe { SetEnvironmentVariableW(name, value) } == 0 {
                return Err(VARIABLE);
            }
        }
        // Programs are looked for in the folder too.
        // SAFETY: as above.
        if unsafe { SetCurrentDirectoryW(folder) } == 0 {
            return Err(FOLDER);
        }
        let mut startup = STARTUPINFOW::default();
        // SAFETY: fills in a structure of the right kind; its handles are those that wine gave.
        unsafe { GetStartupInfoW(&raw mut startup) };
        let mut created = PROCESS_INFORMATION::default();
        // SAFETY: the line ends with a zero and may be written to; the structures are locals.
        let done = unsafe {
            CreateProcessW(
                null(),
                line,
                null(),
                null(),
                1,
                CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT,
                null(),
                null(),
                &raw const startup,
                &raw mut created,
            )
        };
        if done == 0 {
            return Err(STARTING);
        }
        hold(created.hProcess);
        let mut code = 0;
        // SAFETY: both handles are open, and the code is a local.
        unsafe {
            ResumeThread(created.hThread);
            WaitForSingleObject(created.hProcess, INFINITE);
            GetExitCodeProcess(created.hProcess, &raw mut code);
        }
        Ok(code)
    }

    /// Puts a process into a job that ends with this one. Where there is none to be had, it runs
    /// without.
    fn hold(process: HANDLE) {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the structure is the one that this class of information takes, and the process is
        // open. The job is closed by the end of this process.
        unsafe {
            let job = CreateJobObjectW(null(), null());
            SetInformationJobObject(
                job,
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                u32::try_from(size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>()).unwrap_or(0),
            );
            AssignProcessToJobObject(job, process);
        }
    }

    fn tell(path: *const u16, step: u32, value: u32) {
        let Some(handle) = open(path, GENERIC_WRITE, CREATE_ALWAYS) else {
            return;
        };
        let report = [step, value];
        let mut written = 0;
        // SAFETY: the report has eight bytes, and the handle is open.
        unsafe {
            WriteFile(
                handle,
                report.as_ptr().cast(),
                8,
                &raw mut written,
                null_mut(),
            );
            CloseHandle(handle);
        }
    }

    const fn wide<const N: usize>(text: &[u8; N]) -> [u16; N] {
        let mut units = [0; N];
        let mut at = 0;
        while at < N {
            units[at] = text[at] as u16;
            at += 1;
        }
        units
    }

    #[panic_handler]
    fn panic(_: &PanicInfo<'_>) -> ! {
        end(125)
    }

    /// The prebuilt core library names these two in its unwind tables; nothing unwinds here.
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    /// See above.
    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() -> ! {
        end(125)
    }

    // The few memory functions that compiled code expects; every Windows process has this DLL.
    #[expect(dead_code, reason = "called by what the compiler makes, not by name")]
    #[link(name = "ntdll", kind = "raw-dylib")]
    unsafe extern "C" {
        fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32;
        fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
        fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
        fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8;
    }
}
