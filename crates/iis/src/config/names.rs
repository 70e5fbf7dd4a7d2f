//! Names in IIS's configuration as people write them: in any case, sections by their last name, and
//! paths as `XPath` filters.

use super::path::{PathStep, Selector, read_entry};
use super::schema::{CollectionSchema, EditError, ElementSchema, Schema, owner};
use super::{ConfigChange, ConfigEdit, ElementPath, Result, SectionPath};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterTarget {
    pub(crate) section: SectionPath,
    /// The element or entry in it.
    pub(crate) element: ElementPath,
    pub(crate) attribute: Option<String>,
}

/// A name in a filter, with the attributes in brackets after it.
struct FilterPart {
    name: String,
    entry: Option<Selector>,
}

impl Schema {
    /// The section of this path, or with this last name if it is unique.
    pub(crate) fn find_section(&self, text: &str) -> Result<SectionPath> {
        let known: Vec<&str> = self.sections.keys().map(String::as_str).collect();
        match section_named(&known, text) {
            Some(name) => Ok(SectionPath::of(name)),
            None => Err(self.unknown_section(text.trim_matches('/'))),
        }
    }

    /// The edit with names in the schema's spelling.
    pub(crate) fn normalize_names(&self, mut edit: ConfigEdit) -> Result<ConfigEdit> {
        let section = self.find_section(edit.section.as_str())?;
        let at = self.section(&section)?;
        match &mut edit.change {
            ConfigChange::Set {
                element, attribute, ..
            } => {
                let (spelled, schema) = spelled(at, element);
                *attribute = attribute_in(schema, attribute);
                *element = spelled;
            }
            ConfigChange::Fill {
                collection,
                entries,
            } => {
                let (spelled, schema) = spelled(at, collection);
                for entry in entries {
                    *entry = entry_in(schema, entry).0;
                }
                *collection = spelled;
            }
            ConfigChange::Add { entry: path, .. }
            | ConfigChange::New { entry: path, .. }
            | ConfigChange::Ensure { entry: path }
            | ConfigChange::Take { entry: path }
            | ConfigChange::Remove { entry: path }
            | ConfigChange::Clear { element: path } => *path = spelled(at, path).0,
            ConfigChange::Delegate { .. } => {}
        }
        edit.section = section;
        Ok(edit)
    }

    pub(crate) fn resolve_filter(&self, filter: &str) -> Result<FilterTarget> {
        let syntax = || EditError::Refused(format!("the filter {filter:?} is not supported"));
        let (mut parts, attribute) = parts(filter).ok_or_else(syntax)?;
        if parts
            .first()
            .is_some_and(|part| part.name == "configuration")
        {
            parts.remove(0);
        }
        let leading = parts.iter().take_while(|part| part.entry.is_none()).count();
        let names = |count: usize| {
            let names: Vec<&str> = parts[..count]
                .iter()
                .map(|part| part.name.as_str())
                .collect();
            names.join("/")
        };
        let whole = |count: &usize| {
            let path = names(*count);
            let mut known = self.sections.keys();
            known.any(|name| name.eq_ignore_ascii_case(&path))
        };
        let last = leading + usize::from(leading < parts.len());
        let Some(count) = (1..=last).rev().find(whole) else {
            let found = self.find_section(&names(leading.max(1).min(parts.len())));
            return Err(found.err().unwrap_or_else(syntax));
        };
        let section = self.find_section(&names(count))?;
        if parts[count - 1].entry.is_some() {
            return Err(syntax());
        }
        let (at, element) = self.inner(&section, &parts[count..], &syntax)?;
        Ok(FilterTarget {
            attribute: attribute.map(|name| attribute_in(Some(at), &name)),
            section,
            element,
        })
    }

    /// The element that the rest of a filter means, and its schema.
    fn inner(
        &self,
        section: &SectionPath,
        parts: &[FilterPart],
        syntax: &dyn Fn() -> EditError,
    ) -> Result<(&ElementSchema, ElementPath)> {
        let mut at = self.section(section)?;
        let mut element = ElementPath::default();
        for part in parts {
            let owner = owner(section, element.steps());
            let inner = at.element_named(&part.name);
            match (&part.entry, inner) {
                (None, Some((name, inner))) => {
                    element = element.element(name);
                    at = inner;
                }
                (Some(entry), None) => {
                    let mut collections = at.collections.iter();
                    let Some(collection) = collections.find(|it| it.adds(&part.name)) else {
                        return Err(EditError::no_collection(&owner));
                    };
                    let entry = collection.spelled(entry).unwrap_or_else(|| entry.clone());
                    element = element.with(PathStep::Entry(entry));
                    at = &collection.entry;
                }
                (None, None) if at.collections.iter().any(|it| it.is_entry(&part.name)) => {
                    return Err(syntax());
                }
                (None, None) => {
                    at.element(&owner, &part.name)?;
                }
                (Some(_), Some(_)) => return Err(syntax()),
            }
        }
        Ok((at, element))
    }

