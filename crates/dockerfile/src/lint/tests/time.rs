//! Files with many lines, and lines with many words, take time in proportion.

use std::time::Duration;

use super::*;

#[test]
fn many_stages_take_no_longer_than_few() {
    let time = |count: usize| {
        let stages: Vec<String> = (0..count)
            .map(|i| format!("FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS s{i}"))
            .collect();
        let source = stages.join("\n");
        let start = std::time::Instant::now();
        assert_eq!(lint(&source), []);
        start.elapsed()
    };
    // Ten times as long for ten times as many; a quadratic reader takes a hundred times.
    is_linear(|| (time(800), time(8_000)));
}

#[test]
fn what_stages_take_over_from_each_other_takes_no_longer_in_a_long_row() {
    let row = |count: usize, branch: bool| -> String {
        let stages = (1..=count).map(|i| {
            let base = if branch { 0 } else { i - 1 };
            format!(
                "FROM s{base} AS s{i}\nRUN reg add HKLM\\SOFTWARE\\x /v a{i} /d 1\nCOPY x{i} .\n"
            )
        });
        let first = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973 AS s0\n";
        let values = (0..count).map(|i| format!("RUN reg add HKLM\\SOFTWARE\\y /v b{i} /d 1\n"));
        [first.to_owned()]
            .into_iter()
            .chain(values)
            .chain(stages)
            .collect()
    };
    for branch in [false, true] {
        let time = |count: usize| {
            let source = row(count, branch);
            let start = std::time::Instant::now();
            assert_eq!(lint(&source), []);
            start.elapsed()
        };
        // Copies for each stage would take a hundred times as long for ten times as many.
        is_linear(|| (time(150), time(1_500)));
    }
}

/// Checks that ten times as much takes no longer than ten times, with a margin: what is quadratic takes
/// a hundred times.
fn takes_linear_time(few: usize, source: impl Fn(usize) -> String) {
    let time = |count: usize| {
        let source = source(count);
        let start = std::time::Instant::now();
        lint(&source);
        start.elapsed()
    };
    // The first run reads the tables.
    time(1);
    is_linear(|| (time(few), time(10 * few)));
}

/// Checks the times of one and ten times as much: on a busy machine one of several measures holds.
fn is_linear(measure: impl Fn() -> (Duration, Duration)) {
    let mut measures = Vec::new();
    for _ in 0..5 {
        let (few, many) = measure();
        if many < few * 40 {
            return;
        }
        measures.push((few, many));
    }
    panic!("{measures:?}");
}

/// Checks it for a file that has lines for each number, below the pinned base.
fn lines_take_linear_time(few: usize, lines: impl Fn(usize) -> String) {
    takes_linear_time(few, |count| {
        let lines: String = (0..count).map(&lines).collect();
        format!("{PINNED}{lines}")
    });
}

/// Checks it for a file whose last line has words for each number.
fn words_take_linear_time(
    few: usize,
    above: &str,
    separator: &str,
    word: impl Fn(usize) -> String,
) {
    takes_linear_time(few, |count| {
        let words: Vec<String> = (0..count).map(&word).collect();
        format!("{PINNED}{above}RUN {}\n", words.join(separator))
    });
}

#[test]
fn variables_take_no_longer_if_there_are_many() {
    lines_take_linear_time(150, |i| {
        format!("ENV A{i}=1\nARG B{i}=$A{i}\nRUN echo %A{i}% %B{i}% %C{i}%\nLABEL c{i}=$B{i}\n")
    });
}

#[test]
fn arguments_without_defaults_take_no_longer_if_there_are_many() {
    lines_take_linear_time(400, |i| format!("ARG A{i} b{i}\n"));
}

