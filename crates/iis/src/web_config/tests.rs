use proptest::prelude::*;

use super::EMPTY;
use crate::IisSettings;
use crate::config::{DecodedText, EditError, XmlDocument};

/// The settings in a `web.config`, if that changes it.
fn merge(existing: Option<&[u8]>, settings: &IisSettings) -> Result<Option<Vec<u8>>, EditError> {
    super::merge(existing, &settings.site_edits())
}

fn settings(extensions: &[&str], mime_types: &[(&str, &str)]) -> IisSettings {
    IisSettings {
        site: "Default Web Site".parse().unwrap(),
        path: r"C:\inetpub\wwwroot".parse().ok(),
        file_extensions: extensions
            .iter()
            .map(|text| text.parse().unwrap())
            .collect(),
        mime_types: mime_types
            .iter()
            .map(|(extension, kind)| (extension.parse().unwrap(), kind.parse().unwrap()))
            .collect(),
        default_documents: Vec::new(),
        app_pool: "DefaultAppPool".parse().unwrap(),
        app_pool_settings: [].into(),
        app_pools: Vec::new(),
        sites: Vec::new(),
        config: Vec::new(),
    }
}

fn json() -> IisSettings {
    settings(&["json"], &[("json", "application/json")])
}

/// The changed text, or the original if nothing changes.
fn merged(text: &str, settings: &IisSettings) -> String {
    match merge(Some(text.as_bytes()), settings).unwrap() {
        Some(bytes) => String::from_utf8(bytes).unwrap(),
        None => text.to_owned(),
    }
}

fn problem(text: &str) -> String {
    merge(Some(text.as_bytes()), &json())
        .unwrap_err()
        .to_string()
}

const REMOVE: &str = r#"<remove fileExtension=".json" />"#;
const ADD: &str = r#"<add fileExtension=".json" allowed="true" />"#;
const MAP: &str = r#"<mimeMap fileExtension=".json" mimeType="application/json" />"#;

#[test]
fn a_site_without_a_file_gets_one() {
    let made = merge(None, &json()).unwrap().unwrap();
    insta::assert_snapshot!(String::from_utf8(made).unwrap().replace("\r\n", "\n"));
    assert_eq!(merge(None, &settings(&[], &[])), Ok(None));
    assert_eq!(merge(Some(b"no XML at all"), &settings(&[], &[])), Ok(None));
}

#[test]
fn a_second_merge_changes_nothing() {
    for text in [
        EMPTY,
        "<configuration/>",
        "<configuration>\n\t<system.webServer/>\n</configuration>",
    ] {
        let once = merged(text, &json());
        assert_ne!(once, text);
        assert_eq!(merge(Some(once.as_bytes()), &json()), Ok(None), "{once}");
    }
}

#[test]
fn what_exists_stays_and_the_new_lines_are_laid_out_like_it() {
    let text = "\
<?xml version='1.0'?>
<!-- <staticContent> of old -->
<configuration xmlns=\"http://schemas.microsoft.com/.NetConfiguration/v2.0\">
\t<appSettings><add key='a' value=\"&lt;x>\"/></appSettings>
\t<script><![CDATA[ </configuration> <staticContent> ]]></script>
\t<system.webServer>
\t\t<staticContent lockItem='false'>
\t\t\t<clientCache cacheControlMode=\"DisableCache\"/>
\t\t</staticContent>
\t</system.webServer>
</configuration>
<!-- the end -->
";
    let after = merged(text, &json());
    insta::assert_snapshot!(after);
    let kept: Vec<&str> = after
        .lines()
        .filter(|line| text.lines().any(|old| old == *line))
        .collect();
    assert_eq!(kept, text.lines().collect::<Vec<_>>());
}

/// Entries before and after a merge, where `REMOVE` and `ADD` are those of the settings.
const CORRECTED: &str = r#"
<add fileExtension='.JSON' allowed='FALSE'/> => REMOVE<add fileExtension='.JSON' allowed='true'/>
<add allowed = "false" fileExtension="&#46;json"/> => REMOVE<add allowed = "true" fileExtension="&#46;json"/>
<add fileExtension=".json"/> => REMOVE<add fileExtension=".json" allowed="true"/>
<add fileExtension=".json" lockItem="true"/> => REMOVE<add fileExtension=".json" lockItem="true" allowed="true"/>
ADD => REMOVEADD
REMOVEADD => REMOVEADD
REMOVE => REMOVEADD
<clear/> => <clear/>ADD
ADD<clear/> => ADD<clear/>ADD
<add fileExtension=".xml" allowed="false"/> => <add fileExtension=".xml" allowed="false"/>REMOVEADD
<!-- ADD --> => <!-- ADD -->REMOVEADD
"#;

