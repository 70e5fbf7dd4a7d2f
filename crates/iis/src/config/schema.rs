//! Schema of IIS's configuration: from the schema files of a base, or the builtin one with what
//! every IIS has.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::document::{Id, XmlDocument};
use super::path::{PathStep, Selector};
use super::value::{AttributeSchema, KeyKind, Validation, ValueKind};
use super::{ConfigChange, ConfigEdit, ConfigError, ElementPath, Result, SectionPath};

/// The builtin schema: names and keys, and types of values that are the same in every IIS.
const KNOWN: &str = include_str!("known.xml");

/// Schema of the sections of IIS's configuration.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(super) sections: BTreeMap<String, ElementSchema>,
}

/// A schema file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema {file} cannot be read")]
pub struct SchemaError {
    /// Its name.
    pub file: String,
    /// The problem.
    pub source: ConfigError,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ElementSchema {
    pub(super) attributes: BTreeMap<String, AttributeSchema>,
    pub(super) elements: BTreeMap<String, ElementSchema>,
    pub(super) collections: Vec<CollectionSchema>,
    /// True if attributes that the schema does not name are valid.
    is_open: bool,
}

/// Entries of an element.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollectionSchema {
    /// The names of an entry; mostly one.
    pub(crate) add: Vec<String>,
    pub(crate) remove: Option<String>,
    pub(crate) clear: Option<String>,
    /// True if new entries come before the others.
    pub(crate) prepends: bool,
    has_duplicates: bool,
    pub(crate) entry: ElementSchema,
}

/// A name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownName {
    message: String,
    /// The name.
    pub name: String,
    /// The existing ones.
    pub known: Vec<String>,
}

impl UnknownName {
    pub(super) fn new(message: String, name: &str, known: Vec<String>) -> Self {
        Self {
            message,
            name: name.to_owned(),
            known,
        }
    }
}

/// Reason why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file prevents it.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// The schema, a lock or what the configuration has prevents it.
    #[error("{0}")]
    Refused(String),
    /// A section, element, attribute or site does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The file does not declare the section: the feature is not installed, or the name is wrong.
    #[error(transparent)]
    Undeclared(UnknownName),
    /// The application pool of a site does not exist.
    #[error(transparent)]
    NoPool(UnknownName),
}

impl EditError {
    /// An element has no entries.
    pub(super) fn no_collection(owner: &str) -> Self {
        Self::Refused(format!("{owner} is not a collection"))
    }
}

impl Schema {
    /// The schema of these files, by name, and the builtin one for sections that none of them has.
    pub fn read<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, SchemaError> {
        let mut schema = Self::default();
        for (file, bytes) in files {
            schema.add(bytes).map_err(|source| SchemaError {
                file: file.to_owned(),
                source,
            })?;
        }
        for (name, section) in &Self::builtin().sections {
            let known = || section.clone();
            schema.sections.entry(name.clone()).or_insert_with(known);
        }
        Ok(schema)
    }

    pub(crate) fn builtin() -> &'static Self {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
            let mut schema = Schema::default();
            // A test reads it.
            let _ = schema.add(KNOWN.as_bytes());
            schema
        });
        &SCHEMA
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ConfigError> {
        let document = XmlDocument::read(bytes, "configSchema")?;
        for id in document.children_named(document.root(), "sectionSchema") {
            let name = document.attribute(id, "name").unwrap_or_default();
            let section = self.sections.entry(name.to_owned()).or_default();
            section.add(&document, id);
        }
        Ok(())
    }

    /// The schema of the target of these steps.
    pub(crate) fn walk(&self, section: &SectionPath, steps: &[PathStep]) -> Result<&ElementSchema> {
        let mut schema = self.section(section)?;
        for (place, step) in steps.iter().enumerate() {
            let owner = owner(section, &steps[..place]);
            schema = match step {
                PathStep::Element(name) => schema.element(&owner, name)?,
                PathStep::Entry(selector) => {
                    let collection = schema.collection(&owner, selector)?;
                    for (name, value) in selector.attributes() {
                        collection.entry.check(&owner, name, value)?;
                    }
                    &collection.entry
                }
            };
        }
        Ok(schema)
    }

    /// The schema of the collection of an entry.
    pub(crate) fn collection(
        &self,
        section: &SectionPath,
        steps: &[PathStep],
        entry: &Selector,
    ) -> Result<&CollectionSchema> {
        let schema = self.walk(section, steps)?;
        schema.collection(&owner(section, steps), entry)
    }

    pub(super) fn section(&self, path: &SectionPath) -> Result<&ElementSchema> {
        let found = self.sections.get(path.as_str());
        found.ok_or_else(|| self.unknown_section(path.as_str()))
    }

    pub(super) fn unknown_section(&self, name: &str) -> EditError {
        let message = format!("the schema has no section {name:?}");
        UnknownName::new(message, name, self.sections.keys().cloned().collect()).into()
    }
}

