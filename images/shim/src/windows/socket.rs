//! TCP connections. `ws2_32.dll` is loaded when one is wanted: the shim itself does not need it.

use alloc::format;
use core::ptr::null_mut;

use windows_sys::Win32::Networking::WinSock::{
    ADDRINFOW, AI_NUMERICSERV, INVALID_SOCKET, IPPROTO_TCP, SD_SEND, SEND_RECV_FLAGS, SOCK_STREAM,
    SOCKADDR, SOCKET, WINSOCK_SHUTDOWN_HOW, WSADATA,
};

use super::environment::wide;
use super::error::{Error, Result};
use super::library::Library;
use super::terminated;

type StartUp = unsafe extern "system" fn(u16, *mut WSADATA) -> i32;
type GetAddresses =
    unsafe extern "system" fn(*const u16, *const u16, *const ADDRINFOW, *mut *mut ADDRINFOW) -> i32;
type Open = unsafe extern "system" fn(i32, i32, i32) -> SOCKET;
type Connect = unsafe extern "system" fn(SOCKET, *const SOCKADDR, i32) -> i32;
type Receive = unsafe extern "system" fn(SOCKET, *mut u8, i32, SEND_RECV_FLAGS) -> i32;
type Send = unsafe extern "system" fn(SOCKET, *const u8, i32, SEND_RECV_FLAGS) -> i32;
type ShutDown = unsafe extern "system" fn(SOCKET, WINSOCK_SHUTDOWN_HOW) -> i32;
type Close = unsafe extern "system" fn(SOCKET) -> i32;

/// The version of Winsock to ask for, 2.2.
const VERSION: u16 = 0x0202;

/// A connection; one thread may send while another receives.
#[derive(Debug)]
pub(super) struct Connection {
    socket: SOCKET,
    receive: Receive,
    send: Send,
    shut_down: ShutDown,
    close: Close,
}

impl Connection {
    /// Connects to the first address of a host that answers.
    pub(super) fn open(host: &[u16], port: u16) -> Result<Self> {
        let winsock = Library::load("ws2_32.dll")?;
        // SAFETY: the types are those of Windows' documentation.
        let (start_up, addresses, open, connect, mut connection) = unsafe {
            (
                winsock.function::<StartUp>(c"WSAStartup")?,
                winsock.function::<GetAddresses>(c"GetAddrInfoW")?,
                winsock.function::<Open>(c"socket")?,
                winsock.function::<Connect>(c"connect")?,
                Self {
                    socket: INVALID_SOCKET,
                    receive: winsock.function(c"recv")?,
                    send: winsock.function(c"send")?,
                    shut_down: winsock.function(c"shutdown")?,
                    close: winsock.function(c"closesocket")?,
                },
            )
        };
        let mut data = WSADATA::default();
        // SAFETY: Windows fills in a local.
        unless_code(unsafe { start_up(VERSION, &raw mut data) })?;
        let list = look_up(addresses, host, port)?;
        let mut refusal = Error(0);
        let mut next = list.cast_const();
        // SAFETY: Windows made the list, ends it with null, and nobody frees it.
        while let Some(address) = unsafe { next.as_ref() } {
            // SAFETY: plain numbers.
            let socket =
                unsafe { open(address.ai_family, address.ai_socktype, address.ai_protocol) };
            let length = i32::try_from(address.ai_addrlen).unwrap_or(0);
            // SAFETY: the list's addresses have the length that it says.
            if socket != INVALID_SOCKET && unsafe { connect(socket, address.ai_addr, length) } == 0
            {
                connection.socket = socket;
                return Ok(connection);
            }
            refusal = Error::last();
            next = address.ai_next;
        }
        Err(refusal)
    }

    /// Waits for bytes; 0 once the other side has sent its last.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        let length = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        // SAFETY: the buffer has at least that many bytes.
        let received = unsafe { (self.receive)(self.socket, buffer.as_mut_ptr(), length, 0) };
        usize::try_from(received).map_err(|_| Error::last())
    }

    /// Sends all of some bytes.
    pub(super) fn send(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
            // SAFETY: the buffer has at least that many bytes.
            let sent = unsafe { (self.send)(self.socket, bytes.as_ptr(), length, 0) };
            let sent = usize::try_from(sent).map_err(|_| Error::last())?;
            bytes = bytes.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    /// Tells the other side that nothing more is sent; it may still send.
    pub(super) fn end_sending(&self) {
        // SAFETY: at worst the socket is no longer connected, which is an error without effect.
        unsafe { (self.shut_down)(self.socket, SD_SEND) };
    }

    /// Ends the connection in order; Windows resets one that is open when its process ends.
    pub(super) fn close(&self) {
        self.end_sending();
        // SAFETY: a call of another thread on a closed socket fails, and sockets are not opened anew.
        unsafe { (self.close)(self.socket) };
    }
}

/// The TCP addresses of a host, as a list that lives until the process ends.
fn look_up(addresses: GetAddresses, host: &[u16], port: u16) -> Result<*mut ADDRINFOW> {
    let host = terminated(host);
    let port = terminated(&wide(format!("{}", u64::from(port)).as_bytes()));
    let wanted = ADDRINFOW {
        ai_flags: AI_NUMERICSERV.cast_signed(),
        ai_socktype: SOCK_STREAM,
        ai_protocol: IPPROTO_TCP,
        ..ADDRINFOW::default()
    };
    let mut list = null_mut();
    // SAFETY: both texts end with a zero, and the result goes into a local.
    let code = unsafe {
        addresses(
            host.as_ptr(),
            port.as_ptr(),
            &raw const wanted,
            &raw mut list,
        )
    };
    unless_code(code).map(|()| list)
}

/// Turns what some calls return, zero or their error, into a result.
fn unless_code(returned: i32) -> Result<()> {
    match returned {
        0 => Ok(()),
        code => Err(Error(code.cast_unsigned())),
    }
}
