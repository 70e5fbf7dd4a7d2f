//! Cmdlets on sections of the configuration.

use super::super::change::{IisChange, IisChangeError, Result, unclear};
use super::super::config::{
    ConfigChange, ConfigEdit, ElementPath, FilterTarget, PathStep, SectionPath, Selector, Server,
};
use super::{CmdletCall, ParameterValue};

pub(super) fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let (into, at) = call.place()?;
    let filter = call.needed("filter")?;
    let found = server.schema().resolve_filter(&filter);
    // A cmdlet only warns of a filter without a target, and changes nothing.
    let found = found.map_err(|error| IisChangeError::Unclear(error.to_string()))?;
    let changes = match call.name {
        "set-webconfigurationproperty" => set_property(call, &found, server)?,
        "add-webconfigurationproperty" => {
            let name = call.text("name")?.unwrap_or_default();
            let element = below(&name, &found, server)?;
            add(call, &found, &element, server)?
        }
        "set-webconfiguration" => set_whole(call, &found, server)?,
        "add-webconfiguration" => add(call, &found, &found.element, server)?,
        "clear-webconfiguration" => clear(&found, server)?,
        other => {
            return unclear(format!("{other} is not supported"));
        }
    };
    let edits = changes.into_iter().map(|change| ConfigEdit {
        section: found.section.clone(),
        location: at.clone(),
        change,
    });
    Ok(IisChange {
        edits: edits.collect(),
        into,
        ..IisChange::default()
    })
}

/// The element of a property's name: `.` is the target of the filter.
fn below(name: &str, found: &FilterTarget, server: &Server) -> Result<ElementPath> {
    if found.attribute.is_some() {
        return unclear("the filter selects an attribute");
    }
    if matches!(name.to_lowercase().as_str(), "" | "." | "collection") {
        return Ok(found.element.clone());
    }
    let names = name.split('.');
    let element = names.fold(found.element.clone(), ElementPath::element);
    if !server.schema().is_collection(&found.section, &element) {
        return unclear(format!("{name} is not a collection of {}", found.section));
    }
    Ok(element)
}

fn set_property(
    call: CmdletCall<'_>,
    found: &FilterTarget,
    server: &Server,
) -> Result<Vec<ConfigChange>> {
    call.without(&["atelement", "atindex", "atname", "clr"])?;
    let name = call.needed("name")?;
    let value = call.needed_value("value")?;
    if found.attribute.is_some() {
        return unclear("the filter selects an attribute");
    }
    if name == "." {
        return of_element(found, &found.element, value, server);
    }
    let (owner, last) = found.element.clone().dotted(&name);
    match value {
        ParameterValue::Table(_) | ParameterValue::List(_) => {
            of_element(found, &owner.element(last), value, server)
        }
        value => Ok(vec![attribute(found, owner, last, value, server)?]),
    }
}

fn set_whole(
    call: CmdletCall<'_>,
    found: &FilterTarget,
    server: &Server,
) -> Result<Vec<ConfigChange>> {
    call.without(&["metadata"])?;
    let value = call.needed_value("value")?;
    match &found.attribute {
        Some(name) => Ok(vec![attribute(
            found,
            found.element.clone(),
            name,
            value,
            server,
        )?]),
        None => of_element(found, &found.element, value, server),
    }
}

/// The attributes of an element that is not a collection: the effect on a collection's entries is
/// unknown.
fn of_element(
    found: &FilterTarget,
    element: &ElementPath,
    value: &ParameterValue,
    server: &Server,
) -> Result<Vec<ConfigChange>> {
    let is_collection = server.schema().is_collection(&found.section, element);
    match value {
        ParameterValue::Table(entries) if !is_collection => {
            attributes_from_table(&found.section, element, entries, server)
        }
        _ => unclear("cannot set a whole collection: add and remove its entries"),
    }
}

fn attribute(
    found: &FilterTarget,
    element: ElementPath,
    name: &str,
    value: &ParameterValue,
    server: &Server,
) -> Result<ConfigChange> {
    Ok(ConfigChange::Set {
        value: text(&found.section, &element, name, value, server)?,
        attribute: name.to_owned(),
        element,
    })
}

