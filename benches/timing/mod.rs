//! Times of a function.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long a function is repeated.
const ENOUGH: Duration = Duration::from_secs(3);
const MIN_RUNS: usize = 10;

/// Repeats a function, and prints the median of its times and between which nine tenths of them are.
pub(crate) fn measure<T>(name: &str, mut run: impl FnMut() -> T) {
    black_box(run());
    let mut times = Vec::new();
    let started = Instant::now();
    while times.len() < MIN_RUNS || started.elapsed() < ENOUGH {
        let before = Instant::now();
        black_box(run());
        times.push(before.elapsed());
    }
    times.sort_unstable();
    let at = |twentieths: usize| times[(times.len() - 1) * twentieths / 20];
    #[allow(clippy::print_stdout)]
    {
        println!(
            "{name}: {:.2?} ({:.2?} to {:.2?}, {} runs)",
            at(10),
            at(1),
            at(19),
            times.len()
        );
    }
}