impl ElementSchema {
    /// Adds one element of a schema file.
    fn add(&mut self, document: &XmlDocument, id: Id) {
        for child in document.children(id) {
            // It exists only while IIS runs.
            if document.attribute(child, "extension").is_some() {
                continue;
            }
            let name = document.attribute(child, "name").unwrap_or_default();
            match document.name(child) {
                "attribute" => {
                    let attribute = attribute(document, child);
                    self.attributes.insert(name.to_owned(), attribute);
                }
                "element" => {
                    let element = self.elements.entry(name.to_owned()).or_default();
                    element.add(document, child);
                }
                "collection" => self.collection_of(document, child).extend(document, child),
                _ => {}
            }
        }
        self.is_open |= is_true(document, id, "allowUnrecognizedAttributes");
    }

    /// The collection whose entries have the names in a schema file. Other files may have a part of
    /// it, as that of FTP for sites.
    fn collection_of(&mut self, document: &XmlDocument, id: Id) -> &mut CollectionSchema {
        let add = document.attribute(id, "addElement").unwrap_or_default();
        let names = add.split(',').map(|name| name.trim().to_owned());
        let add: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        let known = self.collections.iter().position(|known| known.add == add);
        let at = known.unwrap_or(self.collections.len());
        if known.is_none() {
            self.collections.push(CollectionSchema {
                add,
                ..CollectionSchema::default()
            });
        }
        &mut self.collections[at]
    }

    pub(crate) fn element(&self, owner: &str, name: &str) -> Result<&Self> {
        self.elements.get(name).ok_or_else(|| {
            let message = format!("{owner} has no element {name:?}");
            UnknownName::new(message, name, self.elements.keys().cloned().collect()).into()
        })
    }

    /// The collection of an entry with these attributes.
    pub(crate) fn collection(&self, owner: &str, selector: &Selector) -> Result<&CollectionSchema> {
        let fits = |collection: &&CollectionSchema| {
            let mut names = selector.0.iter();
            names.all(|(name, _)| collection.entry.knows(name))
        };
        let found = self.collections.iter().find(fits);
        found
            .or(self.collections.first())
            .ok_or_else(|| EditError::no_collection(owner))
    }

    /// Returns true if the attribute is allowed.
    fn knows(&self, name: &str) -> bool {
        self.is_open || self.attributes.contains_key(name) || is_lock(name)
    }

    pub(crate) fn attribute(&self, name: &str) -> &AttributeSchema {
        static UNNAMED: LazyLock<AttributeSchema> = LazyLock::new(AttributeSchema::default);
        self.attributes.get(name).unwrap_or(&UNNAMED)
    }

    /// The value of an attribute as IIS writes it.
    pub(crate) fn check(&self, owner: &str, name: &str, value: &str) -> Result<String> {
        if !self.knows(name) {
            let message = format!("{owner} has no attribute {name:?}");
            let known = self.attributes.keys().cloned().collect();
            return Err(UnknownName::new(message, name, known).into());
        }
        let checked = self.attribute(name).check(value);
        checked
            .map_err(|expected| EditError::Refused(format!("invalid {name} {value:?}: {expected}")))
    }
}

