//! Lines that a backslash joins, and numbers of lines.

use super::*;

#[test]
fn a_path_that_ends_in_a_backslash_swallows_the_next_line() {
    let rule = "trailing-backslash";
    let table = r#"
        COPY site C:\inetpub\wwwroot\¶RUN echo x => COPY site C:/inetpub/wwwroot/
        WORKDIR C:\¶¶RUN echo x => WORKDIR C:/
        ENV DATA C:\data\¶RUN echo x => ENV DATA C:\\data\\
        RUN dir C:\\data\¶RUN echo x => RUN dir "C:\\data\\"
        RUN dir C:\data\ => RUN dir "C:\data\\"
    "#;
    for (text, fixed) in cases(table) {
        assert_eq!(fix(Cmd, rule, &text), fixed);
    }
    assert_eq!(
        fix(PowerShell, rule, "RUN Get-Item C:\\data\\\nRUN x"),
        "RUN Get-Item 'C:\\data\\'"
    );
    let source = format!("{PINNED}COPY a c:\\\nRUN del c:\\tmp\\\nCMD cmd\n");
    let options = LintOptions::default();
    let (written, _) = fixed(&source, &options, FixSelection::Safe, &|_| true);
    let expected = format!("{PINNED}COPY a c:/\nRUN del \"c:\\tmp\\\\\"\nCMD cmd\n");
    assert_eq!(written, expected);
}

#[test]
fn lines_that_are_joined_on_purpose_are_left_alone() {
    for text in [
        "RUN echo a && \\\n    echo b",
        "RUN echo a&&\\\n echo b",
        "RUN echo a \\\n# a comment\n\n    b",
        "RUN C:\\tool\\x.exe\\\n  /q",
        "COPY site C:\\\\site\\\\\nRUN echo x",
    ] {
        clean(Cmd, text);
    }
    let backtick = format!("# escape=`\n{PINNED}COPY site C:\\site\\\nRUN echo `\n  x\n");
    assert_eq!(found(&backtick), [""; 0]);
}

#[test]
fn lines_are_counted_as_the_author_sees_them() {
    let source = "\u{feff}# a comment\r\n\r\nFROM mcr.microsoft.com/windows/servercore:10.0.17763.973\r\n\
        RUN echo a && `\r\n    echo b\r\nRUN echo \\\r\n  # in between\r\n\r\n  && reg delete HKLM\\x\r\n\
        COPY <<EOF C:/x\r\nRUN reg delete HKLM\\x\r\nEOF\r\nRUN reg delete HKLM\\y\r\n";
    assert_eq!(
        found(source),
        [
            // The escape character is not the backtick.
            "5 invalid-instruction", "9 reg-add-force", "10 requires-buildkit",
            "10 eaten-backslash", "13 reg-add-force"
        ]
    );
}

#[test]
fn a_path_without_its_backslashes_is_reported_once() {
    for line in ["WORKDIR C:\\app\\bin", "VOLUME C:\\data"] {
        let rules = rules_under(Cmd, &format!("{line}\n"));
        assert_eq!(rules, ["eaten-backslash"], "{line}");
    }
}
