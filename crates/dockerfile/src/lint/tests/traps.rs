//! Advice that leads into the next error, and lines that only look like an error.

use super::*;

/// The text with all safe corrections, which leave no finding.
fn mended(text: &str) -> String {
    let source = format!("{CORE}{text}\n");
    let options = LintOptions::default();
    let (after, _) = fixed(&source, &options, FixSelection::Safe, &|_| true);
    assert_eq!(lint_with(&after, &options), [], "{after}");
    after[CORE.len()..].trim_end().to_owned()
}

#[test]
fn windows_in_the_name_of_an_image_for_linux_says_nothing() {
    for image in [
        "dockurr/windows",
        "dockcross/windows-static-x64",
        "fyneio/fyne-cross-images:windows",
        "ghcr.io/cross-rs/x86_64-pc-windows-gnu",
    ] {
        let source = format!("FROM {image}\nRUN apt-get update\n");
        assert_eq!(found(&source), [""; 0]);
    }
    for image in [
        "mcr.microsoft.com/windows",
        "team/app:windowsservercore",
        "--platform=windows dockurr/windows",
    ] {
        only(
            &format!("FROM {image}\n"),
            "unix-command",
            "RUN apt-get update",
        );
    }
}

#[test]
fn a_program_that_no_windows_has_is_not_written() {
    let text = "SHELL [\"powershell\", \"-Command\"]\nRUN wget -q https://a.example/a";
    let found = only(CORE, "alias-parameter", text);
    assert_eq!(found.fix, None);
    assert!(found.message.contains(": write curl.exe"), "{found:?}");
}

#[test]
fn a_pair_is_corrected_only_with_all_of_its_instruction() {
    let rule = "spaced-equals";
    for (text, corrected) in [
        ("LABEL a =\"x\" b =\"z\"", None),
        ("LABEL a = \"x\" \\\n  b = \"z\"", None),
        ("LABEL a = \"x y\"", Some("LABEL a=\"x y\"")),
        ("ENV A = 'x y'", Some("ENV A='x y'")),
        ("ENV A = b", Some("ENV A=b")),
    ] {
        let fix = only(CORE, rule, text).fix;
        assert_eq!(fix.as_deref(), corrected, "{text}");
    }
}

