//! How fast pages of search results are read.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use wincimg::catalog::{Page, read_page};

const PAGES: usize = 100;

/// A page as large as a real one with 25 rows: 45 KB of scripts around them.
fn page() -> String {
    let cell = |id: &str, column: u32, row: usize, content: &str| {
        format!(
            "<td class=\"resultsbottomBorder resultspadding\" id=\"{id}_C{column}_R{row}\">\n\
             \x20                       {content}\n                    </td>"
        )
    };
    let script = "    var x = $get('ctl00$searchTextBox'.replace('$', '_')); // <not markup>\n";
    let mut html = format!(
        "<!DOCTYPE html><html><head><script type=\"text/javascript\">{}</script></head><body>\
         <form id=\"aspnetForm\"><input type=\"hidden\" name=\"__VIEWSTATE\" value=\"{}\" />\
         <table id=\"ctl00_catalogBody_updateMatches\"><tr id=\"headerRow\">",
        script.repeat(45_000 / script.len()),
        "HU+wgzwh".repeat(500),
    );
    let columns = [
        "", "title", "products", "class", "date", "version", "size", "",
    ];
    for (number, column) in columns.iter().enumerate() {
        write!(html, "<td id=\"header_C{number}\"><a id=\"ctl02_{column}HeaderLink\" href=\"#\"><span>{column}</span></a></td>").unwrap();
    }
    html += "</tr>";
    for row in 0..25 {
        let id = format!("{row:08x}-ce16-4700-9a6d-b2bb28974002");
        write!(html, "<tr id=\"{id}_R{row}\" style=\"border-width:0px;\">").unwrap();
        let link = format!(
            "<a id='{id}_link' href= \"javascript:void(0);\" onclick='goToDetails(\"{id}\");'>\n\
             2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)\n</a>"
        );
        let size = format!(
            "<span id=\"{id}_size\">354.4 MB</span>\n\
             <span class=\"noDisplay\" id=\"{id}_originalSize\">371644918</span>"
        );
        let button = format!(
            "<input id=\"{id}\" class=\"flatLightBlueButton\" type=\"button\" value='Download' />"
        );
        let cells = [
            "",
            &link,
            "Windows Server 2019",
            "Security Updates",
            "4/14/2020",
            "n/a",
            &size,
            &button,
        ];
        for (column, content) in (0..).zip(cells) {
            html += &cell(&id, column, row, content);
        }
        html += "</tr>";
    }
    html + "</table></form></body></html>"
}

fn read_pages(criterion: &mut Criterion) {
    let page = page();
    assert!(matches!(read_page(&page), Ok(Page::Hits { hits, .. }) if hits.len() == 25));
    let name = format!("{PAGES} pages of {} KB", page.len() / 1000);
    criterion.bench_function(&name, |bencher| {
        bencher.iter(|| {
            for _ in 0..PAGES {
                black_box(read_page(black_box(&page)).unwrap());
            }
        });
    });
}

criterion_group!(benches, read_pages);
criterion_main!(benches);
