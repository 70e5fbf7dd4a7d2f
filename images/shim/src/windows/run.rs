//! From the command line to the exit code.

use alloc::format;
use alloc::string::ToString;
use core::time::Duration;

use super::child::{Child, program_name};
use super::console::StopRequests;
use super::environment::{self, lossy};
use super::error::{Error, Result};
use super::follow::Follower;
use super::handle::{Deadline, milliseconds, wait};
use super::job::Job;
use super::library::Library;
use super::log::Log;
use super::registry;
use super::service::{Service, State};
use super::stop::{ENDED_AT_DEADLINE, Stop};
use super::wincat;
use crate::args::{self, Request, Settings, StopSignal};
use crate::limit::Seconds;
use crate::{cmdline, limit};

/// The shim was used wrongly, or Windows failed it.
pub const SHIM_FAILED: u32 = 125;
/// What was to run is not a program.
const NO_PROGRAM: u32 = 126;
/// What was to run could not be started.
const NOT_STARTED: u32 = 127;

/// Does what the command line asks for and returns the exit code.
pub fn main() -> u32 {
    let line = environment::command_line();
    let tokens = cmdline::split(&line);
    if cmdline::names_program(&tokens[0].text, "wincat") {
        return wincat::main(&tokens[1..]);
    }
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
        Ok(Request::Run {
            mut settings,
            program,
        }) => {
            let program = program.map(|index| &line[tokens[index].start..]);
            run(&mut settings, program)
        }
    }
}

/// Says that the shim itself is broken; the panic's own words would bring a lot of code with them.
pub fn report_panic() {
    environment::print_error("wincimg-shim: error: the shim failed (this is a bug in it)\r\n");
}

