//! From the command line to the exit code.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use core::time::Duration;

use super::child::Child;
use super::console::StopRequests;
use super::environment::{self, lossy};
use super::error::{Error, Result};
use super::handle::{Deadline, milliseconds, wait};
use super::job::Job;
use super::library::Library;
use super::log::Log;
use super::registry;
use super::service::{Service, State};
use super::stop::Stop;
use crate::args::{self, Request, Settings, StopSignal};
use crate::limit::Seconds;
use crate::{cmdline, limit};

/// Something had to be ended because the stop time was up.
pub(super) const ENDED_AT_DEADLINE: u32 = 124;
/// The shim was used wrongly, or Windows failed it.
pub const SHIM_FAILED: u32 = 125;
/// What was to run is no program.
const NO_PROGRAM: u32 = 126;
/// What was to run could not be started.
const NOT_STARTED: u32 = 127;

/// Does what the command line asks for and returns the exit code.
pub fn main() -> u32 {
    let line = environment::command_line();
    let tokens = cmdline::split(&line);
    let texts = tokens.iter().map(|token| token.text.as_slice());
    match args::parse(texts, environment::variable) {
        Err(error) => {
            environment::print_error(&format!(
                "wincimg-shim: error: {error}\r\nhint: shim.exe --help\r\n"
            ));
            SHIM_FAILED
        }
        Ok(Request::Help) => {
            environment::print(args::HELP);
            0
        }
        Ok(Request::Version) => {
            environment::print(concat!("wincimg-shim ", env!("CARGO_PKG_VERSION"), "\r\n"));
            0
        }
        Ok(Request::Pause(settings)) => pause(Log::new(&settings)),
        Ok(Request::Run { settings, program }) => {
            let program = program.map(|index| &line[tokens[index].start..]);
            run(&settings, program)
        }
    }
}

fn pause(log: Log) -> u32 {
    let paused = StopRequests::listen().and_then(|requests| {
        wait(&[requests.requested()], Deadline::NEVER)?;
        Ok(requests.kind())
    });
    match paused {
        Ok(kind) => {
            log.info("stop", &[], format_args!("asked to stop ({kind})"));
            0
        }
        Err(error) => failed(log, error),
    }
}

fn run(settings: &Settings, program: Option<&[u16]>) -> u32 {
    let log = Log::new(settings);
    run_to_the_end(log, settings, program).unwrap_or_else(|error| failed(log, error))
}

fn failed(log: Log, error: Error) -> u32 {
    log.error("failed", &[], format_args!("cannot go on: {error}"));
    SHIM_FAILED
}

fn run_to_the_end(log: Log, settings: &Settings, program: Option<&[u16]>) -> Result<u32> {
    let requests = StopRequests::listen()?;
    let stop_time = stop_time(log, settings);
    warn_of_what_cannot_work(log, settings, stop_time);
    let stop = |service: Option<&mut Service>, child: Option<&Child>, asked: bool| {
        let stop = Stop {
            log,
            settings,
            was_ctrl_c: requests.was_ctrl_c(),
            deadline: Deadline::after(stop_time),
        };
        if asked {
            stop.all(service, child)
        } else {
            stop.rest(service, child)
        }
    };

    let mut service = match &settings.service {
        None => None,
        Some(name) => match start_service(log, name, &requests) {
            Ok(service) => Some(service),
            Err(reason) => {
                let name = lossy(name);
                let text = format_args!("cannot start the service {name}: {reason}");
                log.error("not_started", &[], text);
                return Ok(NOT_STARTED);
            }
        },
    };
    let child = match program {
        None => None,
        Some(line) => match start_program(log, settings, line, stop_time) {
            Ok(child) => Some(child),
            Err(code) => {
                stop(service.as_mut(), None, false)?;
                return Ok(code);
            }
        },
    };

    match first_end(&requests, service.as_mut(), child.as_ref())? {
        First::Program(code) => {
            log.info(
                "ended",
                &[("exit_code", code.into())],
                format_args!("the program ended with exit code {code}"),
            );
            stop(service.as_mut(), None, false)?;
            end_leftovers(log, child.as_ref(), code);
            Ok(code)
        }
        First::Service(code) => {
            log.warning(
                "service_ended",
                format_args!("the service stopped by itself with exit code {code}"),
            );
            stop(None, child.as_ref(), false)?;
            end_leftovers(log, child.as_ref(), code);
            Ok(code)
        }
        First::Request => {
            let kind = requests.kind();
            log.info(
                "stop",
                &[("stop_time_ms", milliseconds(stop_time))],
                format_args!("asked to stop ({kind}), {} s left", Seconds(stop_time)),
            );
            if !stop(service.as_mut(), child.as_ref(), true)? {
                return Ok(ENDED_AT_DEADLINE);
            }
            let code = child.as_ref().map_or(Ok(0), Child::exit_code)?;
            log.info(
                "ended",
                &[("exit_code", code.into())],
                format_args!("stopped in time, exit code {code}"),
            );
            end_leftovers(log, child.as_ref(), code);
            Ok(code)
        }
    }
}

