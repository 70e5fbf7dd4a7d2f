//! Stopping what runs: in order, within one time.

use alloc::vec::Vec;

use super::child::{Child, program_name};
use super::error::Result;
use super::handle::{Deadline, milliseconds, wait};
use super::job::Job;
use super::log::Log;
use super::service::Service;
use super::{console, window};
use crate::args::{Settings, StopSignal};
use crate::limit::Seconds;

/// Something had to be ended because the stop time was up.
pub(super) const ENDED_AT_DEADLINE: u32 = 124;

/// What runs, and how it is to be stopped.
pub(super) struct Stop<'a> {
    pub(super) log: Log,
    pub(super) settings: &'a Settings,
    /// Whether the request was a `CTRL_C`, which the console sends to everything on it.
    pub(super) was_ctrl_c: bool,
    pub(super) deadline: Deadline,
}

impl Stop<'_> {
    /// Runs the pre-stop command, waits for the drain time, stops the service and then the
    /// program. False when something was still running at the deadline.
    pub(super) fn all(&self, service: Option<&mut Service>, child: Option<&Child>) -> Result<bool> {
        if let Some(command) = &self.settings.pre_stop {
            self.run_pre_stop(command);
        }
        let program_is_all = service.is_none();
        self.drain(child.filter(|_| program_is_all))?;
        self.rest(service, child)
    }

    /// Stops the service and then the program, at once. False when something was still running at
    /// the deadline.
    pub(super) fn rest(
        &self,
        service: Option<&mut Service>,
        child: Option<&Child>,
    ) -> Result<bool> {
        let service_stopped = service.is_none_or(|service| self.stop_service(service));
        let child_stopped = match child {
            Some(child) => self.stop_child(child)?,
            None => true,
        };
        Ok(service_stopped && child_stopped)
    }

    /// A pre-stop command that fails does not keep the rest from stopping.
    fn run_pre_stop(&self, command: &[u16]) {
        let name = program_name(command);
        self.log
            .info("pre_stop", &[], format_args!("running {name}"));
        let ended = Job::new()
            .and_then(|job| Child::start(command, true, Some(job)))
            .and_then(|child| {
                let in_time = wait(&[child.process()], self.deadline)?.is_some();
                if in_time {
                    child.exit_code().map(Some)
                } else {
                    child.kill(ENDED_AT_DEADLINE);
                    Ok(None)
                }
            });
        match ended {
            Ok(Some(0)) => {}
            Ok(Some(code)) => self.log.warning(
                "pre_stop_failed",
                format_args!("{name} ended with exit code {}", u64::from(code)),
            ),
            Ok(None) => self.log.warning(
                "pre_stop_failed",
                format_args!("{name} took all the time and was ended"),
            ),
            Err(error) => self.log.warning(
                "pre_stop_failed",
                format_args!("cannot run {name}: {error}"),
            ),
        }
    }

    /// Waits for the drain time; the end of the program, where that is all there is, ends it.
    fn drain(&self, child: Option<&Child>) -> Result<()> {
        let time = self.settings.drain;
        if time.is_zero() {
            return Ok(());
        }
        self.log.info(
            "drain",
            &[("drain_ms", milliseconds(time))],
            format_args!("waiting {} s before stopping", Seconds(time)),
        );
        let until = Deadline::after(time).earlier(self.deadline);
        let program: Vec<_> = child.map(Child::process).into_iter().collect();
        wait(&program, until)?;
        Ok(())
    }

    fn stop_service(&self, service: &mut Service) -> bool {
        self.log
            .info("stop_service", &[], format_args!("stopping the service"));
        match service.stop(self.deadline) {
            Ok(true) => true,
            Ok(false) => {
                self.log.error(
                    "deadline",
                    &[],
                    format_args!("the service did not stop within the stop time"),
                );
                false
            }
            Err(error) => {
                self.log.warning(
                    "stop_service_failed",
                    format_args!("cannot stop the service: {error}"),
                );
                true
            }
        }
    }

    fn stop_child(&self, child: &Child) -> Result<bool> {
        let ended = wait(&[child.process()], Deadline::now())?.is_some();
        if !ended && !self.deadline.is_past() {
            self.tell(child);
        }
        if ended || wait(&[child.process()], self.deadline)?.is_some() {
            return Ok(true);
        }
        self.log.error(
            "deadline",
            &[("pid", child.id().into())],
            format_args!("the program did not end within the stop time; ending it"),
        );
        child.kill(ENDED_AT_DEADLINE);
        Ok(false)
    }

    /// Tells the program to stop. Where that cannot be done it is given its time all the same: it
    /// may have been told by other ways.
    fn tell(&self, child: &Child) {
        let signal = self.settings.stop_signal;
        let told = match signal {
            StopSignal::None => return,
            StopSignal::Close => return self.close_windows(child),
            // No console, no console events.
            _ if child.is_gui() => return self.close_windows(child),
            StopSignal::CtrlBreak => console::send_ctrl_break(child.id()),
            // Everything on the console has had it already.
            StopSignal::CtrlC if self.was_ctrl_c => Ok(()),
            StopSignal::CtrlC => console::send_ctrl_c(),
        };
        if let Err(error) = told {
            self.log.warning(
                "signal_failed",
                format_args!("cannot send {} to the program: {error}", signal.as_str()),
            );
        }
    }

    fn close_windows(&self, child: &Child) {
        let left = self.deadline.remaining().unwrap_or_default();
        match window::close_windows(&child.process_ids(), left) {
            Ok(0) => self.log.warning(
                "signal_failed",
                format_args!("the program has no window that could be asked to close"),
            ),
            Ok(_) => {}
            Err(error) => self.log.warning(
                "signal_failed",
                format_args!("this image has no windows to close (user32.dll): {error}"),
            ),
        }
    }
}
