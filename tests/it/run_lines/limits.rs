//! Limits, and what a base does not have.

use super::{BASE, Bench, files_of};

#[test(multi_thread)]
async fn files_of_a_build_do_not_replace_folders_of_the_base() {
    // Neither base is indexed before.
    let bench = Bench::new().await;
    let layers = bench.layers("COPY a.txt C:/inetpub/app");
    let copied = files_of(&layers[0]);
    assert_eq!(copied["Files/inetpub/app/a.txt"], b"a.txt");
    assert!(!copied.contains_key("Files/inetpub/app"), "{copied:?}");
    for (line, problem) in [
        ("RUN Set-Content C:\\inetpub x", "folder"),
        (
            "RUN [IO.File]::WriteAllText('C:\\inetpub', 'x')",
            r"C:\inetpub is a folder, which a file cannot replace",
        ),
        (
            "RUN New-Item -ItemType Directory -Force C:\\inetpub\\app\\Config.txt",
            "Config.txt",
        ),
        (
            "RUN [IO.Directory]::CreateDirectory('C:\\inetpub\\app\\Config.txt')",
            r"C:\inetpub\app\Config.txt is a file, which a folder cannot replace",
        ),
    ] {
        let bench = Bench::new().await;
        let shell = "SHELL [\"powershell\", \"-Command\"]\n";
        let failure = bench.refused(&format!("{shell}{line}"));
        failure.is("dockerfile/fails", &[problem]);
    }
}

#[test(multi_thread)]
async fn windows_powershell_fails_on_a_nano_server_without_it() {
    let bench = Bench::without_programs().await;
    let lines = "SHELL [\"powershell\", \"-Command\"]\nRUN mkdir C:\\x";
    bench
        .refused(lines)
        .is("dockerfile/fails", &["the image has no powershell"]);
}

/// A file of 17 bytes, and a line that doubles it.
const SEVENTEEN: &str = "RUN echo 0123456789abcde> C:\\a\nWORKDIR C:/\n";
const DOUBLED: &str = "RUN copy /b a+a b && move /y b a\n";

#[test(multi_thread)]
async fn lines_that_double_a_file_end_at_a_limit() {
    let bench = Bench::new().await;
    let content = r"the content of C:\a is unknown";
    bench
        .refused(&(SEVENTEEN.to_owned() + &DOUBLED.repeat(27)))
        .is("dockerfile/not-known", &[content])
        .on_line(21);
    let sources = ["a"; 30].join("+");
    let joined = (1..20).map(|number| format!("RUN copy /b {sources} c{number}\n"));
    let lines: String = [SEVENTEEN.to_owned(), DOUBLED.repeat(15)]
        .into_iter()
        .chain(joined)
        .collect();
    let written = "the RUN lines write more than 256 MiB";
    bench
        .refused(&lines)
        .is("dockerfile/not-understood", &[written]);
}

#[test(multi_thread)]
async fn entries_count_against_the_limit_of_what_lines_write() {
    let bench = Bench::new().await;
    // Less than half a MiB is left after these, which is 936 entries.
    let joined = |sources: usize, target: usize| {
        let sources = vec!["a"; sources].join("+");
        format!("RUN copy /b {sources} c{target}\n")
    };
    let full: String = [SEVENTEEN.to_owned(), DOUBLED.repeat(15)]
        .into_iter()
        .chain((0..15).map(|target| joined(30, target)))
        .chain([joined(29, 15)])
        .collect();
    let files = |count: u32| {
        let pair = "(echo x> C:\\t\\a%i& echo x> C:\\t\\b%i)";
        let line = format!("RUN for /l %i in (1,1,{}) do @{pair}\n", count / 2);
        full.clone() + "RUN mkdir C:\\t\n" + &line
    };
    let copied = ["u", "v", "w"].map(|to| format!("COPY --from=0 C:/t C:/{to}\n"));
    for (lines, line) in [
        (files(2000), 37),
        (files(600) + "RUN xcopy /e /i /q C:\\t C:\\u", 38),
        (
            files(300) + &format!("FROM {BASE}\n") + &copied.concat(),
            41,
        ),
    ] {
        let failure = bench.refused(&lines).on_line(line);
        failure.names(&["half a million files and folders"]);
    }
}
