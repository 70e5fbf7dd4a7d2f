//! Output of the classic builder: the current step, and the lines of its program.

use std::collections::VecDeque;
use std::sync::Arc;

use wincimg_common::progress::{Progress, Task};
use wincimg_common::untrusted::without_passwords;

use super::response::one_line;

/// Number of a step's last lines to keep for its error.
const LINES: usize = 20;
/// Maximum length of a line.
const LINE: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildStep {
    /// Its number, from 1.
    pub(crate) number: usize,
    pub(crate) count: usize,
    /// The instruction, as the daemon shows it.
    pub(crate) instruction: String,
}

pub(super) struct Steps<'a> {
    progress: &'a dyn Progress,
    current: Option<(BuildStep, Arc<dyn Task>)>,
    output: OutputTail,
}

/// The last lines of a step's program.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    lines: VecDeque<String>,
    line: String,
    /// True after a carriage return.
    returned: bool,
}

impl OutputTail {
    /// Takes the next piece of text.
    pub(crate) fn read(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' => self.end_line(),
                '\r' => self.returned = true,
                // Control characters are dropped: a program must not control the user's terminal.
                _ if character.is_control() && character != '\t' => {}
                _ => self.push(character),
            }
        }
    }

    fn push(&mut self, character: char) {
        // Text after a carriage return, as in progress bars, replaces the line.
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        if self.line.len() < LINE {
            self.line.push(character);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.returned = false;
        let line = without_passwords(line.trim_end());
        // The daemon's own lines, about containers and images in between, begin with an arrow.
        let is_own = line.starts_with(" --->") || line.starts_with("Removing intermediate");
        if line.trim().is_empty() || is_own {
            return;
        }
        tracing::debug!("  {line}");
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn into_lines(mut self) -> Vec<String> {
        self.end_line();
        self.lines.into()
    }
}

impl<'a> Steps<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            current: None,
            output: OutputTail::default(),
        }
    }

    /// Takes the next piece of text.
    pub(super) fn read(&mut self, text: &str) {
        // A program may print what looks like a step, but each of the daemon's is one message.
        if let Some(step) = BuildStep::read(text).filter(|step| self.follows(step)) {
            self.finish();
            let (number, count, instruction) = (step.number, step.count, &step.instruction);
            tracing::debug!("step {number}/{count}: {instruction}");
            let label = format!("step {number}/{count} {instruction}");
            let task = self.progress.task(&label, None);
            self.current = Some((step, task));
            return;
        }
        self.output.read(text);
    }

    fn follows(&self, step: &BuildStep) -> bool {
        match &self.current {
            None => step.number == 1,
            Some((current, _)) => step.number == current.number + 1 && step.count == current.count,
        }
    }

    /// Finishes the line of the last step.
    pub(super) fn finish(&mut self) {
        self.output.end_line();
        self.output = OutputTail::default();
        if let Some((_, task)) = self.current.take() {
            task.done("done");
        }
    }

    /// The current step, and its last lines.
    pub(super) fn into_failure(self) -> (Option<BuildStep>, Vec<String>) {
        let step = self.current.map(|(step, _)| step);
        (step, self.output.into_lines())
    }
}

impl BuildStep {
    pub(super) fn base(&self) -> Option<&str> {
        let mut words = self.instruction.split(' ');
        words
            .next()
            .filter(|keyword| keyword.eq_ignore_ascii_case("from"))?;
        words.find(|word| !word.starts_with("--"))
    }

    /// Parses `Step 2/5 : RUN build.cmd`.
    fn read(text: &str) -> Option<Self> {
        let (position, instruction) = text.strip_prefix("Step ")?.split_once(" : ")?;
        let (number, count) = position.split_once('/')?;
        Some(Self {
            number: number.parse().ok()?,
            count: count.parse().ok()?,
            instruction: one_line(instruction),
        })
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;

    use super::*;

    fn read(texts: &[&str]) -> (Option<BuildStep>, Vec<String>) {
        let mut steps = Steps::new(&Silent);
        for text in texts {
            steps.read(text);
        }
        steps.into_failure()
    }

    #[test]
    fn the_step_under_way_and_its_lines_are_known() {
        let (step, output) = read(&[
            "Step 1/2 : FROM base",
            "\n",
            " ---> 1234\n",
            "Step 2/2 : RUN a \\\n  https://bob:SECRET@repo.lan/x",
            "\n",
            " ---> Running in 5678\n",
            "fir",
            "st\r\nfatal: 'https://bob:SECRET@repo.lan/x'\n\nlast",
        ]);
        let step = step.unwrap();
        assert_eq!((step.number, step.count), (2, 2));
        assert_eq!(step.instruction, "RUN a \\ https://***@repo.lan/x");
        assert_eq!(output, ["first", "fatal: 'https://***@repo.lan/x'", "last"]);
    }

    #[test]
    fn a_program_that_prints_a_step_is_not_one() {
        let (step, output) = read(&["Step 1/2 : FROM x", "Step 9/9 : FAKE", "\n"]);
        assert_eq!(step.unwrap().number, 1);
        assert_eq!(output, ["Step 9/9 : FAKE"]);
    }

    #[test]
    fn a_line_that_is_written_over_counts_as_it_ends_and_colours_are_dropped() {
        let (_, output) = read(&[
            "Step 1/1 : RUN x",
            "\n",
            "10%\r55%",
            "\r100%\r\n",
            "\u{1b}[31mred\u{7}\ttab\r\n",
        ]);
        assert_eq!(output, ["100%", "[31mred\ttab"]);
    }

    #[test]
    fn of_much_output_the_end_is_kept_and_of_long_lines_the_beginning() {
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let many = many.join("\n") + "\n";
        let (_, output) = read(&["Step 1/1 : RUN x", &many, &"x".repeat(5000)]);
        assert_eq!(output.len(), LINES);
        assert_eq!(output[LINES - 2], "999");
        assert_eq!(output[LINES - 1].len(), LINE);
    }
}