#[test]
fn paths_in_arrays_get_slashes_where_the_parser_removes_backslashes() {
    let table = r#"
        COPY ["a.txt", "C:\app\x"] => COPY ["a.txt", "C:/app/x"]
        COPY ["a.txt", "C:\\app\\x"] => COPY ["a.txt", "C:/app/x"]
        COPY ["dir\\a.txt", "C:/x/"] => COPY ["dir/a.txt", "C:/x/"]
        COPY ["a", "C:\new"] => COPY ["a", "C:/new"]
        COPY [a.txt, C:\app] => COPY ["a.txt", "C:/app"]
        VOLUME ["C:\data"] => VOLUME ["C:/data"]
        VOLUME ["C:\\data"] => VOLUME ["C:/data"]
        RUN ["C:\app\setup.exe", "/quiet"] => RUN ["C:\\app\\setup.exe", "/quiet"]
    "#;
    for (text, corrected) in cases(table) {
        assert_eq!(mended(&text), corrected, "{text}");
    }
    let message = only(CORE, "eaten-backslash", r#"VOLUME ["C:\\data"]"#).message;
    assert!(message.contains("write /, or begin"), "{message}");
    let right = format!("# escape=`\n{CORE}COPY [\"a.txt\", \"C:\\\\app\\\\x\"]\n");
    assert_eq!(lint(&right), []);
}

#[test]
fn quotes_and_dashes_of_word_processors_are_named() {
    let rule = "invalid-json";
    let table = r#"
        ENTRYPOINT [“C:/app.exe”, “-x”] => ENTRYPOINT ["C:/app.exe", "-x"]
        ENTRYPOINT ["C:/app.exe", “-x”] => ENTRYPOINT ["C:/app.exe", "-x"]
        CMD [“C:\\app.exe”] => CMD ["C:\\app.exe"]
        CMD [“C:\app.exe”] => CMD ["C:\\app.exe"]
        RUN [“cmd”, “/c”, “ver”] => RUN ["cmd", "/c", "ver"]
        COPY [“a”, “C:\app”] => COPY ["a", "C:/app"]
    "#;
    for (text, corrected) in cases(table) {
        let finding = only(CORE, rule, &text);
        assert_eq!(finding.fix.as_deref(), Some(corrected), "{text}");
        assert!(finding.message.contains("typographic"), "{text}");
        assert_eq!(finding.severity, Severity::Error);
    }
    let dash = only(CORE, "prompt", "RUN choco install git –y");
    assert_eq!(dash.fix, None);
    assert!(dash.message.contains("in place of the dash"));
}

#[test]
fn the_release_of_a_misspelt_tag_is_that_of_its_year_or_build() {
    for (tag, meant) in [
        ("ltsc-2022", Some("ltsc2022")),
        ("ltsc-2019", Some("ltsc2019")),
        ("ltsc-2016-amd64", Some("ltsc2016")),
        ("ltsc22", Some("ltsc2022")),
        ("2022", Some("ltsc2022")),
        ("20348", Some("ltsc2022")),
        ("17763.973", Some("ltsc2019")),
        ("ltsc202", None),
        ("2010", None),
    ] {
        let from = format!("FROM mcr.microsoft.com/windows/servercore:{tag}");
        let message = only("", "unknown-tag", &from).message;
        let said = message.split_once("; did you mean ").map(|(_, said)| said);
        let meant = meant.map(|meant| format!("{meant}?"));
        assert_eq!(said, meant.as_deref(), "{message}");
    }
}

#[test]
fn the_exec_form_is_no_advice_for_what_only_cmd_runs() {
    let rule = "quotes-in-nested-shell";
    let pipe = r#"HEALTHCHECK CMD tasklist | find "tool.exe" || exit 1"#;
    let array = r#"HEALTHCHECK CMD ["cmd", "/S", "/C", "tasklist | find \"tool.exe\" || exit 1"]"#;
    for text in [pipe, array] {
        let finding = only(CORE, rule, text);
        assert!(finding.message.contains("findstr"), "{}", finding.message);
        assert_eq!(finding.fix, None);
    }
    let script = r#"HEALTHCHECK CMD powershell -Command "exit 1" || exit 1"#;
    let message = only(CORE, rule, script).message;
    assert!(message.contains("use the exec form"), "{message}");
}

#[test]
fn advice_names_the_powershell_that_the_base_has() {
    let sdk = "FROM mcr.microsoft.com/dotnet/sdk:8.0-nanoserver-ltsc2022\n";
    for (rule, text, powershell, pwsh) in [
        (
            "cmdlet-under-cmd",
            "RUN Remove-Item C:/x",
            "SHELL [\"powershell\", \"-Command\"]",
            "SHELL [\"pwsh\", \"-Command\"]",
        ),
        (
            "cmdlet-under-cmd",
            "RUN C:/a.ps1",
            "write powershell -File C:/a.ps1",
            "write pwsh -File C:/a.ps1",
        ),
        (
            "cmdlet-under-cmd", "RUN &\"./a.ps1\"", "write powershell -File", "write pwsh -File",
        ),
        (
            "exec-form-program",
            "CMD [\"a.ps1\"]",
            "\"powershell\", \"-File\"",
            "\"pwsh\", \"-File\"",
        ),
    ] {
        let message = |base| only(base, rule, text).message;
        assert!(message(CORE).contains(powershell), "{}", message(CORE));
        assert!(message(sdk).contains(pwsh), "{}", message(sdk));
        let without = message(NANO);
        let is_plain = !without.contains("-File") && !without.contains("SHELL");
        assert!(without.contains("Server Core") && is_plain, "{without}");
    }
    let untagged = "FROM mcr.microsoft.com/windows/nanoserver\n";
    let found = of_rule(untagged, "cmdlet-under-cmd", "RUN Remove-Item C:/x");
    assert!(found[0].message.contains("Server Core"), "{found:?}");
    let rule = "nano-server-lacks";
    let message = |base| only(base, rule, "RUN powershell C:/a.ps1").message;
    assert!(message(sdk).contains("write pwsh"));
    assert!(message(NANO).contains("Server Core"));
}

#[test]
fn a_package_that_asks_for_a_restart_is_installed() {
    let base = format!("{CORE}{SHELL}");
    let message = |text| only(&base, "lost-exit-code", text).message;
    let choco = message("RUN choco install -y dotnetfx; Remove-Item C:/x");
    assert!(choco.contains("-notin 0, 1641, 3010"), "{choco}");
    let npm = message("RUN npm ci; Remove-Item C:/x");
    assert!(npm.contains("if ($LASTEXITCODE)"), "{npm}");
}

#[test]
fn an_argument_that_a_stage_takes_over_keeps_its_value() {
    let base = "ARG V=ltsc2019\nFROM mcr.microsoft.com/windows/servercore:$V\n";
    let fix = |text| only(base, "floating-base", text).fix;
    assert_eq!(fix("ARG V\nCOPY app-$V.exe C:/"), None);
    let own = fix("ARG V=1\nCOPY app-$V.exe C:/").unwrap();
    assert!(own.starts_with("ARG V=10.0.17763."), "{own}");
}

#[test]
fn a_mistake_is_reported_once_and_in_its_own_words() {
    let message = only(CORE, "failing-run", "RUN setx A=b /M").message;
    assert!(
        message.ends_with("found A=b: write a space for ="),
        "{message}"
    );
    for (text, rule) in [
        ("VOLUME C:", "invalid-instruction"),
        ("CMD [ C:/a.exe, --x ]", "invalid-json"),
    ] {
        let found = found(&format!("{CORE}{text}\n"));
        assert_eq!(found, [format!("2 {rule}")], "{text}");
    }
}
