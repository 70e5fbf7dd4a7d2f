//! Cmdlets on sections of the configuration.

use super::super::change::{IisChange, IisChangeError, Result, unclear};
use super::super::config::{
    ConfigChange, ElementPath, FilterTarget, PathStep, Schema, SectionPath, Selector, Server,
};
use super::{CmdletCall, ParameterValue};

pub(super) fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let place = call.place()?;
    let filter = call.needed("filter")?;
    let found = server.schema().resolve_filter(&filter);
    // A cmdlet only warns of a filter without a target, and changes nothing.
    let found = found.map_err(|error| IisChangeError::Unclear(error.to_string()))?;
    let section = Section {
        path: &found.section,
        schema: server.schema(),
    };
    let changes = match call.name {
        "set-webconfigurationproperty" => section.set_property(call, &found)?,
        "add-webconfigurationproperty" => {
            let name = call.text("name")?.unwrap_or_default();
            section.add(call, &section.below(&name, &found)?)?
        }
        "set-webconfiguration" => section.set_whole(call, &found)?,
        "add-webconfiguration" => section.add(call, &found.element)?,
        "clear-webconfiguration" => vec![section.clear(&found)?],
        other => return unclear(format!("{other} is not supported")),
    };
    Ok(IisChange::at(place, &found.section, changes))
}

/// A section whose schema says what values of PowerShell mean.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) path: &'a SectionPath,
    pub(super) schema: &'a Schema,
}

impl Section<'_> {
    pub(super) fn is_collection(self, element: &ElementPath) -> bool {
        self.schema.is_collection(self.path, element)
    }

    /// The element of a property's name: `.` is the target of the filter.
    fn below(self, name: &str, found: &FilterTarget) -> Result<ElementPath> {
        if found.attribute.is_some() {
            return unclear("the filter selects an attribute");
        }
        if matches!(name.to_lowercase().as_str(), "" | "." | "collection") {
            return Ok(found.element.clone());
        }
        let names = name.split('.');
        let element = names.fold(found.element.clone(), ElementPath::element);
        if !self.is_collection(&element) {
            return unclear(format!("{name} is not a collection of {}", self.path));
        }
        Ok(element)
    }

    fn set_property(self, call: CmdletCall<'_>, found: &FilterTarget) -> Result<Vec<ConfigChange>> {
        call.without(&["atelement", "atindex", "atname", "clr"])?;
        let name = call.needed("name")?;
        let value = call.needed_value("value")?;
        if found.attribute.is_some() {
            return unclear("the filter selects an attribute");
        }
        if name == "." {
            return self.set_element(&found.element, value);
        }
        let (owner, last) = found.element.clone().dotted(&name);
        match value {
            ParameterValue::Table(_) | ParameterValue::List(_) => {
                self.set_element(&owner.element(last), value)
            }
            value => Ok(vec![self.set(owner, last, value)?]),
        }
    }

    fn set_whole(self, call: CmdletCall<'_>, found: &FilterTarget) -> Result<Vec<ConfigChange>> {
        call.without(&["metadata"])?;
        let value = call.needed_value("value")?;
        match &found.attribute {
            Some(name) => Ok(vec![self.set(found.element.clone(), name, value)?]),
            None => self.set_element(&found.element, value),
        }
    }

    /// Sets the attributes of an element that is not a collection: the effect on a collection's
    /// entries is unknown.
    fn set_element(
        self,
        element: &ElementPath,
        value: &ParameterValue,
    ) -> Result<Vec<ConfigChange>> {
        match value {
            ParameterValue::Table(entries) if !self.is_collection(element) => {
                self.set_all(element, entries)
            }
            _ => unclear("cannot set a whole collection: add and remove its entries"),
        }
    }

    pub(super) fn set(
        self,
        element: ElementPath,
        name: &str,
        value: &ParameterValue,
    ) -> Result<ConfigChange> {
        Ok(ConfigChange::Set {
            value: self.text(&element, name, value)?,
            attribute: name.to_owned(),
            element,
        })
    }

    pub(super) fn set_all(
        self,
        element: &ElementPath,
        entries: &[(String, ParameterValue)],
    ) -> Result<Vec<ConfigChange>> {
        if entries.is_empty() {
            return unclear("the table is empty");
        }
        let set = |(name, value): &(String, _)| self.set(element.clone(), name, value);
        entries.iter().map(set).collect()
    }

    /// Adds the entries of a value to a collection. A table in an entry has the attributes of a
    /// child element.
    fn add(self, call: CmdletCall<'_>, collection: &ElementPath) -> Result<Vec<ConfigChange>> {
        call.without(&["atelement", "atname"])?;
        let first = match call.value("atindex") {
            None => false,
            Some(ParameterValue::Number(0)) => true,
            Some(_) => return unclear("-AtIndex is supported with 0 only"),
        };
        if !self.is_collection(collection) {
            return unclear("the target is not a collection");
        }
        let mut changes = Vec::new();
        for value in call.needed_value("value")?.items() {
            let ParameterValue::Table(all) = value else {
                return unclear("unsupported entry: expected @{name='value'}");
            };
            let is_inner =
                |(_, value): &&(String, ParameterValue)| matches!(value, ParameterValue::Table(_));
            let own = all.iter().filter(|it| !is_inner(it)).cloned().collect();
            let own = self.entry(collection, &ParameterValue::Table(own))?;
            let at = collection.clone().with(PathStep::Entry(own));
            let entry = at.clone();
            changes.push(ConfigChange::New { entry, first });
            for (name, value) in all.iter().filter(is_inner) {
                changes.extend(self.set_element(&at.clone().element(name), value)?);
            }
        }
        Ok(changes)
    }

    fn clear(self, found: &FilterTarget) -> Result<ConfigChange> {
        let element = found.element.clone();
        let element = match &found.attribute {
            Some(name) => element.element(name),
            None => element,
        };
        if self.is_collection(&element) {
            return unclear("the effect of clearing a collection on inherited entries is unknown");
        }
        Ok(match element.split_entry() {
            Some(_) => ConfigChange::Take { entry: element },
            None => ConfigChange::Clear { element },
        })
    }

    /// The attribute's text for a value.
    fn text(self, element: &ElementPath, name: &str, value: &ParameterValue) -> Result<String> {
        let written = match value {
            ParameterValue::Text(text) => Some(text.clone()),
            ParameterValue::Bool(value) => Some(value.to_string()),
            ParameterValue::Number(number) => {
                self.schema.enum_text(self.path, element, name, *number)
            }
            ParameterValue::Table(_) | ParameterValue::List(_) => None,
        };
        written.ok_or_else(|| {
            let value = value.text().unwrap_or_else(|| "a table".to_owned());
            IisChangeError::Unclear(format!("the effect of {value} for {name} is unknown"))
        })
    }

    /// The attributes of an entry of a collection.
    pub(super) fn entry(
        self,
        collection: &ElementPath,
        value: &ParameterValue,
    ) -> Result<Selector> {
        let ParameterValue::Table(all) = value else {
            return unclear("unsupported entry: expected @{name='value'}");
        };
        if all.is_empty() {
            return unclear("the table is empty");
        }
        let attribute = |(name, value): &(String, ParameterValue)| {
            let entry = collection.clone().entry([(name.as_str(), "")]);
            Ok((name.clone(), self.text(&entry, name, value)?))
        };
        let attributes: Result<_, _> = all.iter().map(attribute).collect();
        attributes.map(Selector)
    }
}