#[test]
fn arguments_of_the_container_take_no_longer_if_there_are_many() {
    lines_take_linear_time(150, |i| {
        format!("ENV B{i}=1\nARG A{i}\nHEALTHCHECK CMD %A{i}%\n")
    });
    takes_linear_time(150, |count| {
        let arguments: Vec<String> = (0..count).map(|i| format!("ARG A{i}\n")).collect();
        let arguments = arguments.concat();
        let words: Vec<String> = (0..count).map(|i| format!("$env:A{i}")).collect();
        let words = words.join(" ");
        format!("{PINNED}SHELL [\"powershell\", \"-Command\"]\n{arguments}CMD echo {words}\n")
    });
}

#[test]
fn started_programs_take_no_longer_in_a_long_script() {
    takes_linear_time(150, |count| {
        let installs = "npm i foo; ".repeat(count);
        format!("{PINNED}SHELL [\"powershell\", \"-Command\"]\nRUN {installs}foo\n")
    });
}

#[test]
fn lines_that_do_not_continue_take_no_longer_if_there_are_many() {
    takes_linear_time(150, |count| {
        let inside = format!("RUN a \\\n{}b\n", "# escape=`\n".repeat(count));
        let lines = "RUN a `\n-b\n".repeat(count);
        format!("{PINNED}{lines}{inside}")
    });
}

#[test]
fn users_take_no_longer_if_there_are_many() {
    lines_take_linear_time(400, |i| format!("RUN echo {i}\nUSER user{i}\n"));
    lines_take_linear_time(400, |_| "USER root\n".to_owned());
    takes_linear_time(150, |count| {
        let lines = (0..count).map(|i| format!("RUN mkdir C:\\Windows\\a{i}\n"));
        let user = format!("{PINNED}USER ContainerUser\n");
        iter::once(user).chain(lines).collect()
    });
}

#[test]
fn settings_take_no_longer_in_a_long_row_of_stages() {
    takes_linear_time(150, |count| {
        let first = format!("{} AS s0\n", PINNED.trim());
        let stages = (1..=count).map(|i| {
            let below = i - 1;
            format!("FROM s{below} AS s{i}\nENV A{i}=1\nLABEL a{i}=1\nRUN echo 1\n")
        });
        iter::once(first).chain(stages).collect()
    });
}

#[test]
fn commands_take_no_longer_in_a_long_line() {
    words_take_linear_time(400, "", " && ", |i| format!("ver && echo %A{i}%"));
    words_take_linear_time(400, "", "", |_| "if ( & ".to_owned());
    words_take_linear_time(150, "", " && ", |i| format!("set A{i}=%A{i}%"));
    words_take_linear_time(150, SHELL, "; ", |i| format!("echo '%A{i}%'"));
}

#[test]
fn services_and_folders_take_no_longer_if_there_are_many() {
    lines_take_linear_time(150, |i| format!("RUN net start s{i}\n"));
    lines_take_linear_time(100, |i| format!("RUN curl -o C:\\a{i}\\b http://c\n"));
    lines_take_linear_time(150, |i| format!("VOLUME C:/v{i}\nCOPY a C:/b{i}/\n"));
}

#[test]
fn what_the_whole_file_may_bring_takes_no_longer_if_there_are_many() {
    for line in [
        "RUN curl http://a | tar xz",
        "RUN powershell Remove-Service a",
        "RUN powershell New-Item HKCR:\\a",
        "RUN powershell Remove-Item IIS:\\a",
        "RUN powershell Start-BitsTransfer http://a b",
    ] {
        lines_take_linear_time(250, |_| format!("SHELL [\"cmd\", \"/C\"]\n{line}\n"));
    }
}

#[test]
fn misspelt_stages_take_no_longer_if_there_are_many() {
    let base = PINNED.trim();
    takes_linear_time(100, |count| {
        let stages = (0..count).map(|i| format!("{base} AS stage{i}\nCOPY --from=stagf{i} a b\n"));
        stages.collect()
    });
}

#[test]
fn advice_takes_no_longer_if_there_are_many_lines() {
    takes_linear_time(400, |count| {
        format!("{NANO}{}", "RUN Remove-Item C:/x\n".repeat(count))
    });
}