#[test]
fn entries_that_exist_are_corrected_where_they_stand() {
    let collection = |inside: &str| {
        format!(
            "<configuration><system.webServer><security><requestFiltering><fileExtensions>{inside}\
             </fileExtensions></requestFiltering></security></system.webServer></configuration>"
        )
    };
    let entries = |text: &str| {
        let text = text.replace("REMOVE", REMOVE);
        collection(&text.replace("ADD", ADD))
    };
    for case in CORRECTED.trim().lines() {
        let (before, after) = case.split_once(" => ").unwrap();
        let found = merged(&entries(before), &settings(&["json"], &[]));
        assert_eq!(found, entries(after));
    }
}

#[test]
fn a_content_type_that_differs_is_replaced() {
    let types = |inside: &str| {
        format!(
            "<configuration><system.webServer><staticContent>{inside}</staticContent>\
             </system.webServer></configuration>"
        )
    };
    let own = MAP.replace("application/json", "text/x");
    assert_eq!(
        merged(
            &types(&own),
            &settings(&[], &[("json", "application/json")])
        ),
        types(&format!("{REMOVE}{MAP}"))
    );
}

/// IIS rejects the file if the server has the document, too.
#[test]
fn a_default_document_that_exists_moves_to_the_front_with_its_removal() {
    let documents = |inside: &str| {
        format!(
            "<configuration><system.webServer><defaultDocument><files>{inside}</files>\
             </defaultDocument></system.webServer></configuration>"
        )
    };
    let (a, b) = (r#"<add value="a.html" />"#, r#"<add value="b.html" />"#);
    let remove = r#"<remove value="b.html" />"#;
    let with_document = IisSettings {
        default_documents: vec!["b.html".parse().unwrap()],
        ..settings(&[], &[])
    };
    let after = documents(&format!("{remove}{b}{a}"));
    for before in [
        format!("{a}{b}"),
        format!("{a}{remove}{b}"),
        format!("{a}{remove}"),
        format!("{remove}{b}{a}"),
    ] {
        assert_eq!(merged(&documents(&before), &with_document), after);
    }
    // It keeps its lock, and stands behind what would remove it.
    let locked = r#"<add value="b.html" lockItem="true" />"#;
    for (before, after) in [
        (format!("{a}{locked}"), format!("{remove}{locked}{a}")),
        (format!("{a}<clear />"), format!("{a}<clear />{b}")),
        (format!("{b}<clear />{a}"), format!("<clear />{b}{a}")),
    ] {
        let merged = merged(&documents(&before), &with_document);
        assert_eq!(merged, documents(&after));
    }
}

#[test]
fn elements_without_content_are_opened() {
    for (before, after) in [
        (
            "<configuration />".to_owned(),
            format!(
                "<configuration><system.webServer><staticContent>{REMOVE}{MAP}</staticContent>\
                 </system.webServer></configuration>"
            ),
        ),
        (
            "<configuration>\n  <system.webServer />\n</configuration>\n".to_owned(),
            format!(
                "<configuration>\n  <system.webServer>\n    <staticContent>\n      {REMOVE}\n      \
                 {MAP}\n    </staticContent>\n  </system.webServer>\n</configuration>\n"
            ),
        ),
        (
            "<configuration>\n <system.webServer><staticContent></staticContent></system.webServer>\n\
             </configuration>"
                .to_owned(),
            format!(
                "<configuration>\n <system.webServer><staticContent>{REMOVE}{MAP}</staticContent>\
                 </system.webServer>\n</configuration>"
            ),
        ),
    ] {
        let only_types = settings(&[], &[("json", "application/json")]);
        assert_eq!(merged(&before, &only_types), after);
    }
}

#[test]
fn the_location_of_the_whole_site_counts_and_no_other() {
    let location = |path: &str, inside: &str| {
        format!(
            "<configuration><location {path}><system.webServer><staticContent>{inside}\
             </staticContent></system.webServer></location></configuration>"
        )
    };
    let only_types = settings(&[], &[("json", "application/json")]);
    for path in [
        "",
        "path=\".\"",
        "path='' inheritInChildApplications='false'",
    ] {
        assert_eq!(
            merged(&location(path, ""), &only_types),
            location(path, &format!("{REMOVE}{MAP}"))
        );
    }
    let admin = location("path=\"admin\"", "");
    let after = merged(&admin, &only_types);
    assert!(
        after.starts_with(admin.trim_end_matches("</configuration>")),
        "{after}"
    );
    assert!(after.contains("</location><system.webServer>"), "{after}");
}

#[test]
fn every_encoding_is_kept() {
    let text =
        "<?xml version=\"1.0\"?>\r\n<configuration>\r\n  <a b=\"ä€😀\" />\r\n</configuration>\r\n";
    let utf16 = |mark: bool, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let mark = mark.then_some(0xFEFF);
        mark.into_iter()
            .chain(text.encode_utf16())
            .flat_map(to_bytes)
            .collect()
    };
    let files = [
        text.as_bytes().to_vec(),
        [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        utf16(true, u16::to_le_bytes),
        utf16(false, u16::to_le_bytes),
        utf16(true, u16::to_be_bytes),
        utf16(false, u16::to_be_bytes),
    ];
    let expected = merged(text, &json());
    for file in files {
        let decoded = DecodedText::read(&file).unwrap();
        assert_eq!(decoded.text, text);
        assert_eq!(decoded.write(&decoded.text), file);
        let after = merge(Some(&file), &json()).unwrap().unwrap();
        assert_eq!(after[..3], file[..3]);
        assert_eq!(DecodedText::read(&after).unwrap().text, expected);
    }
    let latin =
        b"<?xml version='1.0' encoding='ISO-8859-1'?><configuration><a b='\xE4'/></configuration>";
    let after = merge(Some(latin), &json()).unwrap().unwrap();
    assert!(after.starts_with(&latin[..latin.len() - 16]));
}

/// Texts that are not XML, where `¶` is a line break, and how they are refused.
const MALFORMED: &str = r#"
hello => line 1, column 1: the XML is malformed: text outside
<configuration>¶  <a>¶</configuration> => line 3, column 1:
<configuration>¶  <a>¶ => line 2, column 3: the XML is malformed: <a> is never closed
<configuration>¶</b> => line 2, column 1:
<configuration/>¶<configuration/> => line 2, column 1: the XML is malformed: a second root
<configuration/>x => line 1, column 17:
<configuration>&nbsp;</configuration> => line 1, column 16:
<configuration a="&nope;"/> => line 1, column 19:
<configuration a='1' a='2'/> => line 1, column 22:
<configuration a=1/> => line 1, column 18:
<configuration a='<'/> => line 1, column 19:
<configuration>]]></configuration> => line 1, column 16:
<configuration><!-- a -- b --></configuration> => line 1, column
<configuration><1/></configuration> => line 1, column 16:
¶<?xml version='1.0'?><configuration/> => line 2, column 1:
<!DOCTYPE x [<!ENTITY a "b">]><configuration/> => line 1, column 1: a document type
<html></html> => line 1, column 1: the root element is <html>
<configuration => line 1, column 1
<configuration><![CDATA[x</configuration> => line 1, column 1
"#;

#[test]
fn what_no_xml_reader_would_take_is_refused_with_its_place() {
    let cases = MALFORMED.trim().lines().map(|case| {
        let (text, printed) = case.split_once(" => ").unwrap();
        (text.replace('¶', "\n"), printed)
    });
    let others = [
        ("", "line 1, column 1: the XML is malformed: missing root"),
        (
            "<configuration>\u{1}</configuration>",
            "line 1, column 16: ",
        ),
    ];
    for (text, printed) in cases.chain(others.map(|(text, printed)| (text.to_owned(), printed))) {
        let found = problem(&text);
        assert!(found.starts_with(printed), "{text:?}: {found}");
    }
}

/// Only sections may appear once; a published web.config of an image has two groups.
#[test]
fn groups_repeat() {
    let types = settings(&[], &[("json", "application/json")]);
    let groups = |first: &str, second: &str| {
        format!(
            "<configuration><system.webServer>{first}</system.webServer><system.webServer>{second}\
             </system.webServer></configuration>"
        )
    };
    let section = format!("<staticContent>{REMOVE}{MAP}</staticContent>");
    assert_eq!(
        merged(&groups("<directoryBrowse/>", "<urlCompression/>"), &types),
        groups(&format!("<directoryBrowse/>{section}"), "<urlCompression/>")
    );
    assert_eq!(
        merged(
            &groups("<directoryBrowse/>", "<staticContent></staticContent>"),
            &types
        ),
        groups("<directoryBrowse/>", &section)
    );
    let security = groups("<security/>", "<security><requestFiltering/></security>");
    let extensions = settings(&["json"], &[]);
    let filtering = format!(
        "<requestFiltering><fileExtensions>{REMOVE}{ADD}</fileExtensions></requestFiltering>"
    );
    assert_eq!(
        merged(&security, &extensions),
        groups("<security/>", &format!("<security>{filtering}</security>"))
    );
    let twice = groups("<staticContent/>", "<staticContent/>");
    assert!(problem(&twice).contains("a second <staticContent>"));
}

#[test]
fn what_iis_would_refuse_is_refused_with_its_place() {
    let section = |inside: &str| {
        format!("<configuration><system.webServer>\n{inside}\n</system.webServer></configuration>")
    };
    let twice = section("<staticContent/><staticContent/>");
    assert!(problem(&twice).starts_with("line 2, column 17: a second <staticContent>"));
    let entries = section(&format!("<staticContent>{MAP}\n {MAP}</staticContent>"));
    assert!(problem(&entries).starts_with("line 3, column 2: a second entry for .json"));
    let elsewhere = section("<staticContent configSource=\"mime.config\"/>");
    assert!(problem(&elsewhere).starts_with("line 2, column 1: <staticContent> is in another"));
    let both = format!(
        "<configuration><location path='.'>{0}</location>\n{0}</configuration>",
        "<system.webServer><staticContent/></system.webServer>"
    );
    assert!(problem(&both).contains("a second <staticContent>"));
}

/// Found by fuzzing: the reader removes a second mark itself.
#[test]
fn a_second_byte_order_mark_is_refused() {
    for text in ["\u{feff}<\u{3c00}", "\u{feff}<configuration/>"] {
        for marked in [
            format!("\u{feff}{text}").into_bytes(),
            [
                &[0xFE, 0xFF][..],
                &text
                    .encode_utf16()
                    .flat_map(u16::to_be_bytes)
                    .collect::<Vec<_>>(),
            ]
            .concat(),
        ] {
            let refused = merge(Some(&marked), &json()).unwrap_err().to_string();
            assert!(refused.contains("a second byte order mark"), "{refused}");
        }
    }
}

#[test]
fn bytes_that_are_not_what_they_claim_are_refused() {
    for (bytes, printed) in [
        (
            &b"<configuration a='\xE4'/>"[..],
            "line 1, column 19: the file is not in utf-8",
        ),
        (&b"<\0c\0o"[..], "the file is not in utf-16"),
        (
            &b"\xFF\xFE<\0\0\xD8"[..],
            "line 1, column 2: the file is not in utf-16",
        ),
        (
            &b"<?xml version='1.0' encoding='utf-16'?><configuration/>"[..],
            "not in utf-16",
        ),
        (
            &b"<?xml version='1.0' encoding='shift_jis'?><configuration/>"[..],
            "unknown encoding \"shift_jis\"",
        ),
    ] {
        let found = merge(Some(bytes), &json()).unwrap_err().to_string();
        assert!(found.contains(printed), "{found}");
    }
}

/// XML of some depth, with the sections among its elements.
fn xml() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "system.webServer", "security", "requestFiltering", "fileExtensions", "staticContent",
        "location", "a",
    ]);
    let space = prop::sample::select(vec!["", "\n", "\r\n", "  ", "\n\t", "<!-- x -->", "&amp;"]);
    let entry = prop::sample::select(vec![
        REMOVE,
        ADD,
        MAP,
        "<clear/>",
        "<add fileExtension='.json' allowed='false'/>",
        "<![CDATA[<clear/>]]>",
        "",
    ]);
    let leaf = (space.clone(), entry).prop_map(|(space, entry)| format!("{space}{entry}"));
    leaf.prop_recursive(5, 32, 4, move |inner| {
        (
            name.clone(),
            prop::collection::vec(inner, 0..4),
            space.clone(),
        )
            .prop_map(|(name, inside, space)| match inside.as_slice() {
                [] => format!("<{name} />{space}"),
                _ => format!("<{name}>{}</{name}>{space}", inside.concat()),
            })
    })
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|c| rest.any(|other| other == c))
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = merge(Some(&bytes), &json());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[<>/a&;!\\[\\]\\-\"'= \n\u{e9}😀?]{0,60}") {
        let _ = merge(Some(text.as_bytes()), &json());
    }

    #[test]
    fn a_merge_is_sound_and_repeats_as_nothing(inside in xml()) {
        let text = format!("<configuration>{inside}</configuration>");
        if let Ok(Some(after)) = merge(Some(text.as_bytes()), &json()) {
            let after = String::from_utf8(after).unwrap();
            XmlDocument::read(after.as_bytes(), "configuration").unwrap();
            prop_assert_eq!(merge(Some(after.as_bytes()), &json()), Ok(None), "{}", after);
            // Only wrong values and empty tags may be removed.
            let comparable = |text: &str| text.replace("false", "").replace("true", "").replace(" />", "");
            prop_assert!(is_subsequence(&comparable(&text), &comparable(&after)), "{}", after);
        }
    }
}