    pub(crate) fn is_collection(&self, section: &SectionPath, element: &ElementPath) -> bool {
        let schema = self.at(section, element);
        schema.is_some_and(|schema| !schema.collections.is_empty())
    }

    /// The text that IIS writes into an attribute for a number; none if it is unknown.
    pub(crate) fn enum_text(
        &self,
        section: &SectionPath,
        element: &ElementPath,
        attribute: &str,
        number: i64,
    ) -> Option<String> {
        let schema = self.at(section, element)?;
        let name = attribute_in(Some(schema), attribute);
        schema.attribute(&name).text_for_number(number)
    }

    /// The schema of an element, with any spelling of its path.
    fn at(&self, section: &SectionPath, element: &ElementPath) -> Option<&ElementSchema> {
        let section = self.section(section).ok()?;
        spelled(section, element).1
    }
}

impl ElementSchema {
    fn element_named(&self, name: &str) -> Option<(&str, &Self)> {
        let mut elements = self.elements.iter();
        elements
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(known, schema)| (known.as_str(), schema))
    }
}

impl CollectionSchema {
    /// Returns true if that is the name of an entry, in any case.
    fn adds(&self, name: &str) -> bool {
        self.add.iter().any(|add| add.eq_ignore_ascii_case(name))
    }

    /// The attributes of an entry, if all of them are known.
    fn spelled(&self, entry: &Selector) -> Option<Selector> {
        let names = |name: &str| {
            let mut known = self.entry.attributes.keys();
            known.find(|known| known.eq_ignore_ascii_case(name))
        };
        let attributes: Option<Vec<_>> = entry
            .attributes()
            .map(|(name, value)| Some((names(name)?.clone(), value.to_owned())))
            .collect();
        attributes.map(Selector)
    }
}

/// The section of this path, or with this last name if it is unique.
pub(super) fn section_named<'n>(known: &[&'n str], text: &str) -> Option<&'n str> {
    let text = text.trim_matches('/');
    let is_last = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        last.eq_ignore_ascii_case(text)
    };
    let known = known.iter().copied();
    if let Some(whole) = known.clone().find(|name| name.eq_ignore_ascii_case(text)) {
        return Some(whole);
    }
    let mut named = known.filter(|name| is_last(name));
    let first = named.next()?;
    named.next().is_none().then_some(first)
}

/// An attribute's name as a schema spells it.
fn attribute_in(schema: Option<&ElementSchema>, name: &str) -> String {
    let mut known = schema
        .into_iter()
        .flat_map(|schema| schema.attributes.keys());
    let found = known.find(|known| known.eq_ignore_ascii_case(name));
    found.map_or_else(|| name.to_owned(), String::clone)
}

/// The entry in the spelling of its collection, and its schema.
fn entry_in<'a>(
    schema: Option<&'a ElementSchema>,
    entry: &Selector,
) -> (Selector, Option<&'a ElementSchema>) {
    let collections = || schema.into_iter().flat_map(|schema| &schema.collections);
    let fitting = collections().find_map(|it| Some((it.spelled(entry)?, Some(&it.entry))));
    fitting.unwrap_or_else(|| {
        let first = collections().next().map(|it| &it.entry);
        let attributes = entry.attributes();
        let attributes = attributes
            .map(|(name, value)| (attribute_in(first, name), value.to_owned()))
            .collect();
        (Selector(attributes), first)
    })
}

/// The path in the schema's spelling, as far as it is known, and the schema of its target.
fn spelled<'a>(
    section: &'a ElementSchema,
    path: &ElementPath,
) -> (ElementPath, Option<&'a ElementSchema>) {
    let mut schema = Some(section);
    let mut spelled = ElementPath::default();
    for step in path.steps() {
        match step {
            PathStep::Element(name) => {
                let inner = schema.and_then(|schema| schema.element_named(name));
                let own = inner.map_or_else(
                    // The path of a `Clear` may end with an attribute.
                    || attribute_in(schema, name),
                    |(name, _)| name.to_owned(),
                );
                spelled = spelled.element(&own);
                schema = inner.map(|(_, inner)| inner);
            }
            PathStep::Entry(entry) => {
                let (entry, inner) = entry_in(schema, entry);
                spelled = spelled.with(PathStep::Entry(entry));
                schema = inner;
            }
        }
    }
    (spelled, schema)
}

