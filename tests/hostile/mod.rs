//! Hostile environments, in rounds: a registry that misbehaves, a network that breaks, kills at any
//! moment, poisoned inputs. `tests/hostile/run 100` runs a hundred of each, the tests a few. A
//! round is derived from its seed, so that a failed one can be repeated alone.

mod inputs;
mod kills;
mod network;
mod registry;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Time limit of a command, generous for the slowest machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs the rounds of a program, `few` by default, and prints their number and a count of their
/// results.
pub(crate) fn rounds(name: &str, few: u64, round: impl Fn(&mut Dice) -> &'static str) {
    let number = |variable: &str, default| {
        let text = std::env::var(variable).ok();
        text.map_or(default, |text| text.parse().unwrap())
    };
    let first = number("WINCIMG_HOSTILE_SEED", 1);
    let count = number("WINCIMG_HOSTILE_ROUNDS", few);
    let started = Instant::now();
    let mut outcomes = std::collections::BTreeMap::<&str, u64>::new();
    for seed in first..first + count {
        let played = catch_unwind(AssertUnwindSafe(|| round(&mut Dice::new(seed))));
        match played {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(panic) => {
                eprintln!("{name}: alone again with: tests/hostile/run 1 {seed} {name}");
                resume_unwind(panic);
            }
        }
    }
    let outcomes: Vec<String> = outcomes
        .iter()
        .map(|(outcome, count)| format!("{count} {outcome}"))
        .collect();
    // Only for manual runs.
    if count > few {
        let (outcomes, seconds) = (outcomes.join(", "), started.elapsed().as_secs_f32());
        eprintln!("{name}: {count} rounds in {seconds:.1} s: {outcomes}");
    }
}

/// Deterministic random numbers from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Spreads neighbouring seeds.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % end
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// True with a probability of one in `cases`.
    pub(crate) fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }
}

/// Runs a command, which may fail, but not hang, panic, exit with an undocumented code, or print
/// control sequences to the terminal.
pub(crate) fn run_and_check(command: Command) -> Output {
    let shown = format!("{command:?}");
    let started = Instant::now();
    let mut command = assert_cmd::Command::from(command);
    let output = command.timeout(TIMEOUT).output().unwrap();
    assert!(started.elapsed() < TIMEOUT, "it hung: {shown}");
    let printed = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let printed = printed.concat();
    let code = output.status.code();
    assert!(
        code.is_some_and(|code| (0..=3).contains(&code)),
        "it ended with {:?}: {shown}\n{printed}",
        output.status
    );
    assert!(!printed.contains("panicked"), "{shown}\n{printed}");
    let moves = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!printed.contains(moves), "{shown}\n{printed:?}");
    output
}

/// Result of a command, in one word.
pub(crate) fn outcome(output: &Output) -> &'static str {
    match output.status.code() {
        Some(0) => "done",
        Some(1) => "answered no",
        Some(2) => "refused",
        _ => "failed",
    }
}