/// Adds the entries of a value to a collection. A table in an entry has the attributes of a child
/// element.
fn add(
    call: CmdletCall<'_>,
    found: &FilterTarget,
    collection: &ElementPath,
    server: &Server,
) -> Result<Vec<ConfigChange>> {
    call.without(&["atelement", "atname"])?;
    let first = match call.value("atindex") {
        None => false,
        Some(ParameterValue::Number(0)) => true,
        Some(_) => return unclear("-AtIndex is supported with 0 only"),
    };
    if !server.schema().is_collection(&found.section, collection) {
        return unclear("the target is not a collection");
    }
    let value = call.needed_value("value")?;
    let mut changes = Vec::new();
    for value in value.items() {
        let ParameterValue::Table(all) = value else {
            return unclear("unsupported entry: expected @{name='value'}");
        };
        let is_inner =
            |(_, value): &&(String, ParameterValue)| matches!(value, ParameterValue::Table(_));
        let own: Vec<_> = all.iter().filter(|it| !is_inner(it)).cloned().collect();
        let own = entry(
            &found.section,
            collection,
            &ParameterValue::Table(own),
            server,
        )?;
        let at = collection.clone().with(PathStep::Entry(own));
        changes.push(ConfigChange::New {
            entry: at.clone(),
            first,
        });
        for (name, value) in all.iter().filter(is_inner) {
            changes.extend(of_element(found, &at.clone().element(name), value, server)?);
        }
    }
    Ok(changes)
}

fn clear(found: &FilterTarget, server: &Server) -> Result<Vec<ConfigChange>> {
    let element = found.element.clone();
    let element = match &found.attribute {
        Some(name) => element.element(name),
        None => element,
    };
    if server.schema().is_collection(&found.section, &element) {
        return unclear("the effect of clearing a collection on inherited entries is unknown");
    }
    if element.split_entry().is_some() {
        return Ok(vec![ConfigChange::Take { entry: element }]);
    }
    Ok(vec![ConfigChange::Clear { element }])
}

/// The attribute's text for a value.
pub(super) fn text(
    section: &SectionPath,
    element: &ElementPath,
    name: &str,
    value: &ParameterValue,
    server: &Server,
) -> Result<String> {
    let schema = server.schema();
    let written = match value {
        ParameterValue::Text(text) => Some(text.clone()),
        ParameterValue::Bool(value) => Some(value.to_string()),
        ParameterValue::Number(number) => schema.enum_text(section, element, name, *number),
        ParameterValue::Table(_) | ParameterValue::List(_) => None,
    };
    written.ok_or_else(|| {
        let value = value.text().unwrap_or_else(|| "a table".to_owned());
        IisChangeError::Unclear(format!("the effect of {value} for {name} is unknown"))
    })
}

pub(super) fn attributes_from_table(
    section: &SectionPath,
    element: &ElementPath,
    entries: &[(String, ParameterValue)],
    server: &Server,
) -> Result<Vec<ConfigChange>> {
    if entries.is_empty() {
        return unclear("the table is empty");
    }
    let set = |(name, value): &(String, ParameterValue)| {
        Ok(ConfigChange::Set {
            element: element.clone(),
            attribute: name.clone(),
            value: text(section, element, name, value, server)?,
        })
    };
    entries.iter().map(set).collect()
}

/// The attributes of an entry of a collection.
pub(super) fn entry(
    section: &SectionPath,
    collection: &ElementPath,
    value: &ParameterValue,
    server: &Server,
) -> Result<Selector> {
    let ParameterValue::Table(all) = value else {
        return unclear("unsupported entry: expected @{name='value'}");
    };
    if all.is_empty() {
        return unclear("the table is empty");
    }
    let attribute = |(name, value): &(String, ParameterValue)| {
        let entry = collection.clone().entry([(name.as_str(), "")]);
        Ok((name.clone(), text(section, &entry, name, value, server)?))
    };
    let attributes: Result<_, _> = all.iter().map(attribute).collect();
    attributes.map(Selector)
}
