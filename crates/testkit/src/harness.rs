//! What runs tests instead of libtest: a test that finds what it needs missing is ignored, and the
//! last line of all says how many were, for want of what.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

pub use inventory::submit;
use libtest_mimic::Completion;
pub use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Builder;

/// What `#[test]` makes of a function.
pub struct Test {
    /// Its name behind those of its crate and modules.
    pub path: &'static str,
    pub is_ignored: bool,
    pub run: fn(),
}

inventory::collect!(Test);

/// What ends a test that lacks something.
struct SkippedTest(String);

/// How many tests lacked each thing.
static LACKING: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Runs the tests that this program has, as its arguments say.
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

/// A test in a thread of its name, which is what a panic says.
pub fn trial(name: &str, run: impl FnOnce() + Send + 'static) -> Trial {
    let thread = thread::Builder::new().name(name.to_owned());
    Trial::ignorable_test(name, move || match thread.spawn(run)?.join() {
        Ok(()) => Ok(Completion::Completed),
        Err(panic) => Ok(Completion::ignored_with(lacking(panic))),
    })
}

/// What a test that ended early lacked; goes on with its panic where it has failed.
fn lacking(panic: Box<dyn Any + Send>) -> String {
    let SkippedTest(want) = *panic
        .downcast()
        .unwrap_or_else(|panic| resume_unwind(panic));
    *LACKING.lock().unwrap().entry(want.clone()).or_default() += 1;
    format!("for want of {want}")
}

/// Runs tests and says what they lacked. `WINCIMG_SKIPPED` names a file that collects it from
/// several programs, a line for each test.
pub fn run(mut arguments: Arguments, tests: Vec<Trial>) -> ExitCode {
    let threads = std::env::var("RUST_TEST_THREADS").ok();
    arguments.test_threads = arguments.test_threads.or_else(|| threads?.parse().ok());
    let code = libtest_mimic::run(&arguments, tests).exit_code();
    let lacking = std::mem::take(&mut *LACKING.lock().unwrap());
    if !lacking.is_empty() {
        let counts = lacking
            .iter()
            .map(|(want, count)| format!("{count} for want of {want}"));
        println!("skipped: {}", counts.collect::<Vec<_>>().join(", "));
    }
    if let Some(file) = std::env::var_os("WINCIMG_SKIPPED") {
        let lines = lacking
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

/// Ends the test, which lacks what `tests/run` could install: it is ignored, or fails if
/// `WINCIMG_REQUIRE_ALL=1`.
pub fn skip(want: &str) -> ! {
    let is_required = std::env::var_os("WINCIMG_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!is_required, "missing: {want}");
    skip_always(want)
}

/// Ends the test, unless a release is tested: it holds what changes with every release.
pub fn release_only() {
    if std::env::var_os("WINCIMG_RELEASE").is_none_or(|value| value != "1") {
        skip_always("a release (WINCIMG_RELEASE=1)");
    }
}

/// Ends the test, which lacks what nobody can install: it is ignored.
pub fn skip_always(want: &str) -> ! {
    // No panic hook sees this one.
    resume_unwind(Box::new(SkippedTest(want.to_owned())))
}

/// Runs a test on a runtime of one thread.
pub fn current_thread(test: impl Future<Output = ()>) {
    block_on(Builder::new_current_thread(), test);
}

/// Runs a test on a runtime of as many threads, or as many as there are processors.
pub fn multi_thread(threads: Option<usize>, test: impl Future<Output = ()>) {
    let mut builder = Builder::new_multi_thread();
    threads.map(|threads| builder.worker_threads(threads));
    block_on(builder, test);
}

fn block_on(mut builder: Builder, test: impl Future<Output = ()>) {
    builder.enable_all().build().unwrap().block_on(test);
}
