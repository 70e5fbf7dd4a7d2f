use std::fmt::Write as _;

use jiff::civil::date;
use wincimg_testkit::programs::sample;

use super::*;

const GUID: &str = "d001ca72-ce16-4700-9a6d-b2bb28974002";
const HEADERS: [(&str, &str); 6] = [
    ("titleHeaderLink", "Title"),
    ("productsHeaderLink", "Products"),
    ("classHeaderLink", "Classification"),
    ("dateHeaderLink", "Last Updated"),
    ("versionHeaderLink", "Version"),
    ("sizeHeaderLink", "Size"),
];
const ROW: [&str; 6] = [
    "<a id='GUID_link' href='#'>\n  A title &amp;\n more </a>",
    "Windows Server 2019",
    "Security Updates",
    "4/14/2020",
    "n/a",
    "<span id='GUID_size'>10.9 MB</span><span id='GUID_originalSize'>11457318</span>",
];

/// A page whose columns come in this order; `first` is the number of the first one.
fn page_of(order: &[usize], first: usize, row: [&str; 6]) -> String {
    let mut html = format!("<form id=aspnetForm><table id='{TABLE}'><tr id='headerRow'>");
    for (number, column) in order.iter().enumerate() {
        let (link, word) = HEADERS[*column];
        let number = number + first;
        let _ = write!(
            html,
            "<td id='header_C{number}'><a id='ctl02_{link}'>{word}</a></td>"
        );
    }
    let _ = write!(html, "</tr><tr id='{GUID}_R0'><td id='{GUID}_C0_R0'></td>");
    for (number, column) in order.iter().enumerate() {
        let number = number + first;
        let cell = row[*column].replace("GUID", GUID);
        let _ = write!(html, "<td id='{GUID}_C{number}_R0'>{cell}</td>");
    }
    html + "</tr></table></form>"
}

fn page(row: [&str; 6]) -> String {
    page_of(&[0, 1, 2, 3, 4, 5], 1, row)
}

fn one_hit(html: &str) -> SearchResult {
    let Page {
        mut hits,
        next: None,
    } = read_page(html).unwrap()
    else {
        panic!("no single page of hits: {html}");
    };
    assert_eq!(hits.len(), 1);
    hits.remove(0)
}

fn expected() -> SearchResult {
    SearchResult {
        title: "A title & more".to_owned(),
        products: "Windows Server 2019".to_owned(),
        classification: "Security Updates".to_owned(),
        date: Some(date(2020, 4, 14)),
        version: None,
        size: Some(11_457_318),
        update_id: GUID.to_owned(),
    }
}

#[test]
fn a_real_page_is_read() {
    let html = std::fs::read_to_string(sample("catalog/search-last-page.html")).unwrap();
    let Page { hits, next } = read_page(&html).unwrap();
    assert_eq!(next, None);
    assert_eq!(hits.len(), 2);
    let first = SearchResult {
        title: "Update for Microsoft Office 2013 (KB4022233) 64-Bit Edition".to_owned(),
        products: "Office 2013".to_owned(),
        classification: "Critical Updates".to_owned(),
        date: Some(date(2018, 9, 11)),
        ..expected()
    };
    assert_eq!(hits[0], first);
    assert!(hits[1].title.ends_with("32-Bit Edition"));
}