/// Splits `/a/b[@name='x' and @path='y']/@attribute`, with up to two leading slashes.
fn parts(filter: &str) -> Option<(Vec<FilterPart>, Option<String>)> {
    let text = filter.trim();
    let mut rest = text
        .strip_prefix("//")
        .or_else(|| text.strip_prefix('/'))
        .unwrap_or(text)
        .trim_end_matches('/');
    let mut parts = Vec::new();
    loop {
        if let Some(attribute) = rest.strip_prefix('@') {
            let is_whole = !parts.is_empty() && is_name(attribute);
            return is_whole.then(|| (parts, Some(attribute.to_owned())));
        }
        let (name, after) = rest.split_at(rest.find(['/', '[']).unwrap_or(rest.len()));
        if !is_name(name) {
            return None;
        }
        let (entry, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inside) => {
                let (entry, after) = read_entry(inside, "@", "and")?;
                (Some(entry), after)
            }
        };
        parts.push(FilterPart {
            name: name.to_owned(),
            entry,
        });
        if after.is_empty() {
            return Some((parts, None));
        }
        rest = after.strip_prefix('/')?;
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCHEMA: &str = include_str!("tests/schema.xml");

    fn schema() -> Schema {
        Schema::read([("schema.xml", SCHEMA.as_bytes())]).unwrap()
    }

    fn filtered(filter: &str) -> Result<String, String> {
        let found = schema()
            .resolve_filter(filter)
            .map_err(|error| error.to_string())?;
        let attribute = found.attribute.map(|name| format!(" @{name}"));
        Ok(format!(
            "{} {}{}",
            found.section,
            found.element,
            attribute.unwrap_or_default()
        ))
    }

    /// Filters of the cmdlets, and what they lead to.
    const FILTERS: &str = r#"
/system.webServer/httpErrors => system.webServer/httpErrors
//SYSTEM.WEBSERVER/httperrors => system.webServer/httpErrors
system.webServer/staticContent/ClientCache => system.webServer/staticContent clientCache
/system.webServer/httpErrors/@errormode => system.webServer/httpErrors  @errorMode
/system.applicationHost/sites/site[@name='Default Web Site']/Bindings => system.applicationHost/sites [name='Default Web Site'].bindings
system.applicationHost/applicationPools/add[@Name="a"]/processModel/@idletimeout => system.applicationHost/applicationPools [name='a'].processModel @idleTimeout
/system.webServer/httpErrors/error[@statusCode='404' and @subStatusCode='-1'] => system.webServer/httpErrors [statusCode='404',subStatusCode='-1']
"#;

    #[test]
    fn filters_lead_to_sections_and_what_is_in_them() {
        for case in FILTERS.trim().lines() {
            let (filter, expected) = case.split_once(" => ").unwrap();
            assert_eq!(filtered(filter).unwrap().trim_end(), expected, "{filter}");
        }
    }

    #[test]
    fn what_is_no_path_of_the_schema_is_refused() {
        for (filter, printed) in [
            ("/system.webServer/nothing", "the schema has no section"),
            (
                "/system.webServer/httpErrors/nothing",
                "httpErrors has no element \"nothing\"",
            ),
            ("/system.webServer/httpErrors/error", "is not supported"),
            ("/system.webServer/httpErrors/error[1]", "is not supported"),
            ("/system.webServer/*", "is not supported"),
            ("", "is not supported"),
            (
                "/system.webServer/defaultDocument[@a='b']",
                "is not supported",
            ),
        ] {
            let refused = filtered(filter).unwrap_err();
            assert!(refused.contains(printed), "{filter}: {refused}");
        }
    }

    #[test]
    fn sections_go_by_their_last_names_too() {
        let schema = schema();
        let named = |text| schema.find_section(text).map(|path| path.to_string());
        assert_eq!(named("HTTPERRORS").unwrap(), "system.webServer/httpErrors");
        assert!(named("webServer").is_err());
    }

    proptest! {
        #[test]
        fn no_filter_makes_it_panic(filter in "[a-z/@='\"\\[\\]. ]{0,40}") {
            let _ = schema().resolve_filter(&filter);
        }
    }
}
