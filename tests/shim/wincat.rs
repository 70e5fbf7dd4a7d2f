//! The shim under the name `wincat.exe`: standard input and output joined with a TCP connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use wincimg_testkit::wine::Wine;

use super::harness::{HANGS, run};

const TIMEOUT: Duration = Duration::from_secs(30);

/// More than the pipes, sockets and buffers on the way hold.
const LONG: usize = 5 << 20;

/// `wincat.exe`, with the other side of its connection.
struct Cat {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    peer: Peer,
}

/// The other side; what does not arrive in time is wine's fault, as a program that does not end.
struct Peer(TcpStream);

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                panic!("{HANGS}: wincat.exe sends nothing")
            }
            read => read,
        }
    }
}

impl Cat {
    fn start(wine: &Wine, host: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut child = wine
            .command(r"C:\windows\system32\wincat.exe")
            .args([host, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: child.stdout.take().unwrap(),
            peer: accept(&listener),
            child,
        }
    }
}

fn accept(listener: &TcpListener) -> Peer {
    listener.set_nonblocking(true).unwrap();
    let until = Instant::now() + TIMEOUT;
    loop {
        match listener.accept() {
            Ok((peer, _)) => {
                peer.set_nonblocking(false).unwrap();
                peer.set_read_timeout(Some(TIMEOUT)).unwrap();
                return Peer(peer);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(
                    Instant::now() < until,
                    "{HANGS}: wincat.exe does not connect"
                );
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn code_of(child: &mut Child) -> Option<i32> {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{HANGS}: wincat.exe");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes of all values, different at every place that a lost buffer could move them to.
fn bytes(seed: usize) -> Vec<u8> {
    let mixed = |at: usize| (at * 31 + at / 251 + at / 65_521 + seed).to_le_bytes()[0];
    (0..LONG).map(mixed).collect()
}

pub(crate) fn bytes_go_both_ways_at_the_same_time(wine: &Wine) {
    let Cat {
        mut child,
        mut input,
        mut output,
        mut peer,
    } = Cat::start(wine, "127.0.0.1");
    let mut sender = peer.0.try_clone().unwrap();
    let threads = [
        // The end of the input ends what the peer receives.
        thread::spawn(move || {
            input.write_all(&bytes(1)).unwrap();
            drop(input);
            Vec::new()
        }),
        thread::spawn(move || {
            sender.write_all(&bytes(2)).unwrap();
            Vec::new()
        }),
        thread::spawn(move || {
            let mut received = Vec::new();
            output.read_to_end(&mut received).unwrap();
            received
        }),
    ];
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert!(received == bytes(1), "{} bytes up", received.len());
    peer.0.shutdown(Shutdown::Write).unwrap();
    let [_, _, down] = threads.map(|thread| thread.join().unwrap());
    assert!(down == bytes(2), "{} bytes down", down.len());
    assert_eq!(code_of(&mut child), Some(0));
}

pub(crate) fn the_end_of_the_input_leaves_the_answer(wine: &Wine) {
    // A name, whose first address may be one at which nobody listens.
    let mut cat = Cat::start(wine, "localhost");
    cat.input.write_all(b"question").unwrap();
    drop(cat.input);
    let mut question = String::new();
    cat.peer.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    // Longer than it waits for input after the last answer.
    thread::sleep(Duration::from_millis(1200));
    cat.peer.0.write_all(b"answer").unwrap();
    drop(cat.peer);
    let mut answer = String::new();
    cat.output.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(code_of(&mut cat.child), Some(0));
}

pub(crate) fn the_last_answer_ends_it_while_the_input_is_open(wine: &Wine) {
    let mut cat = Cat::start(wine, "127.0.0.1");
    cat.input.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut request = [0; 18];
    cat.peer.read_exact(&mut request).unwrap();
    cat.peer
        .0
        .write_all(b"HTTP/1.0 204 No Content\r\n\r\n")
        .unwrap();
    cat.peer.0.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    cat.output.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.0 204 No Content\r\n\r\n");
    assert_eq!(code_of(&mut cat.child), Some(0));
    // It closed the connection in order: an end, not a reset.
    assert_eq!(cat.peer.read(&mut request).unwrap(), 0);
    drop(cat.input);
}

pub(crate) fn input_still_goes_on_after_the_last_answer(wine: &Wine) {
    let mut cat = Cat::start(wine, "127.0.0.1");
    cat.peer.0.shutdown(Shutdown::Write).unwrap();
    for _ in 0..10 {
        cat.input.write_all(b"x").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    drop(cat.input);
    let mut received = String::new();
    cat.peer.read_to_string(&mut received).unwrap();
    assert_eq!(received, "xxxxxxxxxx");
    assert_eq!(code_of(&mut cat.child), Some(0));
    let mut none = Vec::new();
    cat.output.read_to_end(&mut none).unwrap();
    assert_eq!(none, b"");
}

pub(crate) fn a_lost_connection_is_1_with_words(wine: &Wine) {
    let mut cat = Cat::start(wine, "127.0.0.1");
    cat.input.write_all(b"unread").unwrap();
    let mut one = [0];
    cat.peer.read_exact(&mut one).unwrap();
    // Bytes that nobody reads make it a reset.
    drop(cat.peer);
    let code = code_of(&mut cat.child);
    let mut printed = String::new();
    let mut errors = cat.child.stderr.take().unwrap();
    errors.read_to_string(&mut printed).unwrap();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("(Windows error 10054)"), "{printed}");
    assert!(
        printed.starts_with("wincat: error: connection to port "),
        "{printed}"
    );
}

pub(crate) fn a_refused_connection_is_1_with_words(wine: &Wine) {
    let port = free_port();
    let mut command = wine.command(r"C:\windows\system32\WinCat.exe");
    command.args(["127.0.0.1", &port.to_string()]);
    run(command)
        .assert_code(1)
        .assert_printed(&format!(
            "wincat: error: cannot connect to 127.0.0.1 port {port}: "
        ))
        .assert_printed("(Windows error 10061)");
}

/// A port at which nobody listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn wrong_usage_of_wincat_is_1(wine: &Wine) {
    for words in [&[][..], &["127.0.0.1"], &["127.0.0.1", "80", "81"]] {
        let mut command = wine.command(r"C:\windows\system32\wincat.exe");
        command.args(words);
        run(command)
            .assert_code(1)
            .assert_printed("usage: wincat.exe HOST PORT");
    }
    for port in ["0", "65536", "http", "-1"] {
        let mut command = wine.command(r"C:\windows\system32\wincat.exe");
        command.args(["127.0.0.1", port]);
        run(command)
            .assert_code(1)
            .assert_printed(&format!("wincat: error: invalid port '{port}'"));
    }
}