#[test]
fn columns_are_known_by_their_headers_wherever_they_stand() {
    let plain = page(ROW);
    let extra = page_of(&[0, 1, 2, 3, 4, 5], 2, ROW)
        .replace(
            "<td id='header_C2'>",
            "<td id='header_C1'>Rating</td><td id='header_C2'>",
        )
        .replace(
            &format!("<td id='{GUID}_C2"),
            &format!("<td id='{GUID}_C1_R0'>5</td><td id='{GUID}_C2"),
        );
    let without_links = plain.replace("ctl02_", "").replace("HeaderLink'", "'");
    let encoded = plain
        .replace("_R0'>", "&#95;R0'>")
        .replace(&format!("id='{TABLE}'"), &format!("ID={TABLE}"));
    let mut row = ROW;
    row[1] = "<table><tr><td>Windows Server 2019</td></tr></table>";
    let left_open = page(row)
        .replace("</a></td>", "</a>")
        .replace("Security Updates</td>", "Security Updates");
    let reversed = page_of(&[5, 4, 3, 2, 1, 0], 7, ROW);
    for html in [plain, extra, without_links, encoded, left_open, reversed] {
        assert_eq!(one_hit(&html), expected(), "{html}");
    }
}

#[test]
fn dates_in_other_formats_and_missing_sizes_are_taken() {
    let mut row = ROW;
    row[3] = "2020-04-14";
    row[5] = "10.9 MB";
    let mut without_size = expected();
    without_size.size = None;
    assert_eq!(one_hit(&page(row)), without_size);
    row[3] = "soon";
    assert_eq!(one_hit(&page(row)).date, None);
}

#[test]
fn elements_that_stay_open_take_linear_time_and_memory() {
    let count = 100_000;
    let open = "<b id=x>y".repeat(count) + &"</i>".repeat(count);
    let mut row = ROW;
    row[1] = &open;
    let hit = one_hit(&page(row));
    assert_eq!(hit.products, "y".repeat(count));
    let tables = html_tables(&format!("<table><tr><td>{open}</table>"));
    assert_eq!(tables, [[["y".repeat(count)]]]);
}

#[test]
fn the_next_page_is_asked_for_with_every_hidden_field_of_the_form() {
    let form = "<form><input type=hidden name=other value=1></form>\
        <form id='aspnetForm'><input type='hidden' name='__EVENTTARGET' value=''/>\
        <input type=HIDDEN name='__VIEWSTATE' value='a+b/&#43;='/><input type=text name=q value=x>\
        <a id='ctl00_catalogBody_nextPageLinkText' href=\"javascript:x\">Next</a>";
    let html = page(ROW).replace("<form id=aspnetForm>", form);
    let expected = [
        ("__VIEWSTATE", "a+b/+="),
        ("__EVENTTARGET", "ctl00$catalogBody$nextPageLinkText"),
        ("__EVENTARGUMENT", ""),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read_page(&html).unwrap().next.unwrap(), expected);
}

#[test]
fn nothing_found_is_distinguished_from_a_broken_answer() {
    let is_invalid = |page: Result<Page, PageError>| {
        let error = page.unwrap_err().to_string();
        error.starts_with("the response is not a page of search results: ")
    };
    let nothing = "<span id='ctl00_catalogBody_noResultText'>We did not find any results</span>";
    assert_eq!(read_page(nothing), Ok(Page::default()));
    let other = "<html><body>Sign in</body></html><table id='other'></table>";
    let empty = format!("<table id='{TABLE}'><tr id='headerRow'><td>Title</td></tr></table>");
    for broken in ["", "{}", other, &empty] {
        assert!(is_invalid(read_page(broken)), "{broken}");
    }
}

#[test]
fn the_page_for_errors_is_quoted() {
    let html = "<div id='errorPageDisplayedError'>The website has <b>encountered</b><br>a problem\n\
        [Error number: 8DDD0010]</div><p>Help</p>";
    let silent = "<div id='errorPageDisplayedError'></div>";
    for (html, words) in [
        (
            html,
            "The website has encountered a problem [Error number: 8DDD0010]",
        ),
        (silent, "no reason given"),
    ] {
        assert_eq!(read_page(html), Err(PageError::Reported(words.to_owned())));
    }
}

#[test]
fn a_page_cut_off_anywhere_makes_no_panic() {
    let html = page(ROW);
    for end in (0..html.len()).filter(|end| html.is_char_boundary(*end)) {
        let _ = read_page(&html[..end]);
    }
}