/// The time a stop may take: what was asked for, or what the container's registry allows.
fn stop_time(log: Log, settings: &Settings) -> Duration {
    settings.stop_timeout.unwrap_or_else(|| {
        registry::stop_time().unwrap_or_else(|error| {
            log.warning(
                "no_registry",
                format_args!("cannot read the stop time from the registry: {error}"),
            );
            limit::from_registry(None, None)
        })
    })
}

fn warn_of_what_cannot_work(log: Log, settings: &Settings, stop_time: Duration) {
    if settings.drain >= stop_time && !settings.drain.is_zero() {
        log.warning(
            "drain_too_long",
            format_args!(
                "draining for {} s leaves nothing of the stop time of {} s",
                Seconds(settings.drain),
                Seconds(stop_time)
            ),
        );
    }
    if settings.stop_signal == StopSignal::Close && !Library::exists("user32.dll") {
        log.warning(
            "no_windows",
            format_args!("this image has no user32.dll, so --stop-signal close reaches nothing"),
        );
    }
}

/// Starts the service and waits until it runs, unless a stop is requested meanwhile.
fn start_service(
    log: Log,
    name: &[u16],
    requests: &StopRequests,
) -> core::result::Result<Service, String> {
    let mut service = Service::open(name).map_err(|error| error.to_string())?;
    service.start().map_err(|error| error.to_string())?;
    loop {
        match service.state().map_err(|error| error.to_string())? {
            State::Starting => {}
            State::Running | State::Stopping => break,
            State::Stopped { exit_code } => {
                return Err(format!("it stopped with exit code {exit_code}"));
            }
        }
        let woken = wait(&[requests.requested(), service.changed()], Deadline::NEVER);
        match woken.map_err(|error| error.to_string())? {
            Some(0) => break,
            _ => service.heard(),
        }
    }
    log.info(
        "service_started",
        &[],
        format_args!("the service {} is running", lossy(name)),
    );
    Ok(service)
}

/// Starts the program, or tells why not and with which exit code the shim ends.
fn start_program(
    log: Log,
    settings: &Settings,
    command_line: &[u16],
    stop_time: Duration,
) -> core::result::Result<Child, u32> {
    let name = program_name(command_line);
    let job = if settings.kill_tree {
        Job::new()
            .inspect_err(|error| {
                let text = format_args!("what the program leaves behind will stay: {error}");
                log.warning("no_job", text);
            })
            .ok()
    } else {
        None
    };
    // CTRL_C reaches only programs of the shim's own group.
    let own_group = settings.stop_signal != StopSignal::CtrlC;
    match Child::start(command_line, own_group, job) {
        Ok(child) => {
            let pid = child.id();
            log.info(
                "started",
                &[
                    ("pid", pid.into()),
                    ("stop_time_ms", milliseconds(stop_time)),
                ],
                format_args!(
                    "started {name} (process {pid}), stop time {} s",
                    Seconds(stop_time)
                ),
            );
            Ok(child)
        }
        Err(error) => {
            log.error(
                "not_started",
                &[("windows_error", error.0.into())],
                format_args!("cannot start {name}: {error}"),
            );
            Err(if error.means_no_program() {
                NO_PROGRAM
            } else {
                NOT_STARTED
            })
        }
    }
}

/// What happened first.
enum First {
    Program(u32),
    Service(u32),
    Request,
}

fn first_end(
    requests: &StopRequests,
    mut service: Option<&mut Service>,
    child: Option<&Child>,
) -> Result<First> {
    loop {
        if let Some(service) = service.as_deref_mut()
            && let State::Stopped { exit_code } = service.state()?
        {
            return Ok(First::Service(exit_code));
        }
        let mut handles = vec![requests.requested()];
        handles.extend(service.as_ref().map(|service| service.changed()));
        handles.extend(child.map(Child::process));
        let woken = wait(&handles, Deadline::NEVER)?;
        // A program that has ended needs no stopping, whatever else there is.
        if let Some(child) = child
            && wait(&[child.process()], Deadline::now())?.is_some()
        {
            return child.exit_code().map(First::Program);
        }
        match (woken, service.as_deref_mut()) {
            (Some(0), _) => return Ok(First::Request),
            (_, Some(service)) => service.heard(),
            (_, None) => {}
        }
    }
}

/// Ends what a program leaves behind, where that is wanted.
fn end_leftovers(log: Log, child: Option<&Child>, exit_code: u32) {
    let Some((child, left)) = child.and_then(|child| Some((child, child.left_behind()?))) else {
        return;
    };
    if left > 0 {
        log.info(
            "kill_tree",
            &[("processes", left)],
            format_args!("ending {left} processes that the program left behind"),
        );
    }
    child.kill(exit_code);
}

/// What a command line names as its program; its arguments may be secret.
pub(super) fn program_name(command_line: &[u16]) -> String {
    cmdline::split(command_line)
        .first()
        .map(|token| lossy(&token.text))
        .unwrap_or_default()
}