impl CollectionSchema {
    /// Adds one collection of a schema file.
    fn extend(&mut self, document: &XmlDocument, id: Id) {
        let named = |name: &str| {
            let value = document.attribute(id, name).filter(|name| !name.is_empty());
            value.map(str::to_owned)
        };
        self.remove = self.remove.take().or_else(|| named("removeElement"));
        self.clear = self.clear.take().or_else(|| named("clearElement"));
        self.prepends |= document.attribute(id, "mergeAppend") == Some("false");
        self.has_duplicates |= is_true(document, id, "allowDuplicates");
        self.entry.add(document, id);
    }

    pub(crate) fn is_entry(&self, name: &str) -> bool {
        self.add.iter().any(|add| add == name)
    }

    pub(crate) fn entry_name(&self) -> &str {
        self.add.first().map_or("add", String::as_str)
    }

    /// The key attributes of an entry; all attributes if the schema has no key.
    pub(crate) fn keys(&self, entry: &Selector) -> Selector {
        let of = |key: KeyKind| {
            let attributes = entry.0.iter();
            attributes.filter(move |(name, _)| self.entry.attribute(name).key == key)
        };
        // Each one is a key by itself, and removals have one.
        if let Some(unique) = of(KeyKind::Unique).min_by_key(|(name, _)| name != "name") {
            return Selector(vec![unique.clone()]);
        }
        let combined: Vec<_> = of(KeyKind::Combined).cloned().collect();
        if combined.is_empty() {
            return entry.clone();
        }
        Selector(combined)
    }

    /// The keys of a new entry, with the parts of a combined key that it leaves out.
    pub(crate) fn new_keys(&self, entry: &Selector) -> Selector {
        let has = |wanted: &str| entry.attributes().any(|(name, _)| name == wanted);
        let mut whole = entry.clone();
        for (name, schema) in &self.entry.attributes {
            if let (KeyKind::Combined, Some(value)) = (schema.key, schema.unset())
                && !has(name)
            {
                whole.0.push((name.clone(), value.to_owned()));
            }
        }
        self.keys(&whole)
    }

    /// All keys of an entry with these attributes: each may be that of one entry only.
    pub(crate) fn all_keys(&self, entry: &Selector) -> Vec<Selector> {
        let of = |key: KeyKind| {
            let keys = self.entry.attributes.iter();
            let keys = keys.filter(move |(_, schema)| schema.key == key);
            keys.map(move |(name, schema)| {
                let own = entry.attributes().find(|(own, _)| own == name);
                let value = own.map(|(_, value)| value).or(schema.unset())?;
                Some((name.clone(), value.to_owned()))
            })
        };
        let unique = of(KeyKind::Unique).flatten().map(|key| vec![key]);
        let combined: Option<Vec<_>> = of(KeyKind::Combined).collect();
        let combined = combined.filter(|combined| !combined.is_empty());
        unique.chain(combined).map(Selector).collect()
    }

    /// Returns true if no two entries may have the same keys.
    pub(crate) fn is_unique(&self) -> bool {
        let mut attributes = self.entry.attributes.values();
        !self.has_duplicates && attributes.any(|attribute| attribute.key != KeyKind::No)
    }

    /// The attributes of a new entry, checked.
    pub(crate) fn check_entry(&self, owner: &str, entry: &Selector) -> Result<Selector> {
        let checked: Result<Vec<_>> = entry
            .0
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.entry.check(owner, name, value)?)))
            .collect();
        let checked = checked?;
        let has = |wanted: &str| checked.iter().any(|(name, _)| name == wanted);
        for (name, attribute) in &self.entry.attributes {
            let is_needed = attribute.is_required && attribute.default.is_none();
            let is_key = attribute.key == KeyKind::Unique && attribute.default.is_none();
            if (is_needed || is_key) && !has(name) {
                let why = format!("an entry of {owner} requires {name}");
                return Err(EditError::Refused(why));
            }
        }
        Ok(Selector(checked))
    }
}

