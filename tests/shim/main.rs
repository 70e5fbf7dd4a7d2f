//! The checked-in shim, run under wine.
//!
//! Not covered by wine 8; the shim's README explains how to test it on Windows:
//! - `CTRL_SHUTDOWN_EVENT`, `CTRL_CLOSE_EVENT`, and that Windows waits for the handler. A `SIGINT`
//!   to the shim stands for every stop request here; wine turns it into a `CTRL_C_EVENT`.
//! - that a `CTRL_BREAK_EVENT` arrives: wine delivers none. Wine's trace shows that it is sent, and
//!   to which group.
//! - the order of a shutdown: wine's trace shows that the shim asks to be notified first.
//! - images without advapi32 or user32;
//! - log files that are open: wine's folders know their sizes at once, and names of deleted files can be
//!   used again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod commands;
mod executable;
mod harness;
mod logs;
mod services;
mod stops;
mod wincat;

#[macro_use]
extern crate wincimg_testkit;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use wincimg_testkit::harness::{Arguments, Trial, run, tests, trial};
use wincimg_testkit::wine::Wine;

/// Cases that share a wine prefix, which the first of them sets up.
macro_rules! cases {
    ($wine:expr, $($module:ident :: $case:ident),+ $(,)?) => {
        vec![$({
            let wine = Arc::clone($wine);
            let name = concat!(stringify!($module), "::", stringify!($case));
            trial(name, move || {
                let wine = wine.get_or_init(harness::set_up);
                again_if_wine_fails(name, || $module::$case(wine));
            })
        }),+]
    };
}

/// Occasionally, wine 8 hangs when a process exits after its last output, or ends one before it
/// starts. A case that fails this way is tried once more; any other failure, or a second one,
/// counts.
fn again_if_wine_fails(name: &str, case: impl Fn()) {
    let Err(reason) = catch_unwind(AssertUnwindSafe(&case)) else {
        return;
    };
    let text = reason.downcast_ref::<String>();
    let is_wines = text.is_some_and(|text| {
        let mut errors = harness::NOT_BEGUN.iter();
        text.starts_with(harness::HANGS) || errors.any(|error| text.contains(error))
    });
    if !is_wines {
        resume_unwind(reason);
    }
    eprintln!("{name}: wine lost a process; trying again");
    case();
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of the time, they wait.
    arguments.test_threads.get_or_insert(8);
    let mut trials = tests();
    // The last owner stops wine; a static would not.
    trials.extend(cases_under_wine(&Arc::default()));
    run(arguments, trials)
}

fn cases_under_wine(wine: &Arc<OnceLock<Wine>>) -> Vec<Trial> {
    cases![
        wine,
        commands::the_exit_code_of_the_program_is_the_shim_s,
        commands::every_command_line_arrives_unchanged,
        commands::standard_handles_are_the_program_s,
        commands::other_handles_are_not_inherited,
        commands::a_program_that_is_not_there_is_127_with_words,
        commands::a_file_that_is_no_program_is_126,
        commands::wrong_usage_is_125_with_a_hint,
        commands::help_and_version_go_to_standard_output,
        commands::json_messages_are_one_object_a_line,
        commands::quiet_leaves_only_what_is_wrong,
        commands::arguments_of_the_program_stay_out_of_the_log,
        commands::the_stop_time_comes_from_the_pod,
        commands::the_stop_time_comes_from_the_registry,
        stops::a_program_that_is_told_has_its_time_to_clean_up,
        stops::a_program_that_ignores_everything_is_ended_at_the_deadline,
        stops::a_second_request_is_harmless,
        stops::ctrl_break_is_sent_to_the_program_s_own_group,
        stops::ctrl_c_of_the_console_reaches_a_program_that_wants_it,
        stops::ctrl_c_of_the_console_does_not_reach_one_that_wants_ctrl_break,
        stops::a_window_is_told_of_the_end_and_closed,
        stops::a_windowed_program_is_closed_without_being_asked_for,
        stops::a_program_without_a_window_cannot_be_closed_and_is_ended,
        stops::draining_comes_before_telling,
        stops::a_program_that_ends_while_draining_ends_the_drain,
        stops::a_pre_stop_command_that_fails_does_not_matter,
        stops::a_pre_stop_command_that_hangs_is_ended_with_the_program,
        stops::the_environment_wins,
        stops::what_a_program_leaves_is_ended_with_it,
        stops::what_a_program_leaves_stays_where_that_is_wanted,
        stops::what_a_program_started_is_ended_at_the_deadline,
        stops::pause_waits_without_any_work,
        stops::it_asks_to_be_told_of_a_shutdown_first,
        stops::a_running_program_is_waited_for_without_any_work,
        services::a_service_is_started_and_stopped,
        services::a_service_that_ends_by_itself_gives_the_exit_code,
        services::a_service_that_does_not_start_is_127,
        services::a_service_that_is_not_there_is_127,
        services::a_service_that_does_not_stop_is_124,
        services::a_stop_while_the_service_starts_stops_it,
        services::the_service_stops_before_the_program_is_told,
        services::the_end_of_the_program_stops_the_service,
        services::a_service_that_restarts_beside_a_program_is_no_end,
        logs::lines_go_to_standard_output_as_they_are_written,
        logs::a_renamed_log_is_read_to_its_end,
        logs::a_truncated_log_is_read_from_its_beginning,
        logs::each_encoding_becomes_utf_8,
        logs::a_pattern_finds_new_files_and_folders,
        logs::space_that_is_reserved_is_no_line,
        logs::a_line_of_a_megabyte_comes_in_pieces,
        logs::what_is_written_before_the_stop_is_printed,
        logs::the_log_of_a_service_is_complete,
        logs::a_log_monitor_configuration_is_read,
        logs::the_environment_turns_logs_off,
        logs::quiet_logs_cost_little,
        wincat::bytes_go_both_ways_at_the_same_time,
        wincat::the_end_of_the_input_leaves_the_answer,
        wincat::the_last_answer_ends_it_while_the_input_is_open,
        wincat::input_still_goes_on_after_the_last_answer,
        wincat::a_lost_connection_is_1_with_words,
        wincat::a_refused_connection_is_1_with_words,
        wincat::wrong_usage_of_wincat_is_1,
    ]
}