fn pause(log: Log) -> u32 {
    let paused = StopRequests::listen().and_then(|requests| {
        log.info("paused", &[], format_args!("waiting for a stop request"));
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

fn run(settings: &mut Settings, program: Option<&[u16]>) -> u32 {
    let log = Log::new(settings);
    let ended = StopRequests::listen().and_then(|requests| {
        let logs = Follower::start(log, settings)?;
        let run = Run {
            log,
            settings,
            requests: &requests,
            stop_time: stop_time(log, settings),
        };
        run.warn_of_what_cannot_work();
        let ended = run.to_the_end(program);
        if let Some(logs) = logs {
            logs.finish();
        }
        ended
    });
    ended.unwrap_or_else(|error| failed(log, error))
}

fn failed(log: Log, error: Error) -> u32 {
    log.error("failed", &[], format_args!("cannot go on: {error}"));
    SHIM_FAILED
}

/// The time a stop may take: what was asked for, or what the container is allowed.
fn stop_time(log: Log, settings: &Settings) -> Duration {
    let allowed = allowed_time(log);
    let Some(wanted) = settings.stop_timeout else {
        return limit::stop_time(allowed);
    };
    if wanted > allowed {
        let (wanted, allowed) = (Seconds(wanted), Seconds(allowed));
        log.warning(
            "stop_time_too_long",
            format_args!(
                "the stop time is {wanted} s, but Windows ends this container after {allowed} s"
            ),
        );
    }
    wanted
}

/// How long Windows lets this container take. Whoever runs it may know better than its registry:
/// containerd lifts the time there, so that the pod's decides, of which no registry tells.
fn allowed_time(log: Log) -> Duration {
    if let Some(value) = environment::variable(limit::VARIABLE) {
        match limit::seconds(&value) {
            Some(time) => return time,
            None => log.warning(
                "bad_stop_time",
                format_args!("{} takes seconds, not '{}'", limit::VARIABLE, lossy(&value)),
            ),
        }
    }
    registry::allowed_time().unwrap_or_else(|error| {
        let text = format_args!("cannot read the stop time from the registry: {error}");
        log.warning("no_registry", text);
        limit::WINDOWS_DEFAULT
    })
}

/// A run of a program, a service or both.
struct Run<'a> {
    log: Log,
    settings: &'a Settings,
    requests: &'a StopRequests,
    stop_time: Duration,
}

impl Run<'_> {
    fn warn_of_what_cannot_work(&self) {
        let drain = self.settings.drain;
        if drain >= self.stop_time && !drain.is_zero() {
            let (drain, stop_time) = (Seconds(drain), Seconds(self.stop_time));
            self.log.warning(
                "drain_too_long",
                format_args!(
                    "draining for {drain} s leaves nothing of the stop time of {stop_time} s"
                ),
            );
        }
        if self.settings.stop_signal == StopSignal::Close && !Library::exists("user32.dll") {
            let text = format_args!("no user32.dll here, so --stop-signal close reaches nothing");
            self.log.warning("no_windows", text);
        }
    }

    fn to_the_end(&self, program: Option<&[u16]>) -> Result<u32> {
        let mut service = match self
            .settings
            .service
            .as_deref()
            .map(|n| self.start_service(n))
        {
            None => None,
            Some(Ok(service)) => Some(service),
            Some(Err(code)) => return Ok(code),
        };
        // A stop that was asked for while the service started comes before the program.
        let program = program.filter(|_| !self.requests.is_requested());
        let child = match program.map(|line| self.start_program(line)) {
            None => None,
            Some(Ok(child)) => Some(child),
            Some(Err(code)) => {
                self.stop().rest(service.as_mut(), None)?;
                return Ok(code);
            }
        };
        let code = match first_end(self.requests, service.as_mut(), child.as_ref())? {
            First::Program(code) => {
                let number = u64::from(code);
                let text = format_args!("the program ended with exit code {number}");
                self.log.info("ended", &[("exit_code", number)], text);
                self.stop().rest(service.as_mut(), None)?;
                code
            }
            First::Service(code) => {
                let number = u64::from(code);
                let text = format_args!("the service stopped by itself with exit code {number}");
                self.log.warning("service_ended", text);
                code
            }
            First::Request => self.end_as_requested(service.as_mut(), child.as_ref())?,
        };
        if let Some(child) = &child {
            self.end_leftovers(child, code);
        }
        Ok(code)
    }

    fn stop(&self) -> Stop<'_> {
        Stop {
            log: self.log,
            settings: self.settings,
            was_ctrl_c: self.requests.was_ctrl_c(),
            deadline: Deadline::after(self.stop_time),
        }
    }

    fn end_as_requested(
        &self,
        service: Option<&mut Service>,
        child: Option<&Child>,
    ) -> Result<u32> {
        let stop = self.stop();
        let (kind, left) = (self.requests.kind(), Seconds(self.stop_time));
        self.log.info(
            "stop",
            &[("stop_time_ms", milliseconds(self.stop_time))],
            format_args!("asked to stop ({kind}), {left} s left"),
        );
        if !stop.all(service, child)? {
            return Ok(ENDED_AT_DEADLINE);
        }
        let code = child.map_or(Ok(0), Child::exit_code)?;
        let number = u64::from(code);
        let text = format_args!("stopped in time, exit code {number}");
        self.log.info("ended", &[("exit_code", number)], text);
        Ok(code)
    }

    /// Starts the service and waits until it runs, unless a stop is requested meanwhile.
    fn start_service(&self, name: &[u16]) -> core::result::Result<Service, u32> {
        let started = Service::open(name).and_then(|mut service| {
            let state = self.start_and_wait(&mut service)?;
            Ok((service, state))
        });
        let reason = match started {
            Ok((service, State::Starting)) => return Ok(service),
            Ok((service, State::Running | State::Stopping)) => {
                let text = format_args!("the service {} is running", lossy(name));
                self.log.info("service_started", &[], text);
                return Ok(service);
            }
            Ok((_, State::Stopped { exit_code })) => {
                format!("it stopped with exit code {}", u64::from(exit_code))
            }
            Err(error) => error.to_string(),
        };
        let text = format_args!("cannot start the service {}: {reason}", lossy(name));
        self.log.error("not_started", &[], text);
        Err(NOT_STARTED)
    }

    fn start_and_wait(&self, service: &mut Service) -> Result<State> {
        service.start()?;
        loop {
            let state = service.state()?;
            let handles = [self.requests.requested(), service.changed()];
            if state != State::Starting || wait(&handles, Deadline::NEVER)? == Some(0) {
                return Ok(state);
            }
            service.heard();
        }
    }

    /// Starts the program, or tells why not and with which exit code the shim ends.
    fn start_program(&self, command_line: &[u16]) -> core::result::Result<Child, u32> {
        let name = program_name(command_line);
        // CTRL_C reaches only programs of the shim's own group.
        let own_group = self.settings.stop_signal != StopSignal::CtrlC;
        match Child::start(command_line, own_group, self.job()) {
            Ok(child) => {
                let (pid, limit) = (u64::from(child.id()), Seconds(self.stop_time));
                self.log.info(
                    "started",
                    &[("pid", pid), ("stop_time_ms", milliseconds(self.stop_time))],
                    format_args!("started {name} (process {pid}), stop time {limit} s"),
                );
                Ok(child)
            }
            Err(error) => {
                self.log.error(
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

    /// The job that holds what the program leaves behind, where that is to be ended.
    fn job(&self) -> Option<Job> {
        if !self.settings.kill_tree {
            return None;
        }
        Job::new()
            .inspect_err(|error| {
                let text = format_args!("what the program leaves behind will stay: {error}");
                self.log.warning("no_job", text);
            })
            .ok()
    }

    /// Ends what a program that has ended left behind, where that is wanted.
    fn end_leftovers(&self, child: &Child, exit_code: u32) {
        if let Some(left @ 1..) = child.left_behind() {
            let text = format_args!("ending what the program left behind (processes: {left})");
            self.log.info("kill_tree", &[("processes", left)], text);
        }
        child.kill(exit_code);
    }
}

/// What happened first.
enum First {
    Program(u32),
    Service(u32),
    Request,
}

/// Waits for the end of the program, or of the service where there is no program. With one, the
/// service may stop and start again: `ServiceMonitor` does that to hand over the environment.
fn first_end(
    requests: &StopRequests,
    service: Option<&mut Service>,
    child: Option<&Child>,
) -> Result<First> {
    match (child, service) {
        (Some(child), _) => {
            match wait(&[child.process(), requests.requested()], Deadline::NEVER)? {
                Some(0) => child.exit_code().map(First::Program),
                _ => Ok(First::Request),
            }
        }
        (None, Some(service)) => loop {
            if let State::Stopped { exit_code } = service.state()? {
                return Ok(First::Service(exit_code));
            }
            match wait(&[requests.requested(), service.changed()], Deadline::NEVER)? {
                Some(0) => return Ok(First::Request),
                _ => service.heard(),
            }
        },
        (None, None) => Ok(First::Request),
    }
}
