//! JUnit XML, as CI systems read it: suites of passed, failed and skipped cases.

use std::io::{self, Write};

use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::{ElementWriter, Writer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Failure,
    Error,
    Skipped,
}

/// A case that did not pass.
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    pub(super) message: String,
    pub(super) rule: Option<&'static str>,
    pub(super) description: Option<String>,
}

#[derive(Default)]
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) class: Option<&'static str>,
    /// None if it passed.
    pub(super) failure: Option<Failure>,
    /// Output of a passed case.
    pub(super) output: Option<String>,
}

/// Cases under a common name.
pub(super) struct TestSuite {
    pub(super) name: String,
    pub(super) cases: Vec<TestCase>,
}

pub(super) fn write_suites(
    name: &str,
    suites: &[TestSuite],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(out, b' ', 4);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let [skipped, failures, errors] = counts(all());
    let attributes = [
        ("name", name.to_owned()),
        ("tests", all().count().to_string()),
        ("skipped", skipped),
        ("failures", failures),
        ("errors", errors),
    ];
    let document = element(&mut xml, "testsuites", &attributes);
    document.write_inner_content(|xml| suites.iter().try_for_each(|suite| suite.write(xml)))?;
    xml.write_indent()
}

impl TestSuite {
    fn write<W: Write>(&self, xml: &mut Writer<W>) -> io::Result<()> {
        let [skipped, failures, errors] = counts(self.cases.iter());
        let attributes = [
            ("name", self.name.clone()),
            ("tests", self.cases.len().to_string()),
            ("skipped", skipped),
            ("errors", errors),
            ("failures", failures),
        ];
        let suite = element(xml, "testsuite", &attributes);
        if self.cases.is_empty() {
            return suite.write_empty().map(drop);
        }
        let suite =
            suite.write_inner_content(|xml| self.cases.iter().try_for_each(|case| case.write(xml)));
        suite.map(drop)
    }
}

impl TestCase {
    fn write<W: Write>(&self, xml: &mut Writer<W>) -> io::Result<()> {
        let mut attributes = vec![("name", self.name.clone())];
        attributes.extend(self.class.map(|class| ("classname", class.to_owned())));
        let case = element(xml, "testcase", &attributes);
        if self.failure.is_none() && self.output.is_none() {
            return case.write_empty().map(drop);
        }
        let case = case.write_inner_content(|xml| {
            if let Some(failure) = &self.failure {
                failure.write(xml)?;
            }
            if let Some(output) = &self.output {
                let output = text(output);
                element(xml, "system-out", &[]).write_text_content(BytesText::new(&output))?;
            }
            Ok(())
        });
        case.map(drop)
    }
}

impl Failure {
    fn write<W: Write>(&self, xml: &mut Writer<W>) -> io::Result<()> {
        let name = match self.outcome {
            Outcome::Failure => "failure",
            Outcome::Error => "error",
            Outcome::Skipped => "skipped",
        };
        let mut attributes = vec![("message", self.message.clone())];
        attributes.extend(self.rule.map(|rule| ("type", rule.to_owned())));
        let failure = element(xml, name, &attributes);
        let written = match self.description.as_deref().map(text) {
            Some(description) => failure.write_text_content(BytesText::new(&description)),
            None => failure.write_empty(),
        };
        written.map(drop)
    }
}

fn element<'w, W: Write>(
    xml: &'w mut Writer<W>,
    name: &'static str,
    attributes: &[(&'static str, String)],
) -> ElementWriter<'w, W> {
    let attributes = attributes.iter().map(|(name, value)| (*name, text(value)));
    let attributes: Vec<_> = attributes.collect();
    let attributes = attributes
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    xml.create_element(name).with_attributes(attributes)
}

/// A text without the characters that XML cannot contain.
fn text(printed: &str) -> String {
    let is_said = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    printed.chars().filter(is_said).collect()
}

/// Numbers of skipped, failed and erroneous cases.
fn counts<'c>(cases: impl Iterator<Item = &'c TestCase>) -> [String; 3] {
    let outcomes = cases.filter_map(|case| case.failure.as_ref());
    let outcomes: Vec<Outcome> = outcomes.map(|failure| failure.outcome).collect();
    [Outcome::Skipped, Outcome::Failure, Outcome::Error].map(|outcome| {
        let of_it = outcomes.iter().filter(|it| **it == outcome);
        of_it.count().to_string()
    })
}