impl ConfigEdit {
    /// The entry that an added one replaces, by its keys in the builtin schema; none if the edit
    /// adds no entry.
    pub(crate) fn replaced_entry(&self) -> Option<ElementPath> {
        let (ConfigChange::Add { entry, .. } | ConfigChange::Ensure { entry }) = &self.change
        else {
            return None;
        };
        let (steps, selector) = entry.split_entry()?;
        let known = Schema::builtin().collection(&self.section, steps, selector);
        let keys = known.map_or_else(|_| selector.clone(), |known| known.keys(selector));
        let path = steps.iter().cloned();
        let path = path.fold(ElementPath::default(), ElementPath::with);
        Some(path.with(PathStep::Entry(keys)))
    }
}

/// Target of a step, for messages.
pub(crate) fn owner(section: &SectionPath, steps: &[PathStep]) -> String {
    let last = steps.iter().rev().find_map(|step| match step {
        PathStep::Element(name) => Some(name.as_str()),
        PathStep::Entry(_) => None,
    });
    let section_name = section.names().last().unwrap_or_default();
    last.unwrap_or(section_name).to_owned()
}

/// Attributes that every element may have.
pub(crate) fn is_lock(name: &str) -> bool {
    matches!(
        name,
        "lockAttributes"
            | "lockAllAttributesExcept"
            | "lockElements"
            | "lockAllElementsExcept"
            | "lockItem"
    )
}

fn attribute(document: &XmlDocument, id: Id) -> AttributeSchema {
    let value = |name: &str| document.attribute(id, name);
    let names = |kind: &str| {
        let names = document.children_named(id, kind);
        names
            .filter_map(|name| document.attribute(name, "name"))
            .map(str::to_owned)
            .collect()
    };
    let kind = match value("type").unwrap_or_default() {
        "bool" => ValueKind::Bool,
        "int" => ValueKind::Integer(i32::MIN.into(), i32::MAX.into()),
        "uint" => ValueKind::Integer(0, u32::MAX.into()),
        "int64" => ValueKind::Integer(i64::MIN, i64::MAX),
        "enum" => ValueKind::Enum(names("enum")),
        "flags" => ValueKind::Flags(names("flag")),
        "timeSpan" => match value("timeSpanFormat") {
            Some("seconds") => ValueKind::Seconds(1),
            Some("minutes") => ValueKind::Seconds(60),
            _ => ValueKind::TimeSpan,
        },
        _ => ValueKind::Text,
    };
    AttributeSchema {
        kind,
        is_required: is_true(document, id, "required"),
        key: if is_true(document, id, "isUniqueKey") {
            KeyKind::Unique
        } else if is_true(document, id, "isCombinedKey") {
            KeyKind::Combined
        } else {
            KeyKind::No
        },
        is_case_sensitive: is_true(document, id, "caseSensitive"),
        is_expanded: is_true(document, id, "expanded"),
        default: value("defaultValue").map(str::to_owned),
        may_be_infinite: is_true(document, id, "allowInfinite"),
        validation: validation(
            value("validationType").unwrap_or_default(),
            value("validationParameter").unwrap_or_default(),
        ),
        numbers: document
            .children_named(id, "enum")
            .filter_map(|name| {
                let number = document.attribute(name, "value")?.parse().ok()?;
                Some((number, document.attribute(name, "name")?.to_owned()))
            })
            .collect(),
    }
}

fn validation(kind: &str, parameter: &str) -> Validation {
    match kind {
        "nonEmptyString" => Validation::NotEmpty,
        "requireTrimmedString" => Validation::Trimmed,
        "applicationPoolName" => Validation::PoolName,
        "siteName" => Validation::SiteName,
        "applicationPath" | "virtualDirectoryPath" => Validation::UrlPath,
        "integerRange" | "timeSpanRange" => {
            let mut parts = parameter.split(',').map(str::trim);
            let mut number = || parts.next().and_then(|text| text.parse().ok());
            let (Some(least), Some(most)) = (number(), number()) else {
                return Validation::None;
            };
            Validation::Range {
                least,
                most,
                granularity: number().unwrap_or(1),
                is_excluded: parameter.ends_with("exclude"),
            }
        }
        _ => Validation::None,
    }
}

fn is_true(document: &XmlDocument, id: Id, name: &str) -> bool {
    document
        .attribute(id, name)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
