//! Runs tests instead of libtest: a test with a missing requirement is ignored, and the last line
//! of the output counts them by requirement.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

pub use inventory::submit;
use libtest_mimic::Completion;
pub use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Builder;

/// The expansion of `#[test]` on a function.
pub struct Test {
    /// Its path within the crate.
    pub path: &'static str,
    pub is_ignored: bool,
    pub run: fn(),
}

inventory::collect!(Test);

/// Panic payload of a skipped test.
struct SkippedTest(String);

/// Number of tests by missing requirement.
static MISSING: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Runs the tests of this program according to its arguments.
pub fn main() -> ExitCode {
    run(Arguments::from_args(), tests())
}

/// Every `#[test]` of this program.
pub fn tests() -> Vec<Trial> {
    let mut tests: Vec<&Test> = inventory::iter().collect();
    tests.sort_by_key(|test| test.path);
    let trials = tests.into_iter().map(|test| {
        let (_, name) = test.path.split_once("::").unwrap();
        trial(name, test.run).with_ignored_flag(test.is_ignored)
    });
    trials.collect()
}

/// Runs a test in a thread with its name, which panics print.
pub fn trial(name: &str, run: impl FnOnce() + Send + 'static) -> Trial {
    let thread = thread::Builder::new().name(name.to_owned());
    Trial::ignorable_test(name, move || match thread.spawn(run)?.join() {
        Ok(()) => Ok(Completion::Completed),
        Err(panic) => Ok(Completion::ignored_with(missing_requirement(panic))),
    })
}

/// The missing requirement of a test that ended early; other panics are resumed.
fn missing_requirement(panic: Box<dyn Any + Send>) -> String {
    let SkippedTest(want) = *panic
        .downcast()
        .unwrap_or_else(|panic| resume_unwind(panic));
    *MISSING.lock().unwrap().entry(want.clone()).or_default() += 1;
    format!("requires {want}")
}

/// Runs tests and prints the missing requirements. `WINCIMG_SKIPPED` names a file that collects
/// them from several programs, a line for each test.
pub fn run(mut arguments: Arguments, tests: Vec<Trial>) -> ExitCode {
    let threads = std::env::var("RUST_TEST_THREADS").ok();
    arguments.test_threads = arguments.test_threads.or_else(|| threads?.parse().ok());
    let code = libtest_mimic::run(&arguments, tests).exit_code();
    let missing = std::mem::take(&mut *MISSING.lock().unwrap());
    if !missing.is_empty() {
        let counts = missing
            .iter()
            .map(|(want, count)| format!("{count} (requires {want})"));
        println!("skipped: {}", counts.collect::<Vec<_>>().join(", "));
    }
    if let Some(file) = std::env::var_os("WINCIMG_SKIPPED") {
        let lines = missing
            .iter()
            .map(|(want, count)| format!("{want}\n").repeat(*count));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        file.write_all(lines.collect::<String>().as_bytes())
            .unwrap();
    }
    code
}

/// Ends the test because a requirement that `tests/run` could install is missing: it is ignored, or
/// fails if `WINCIMG_REQUIRE_ALL=1`.
pub fn skip(want: &str) -> ! {
    let is_required = std::env::var_os("WINCIMG_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!is_required, "missing: {want}");
    skip_always(want)
}

/// Ends the test, unless a release is tested: its expectations change with every release.
pub fn release_only() {
    only_on_request("WINCIMG_RELEASE", "a release");
}

/// Ends the test, unless this variable is 1.
pub fn only_on_request(variable: &str, want: &str) {
    if std::env::var_os(variable).is_none_or(|value| value != "1") {
        skip_always(&format!("{want} ({variable}=1)"));
    }
}

/// Ends the test because a requirement that cannot be installed is missing: it is ignored.
pub fn skip_always(want: &str) -> ! {
    // No panic hook is called for this one.
    resume_unwind(Box::new(SkippedTest(want.to_owned())))
}

/// Runs a test on a single-threaded runtime.
pub fn current_thread(test: impl Future<Output = ()>) {
    block_on(Builder::new_current_thread(), Box::pin(test));
}

/// Runs a test on a runtime with this number of threads, by default one for each processor.
pub fn multi_thread(threads: Option<usize>, test: impl Future<Output = ()>) {
    let mut builder = Builder::new_multi_thread();
    threads.map(|threads| builder.worker_threads(threads));
    block_on(builder, Box::pin(test));
}

/// In a box: tokio's runtime would be compiled once for each of hundreds of tests.
fn block_on(mut builder: Builder, test: Pin<Box<dyn Future<Output = ()> + '_>>) {
    builder.enable_all().build().unwrap().block_on(test);
}
