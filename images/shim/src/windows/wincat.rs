//! `wincat.exe HOST PORT` joins standard input and output with a TCP connection.
//!
//! containerd up to 1.7 and dockershim run it in the pause container for `kubectl port-forward`. They
//! wait for its end, while its standard input may stay open for as long as the client likes.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use windows_sys::Win32::Foundation::{CloseHandle, ERROR_BROKEN_PIPE, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::Threading::CreateThread;

use super::environment::{lossy, print_error, standard_handles};
use super::error::{Error, Result};
use super::handle::{Deadline, Handle, wait};
use super::socket::Connection;
use crate::cmdline::Token;

/// As in Kubernetes' own program.
const FAILED: u32 = 1;

const BUFFER: usize = 64 << 10;

/// How long to wait for more input once the other side has sent its last byte.
const IDLE: Duration = Duration::from_millis(500);

/// Input on its way to the connection.
struct Upload {
    connection: Connection,
    input: HANDLE,
    /// Buffers sent, to see whether there is still input.
    sent: AtomicU32,
    /// True while the other side lets bytes wait.
    sending: AtomicBool,
}

/// Joins both until the other side has sent its last byte; returns the exit code.
pub(super) fn main(arguments: &[Token]) -> u32 {
    let [host, port] = arguments else {
        print_error("usage: wincat.exe HOST PORT\r\n");
        return FAILED;
    };
    let (host_name, port_text) = (lossy(&host.text), lossy(&port.text));
    let Ok(port @ 1..) = port_text.parse() else {
        print_error(&format!("wincat: error: invalid port '{port_text}'\r\n"));
        return FAILED;
    };
    let joined = Connection::open(&host.text, port)
        .map_err(|error| format!("cannot connect to {host_name} port {port_text}: {error}"))
        .and_then(|connection| {
            join(connection)
                .map_err(|error| format!("connection to port {port_text} lost: {error}"))
        });
    match joined {
        Ok(()) => 0,
        Err(problem) => {
            print_error(&format!("wincat: error: {problem}\r\n"));
            FAILED
        }
    }
}

fn join(connection: Connection) -> Result<()> {
    let [input, output, _] = standard_handles();
    // It lives as long as the process, which ends while the other thread may wait for input.
    let upload: &'static Upload = Box::leak(Box::new(Upload {
        connection,
        input,
        sent: AtomicU32::new(0),
        sending: AtomicBool::new(false),
    }));
    let argument = (&raw const *upload).cast::<c_void>();
    // SAFETY: the argument is what the thread takes it for, and lives as long as the process.
    let thread = unsafe { CreateThread(null(), 0, Some(run), argument, 0, null_mut()) };
    let thread = Handle::from_call(thread)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let received = upload.connection.receive(&mut buffer)?;
        if received == 0 {
            break;
        }
        write(output, &buffer[..received])?;
    }
    // SAFETY: nothing is written after this. Whoever reads the output learns that it is complete.
    unsafe { CloseHandle(output) };
    upload.wait_for_last(&thread)?;
    upload.connection.close();
    Ok(())
}

/// What the second thread does.
unsafe extern "system" fn run(upload: *mut c_void) -> u32 {
    // SAFETY: `join` gives the thread this, for as long as the process lives.
    let upload = unsafe { &*upload.cast_const().cast::<Upload>() };
    // A connection that is lost ends the other thread, too, which says so.
    let _ = upload.send_all();
    upload.connection.end_sending();
    0
}

impl Upload {
    fn send_all(&self) -> Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = read(self.input, &mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            self.sending.store(true, Ordering::SeqCst);
            self.connection.send(&buffer[..read])?;
            self.sent.fetch_add(1, Ordering::SeqCst);
            self.sending.store(false, Ordering::SeqCst);
        }
    }

    /// Waits until there is no more input: it ended, or none came for a while.
    fn wait_for_last(&self, thread: &Handle) -> Result<()> {
        loop {
            let before = self.sent.load(Ordering::SeqCst);
            let ended = wait(&[thread], Deadline::after(IDLE))?.is_some();
            let moved = self.sent.load(Ordering::SeqCst) != before;
            if ended || !(moved || self.sending.load(Ordering::SeqCst)) {
                return Ok(());
            }
        }
    }
}

/// Reads what there is; 0 at the end.
fn read(from: HANDLE, buffer: &mut [u8]) -> Result<usize> {
    let mut count = 0;
    let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
    // SAFETY: the buffer is at least that long, and the handle is not an overlapped one's.
    let done = unsafe {
        ReadFile(
            from,
            buffer.as_mut_ptr(),
            length,
            &raw mut count,
            null_mut(),
        )
    };
    match Error::unless_zero(done) {
        Err(Error(ERROR_BROKEN_PIPE)) => Ok(0),
        Err(error) => Err(error),
        Ok(()) => Ok(count as usize),
    }
}

fn write(to: HANDLE, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let mut count = 0;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // SAFETY: the buffer is at least that long, and the handle is not an overlapped one's.
        let done = unsafe { WriteFile(to, bytes.as_ptr(), length, &raw mut count, null_mut()) };
        Error::unless_zero(done)?;
        bytes = bytes.get(count as usize..).unwrap_or_default();
    }
    Ok(())
}
