//! Poisoned texts: labels, names, titles and messages with control sequences for terminals and CI
//! systems, through every command that prints them.

use super::{Dice, rounds};
use crate::foreign_text::through_every_command;

/// Control sequences of terminals and logs.
const PARTS: [&str; 24] = [
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}P1$r\u{1b}\\",
    "\u{1b}(0",
    "\u{9b}31m",
    "\u{9d}52;c;eA==\u{9c}",
    "\u{7}",
    "\u{8}\u{8}\u{8}",
    "\u{c}",
    "\u{7f}",
    "\u{85}",
    "\r",
    "\n",
    "\r\n::error::forged",
    "\n  ::stop-commands::x",
    "\n##[error]forged",
    "##vso[task.setvariable variable=x]y",
    "\u{2028}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "plain",
    " ",
    "ä漢",
];

#[test]
fn texts() {
    // One runs a hundred commands, and the test of foreign text another hundred.
    rounds("texts", 1, |dice| {
        // The fixed text of the test of foreign text begins with a command of a CI system.
        through_every_command(&format!("\u{1b}[2J{}", text(dice)));
        "printed harmlessly"
    });
}

fn text(dice: &mut Dice) -> String {
    let parts = 1 + dice.below(12);
    (0..parts).map(|_| *dice.one_of(&PARTS)).collect()
}
