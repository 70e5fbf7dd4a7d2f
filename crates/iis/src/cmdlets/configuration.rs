//! Cmdlets on sections of the configuration.

use super::super::change::{
    GLOBAL_MODULES, IisChange, IisChangeError, MODULES, Result, entry_named, new, take, unclear,
};
use super::super::config::{
    ConfigChange, ConfigEdit, ConfigLocation, ElementPath, FilterTarget, PathStep, SectionPath,
    Selector, Server,
};
use super::{CmdletCall, ParameterValue};

/// The section with the handlers.
const HANDLERS: &str = "system.webServer/handlers";

pub(super) fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let (into, at) = call.place()?;
    let filter = call.needed("filter")?;
    let found = server.schema().resolve_filter(&filter)?;
    let changes = match call.name {
        "set-webconfigurationproperty" => set_property(call, &found, server)?,
        "add-webconfigurationproperty" => {
            let name = call.text("name")?.unwrap_or_default();
            let element = below(&found.element, &name, &found, server)?;
            add(call, &found, &element, server)?
        }
        "remove-webconfigurationproperty" => {
            let name = call.text("name")?.unwrap_or_default();
            let element = below(&found.element, &name, &found, server)?;
            let value = call.needed_value("atelement")?;
            let entry = entry(&found.section, &element, value, server)?;
            let entry = element.with(PathStep::Entry(entry));
            vec![ConfigChange::Take { entry }]
        }
        "clear-webconfigurationproperty" => {
            let name = call.needed("name")?;
            let names = name.split('.');
            clear(
                names.fold(found.element.clone(), ElementPath::element),
                &found,
                server,
            )?
        }
        "set-webconfiguration" => match call.text("metadata")? {
            Some(kind) if kind.eq_ignore_ascii_case("overrideMode") => {
                return override_mode(call, found, into.or(at));
            }
            Some(kind) => {
                return unclear(format!("-Metadata {kind} is not supported"));
            }
            None => set_whole(call, &found, server)?,
        },
        "add-webconfiguration" => add(call, &found, &found.element, server)?,
        "clear-webconfiguration" => clear(found.element.clone(), &found, server)?,
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
fn below(
    element: &ElementPath,
    name: &str,
    found: &FilterTarget,
    server: &Server,
) -> Result<ElementPath> {
    if found.attribute.is_some() {
        return unclear("the filter selects an attribute");
    }
    if matches!(name.to_lowercase().as_str(), "" | "." | "collection") {
        return Ok(element.clone());
    }
    let element = name.split('.').fold(element.clone(), ElementPath::element);
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

fn clear(element: ElementPath, found: &FilterTarget, server: &Server) -> Result<Vec<ConfigChange>> {
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

fn override_mode(
    call: CmdletCall<'_>,
    found: FilterTarget,
    location: Option<ConfigLocation>,
) -> Result<IisChange> {
    let value = call.needed("value")?;
    let allowed = match value.to_lowercase().as_str() {
        "allow" => true,
        "deny" => false,
        _ => {
            return unclear(format!("the overrideMode {value} is not supported"));
        }
    };
    if !found.element.steps().is_empty() || found.attribute.is_some() {
        return unclear("only whole sections have an overrideMode");
    }
    Ok(IisChange::new(vec![ConfigEdit {
        section: found.section,
        location,
        change: ConfigChange::Delegate { allowed },
    }]))
}

/// The attribute's text for a value.
pub(super) fn text(
    section: &SectionPath,
    element: &ElementPath,
    name: &str,
    value: &ParameterValue,
    server: &Server,
) -> Result<String> {
    let of_number = |number| server.schema().enum_text(section, element, name, number);
    written(name, value, of_number)
}

fn written(
    name: &str,
    value: &ParameterValue,
    of_number: impl FnOnce(i64) -> Option<String>,
) -> Result<String> {
    let written = match value {
        ParameterValue::Text(text) => Some(text.clone()),
        ParameterValue::Bool(value) => Some(value.to_string()),
        ParameterValue::Number(number) => of_number(*number),
        ParameterValue::Table(_) | ParameterValue::List(_) => None,
    };
    written.ok_or_else(|| {
        let value = value.text().unwrap_or_else(|| "a table".to_owned());
        IisChangeError::Unclear(format!("the effect of {value} for {name} is unknown"))
    })
}

/// The attributes of an element.
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
    let schema = server.schema();
    let attribute = |(name, value): &(String, ParameterValue)| {
        let of_number = |number| schema.entry_enum_text(section, collection, name, number);
        Ok((name.clone(), written(name, value, of_number)?))
    };
    let attributes: Result<_, _> = all.iter().map(attribute).collect();
    attributes.map(Selector)
}

/// `New-WebHandler`, `New-WebGlobalModule` and related cmdlets.
pub(super) fn handler_or_module(call: CmdletCall<'_>) -> Result<IisChange> {
    let name = call.needed("name")?;
    let (into, at) = call.place()?;
    let attributes = |names: &[(&'static str, &str)]| {
        let mut all = vec![("name", name.clone())];
        for (attribute, parameter) in names {
            all.extend(call.text(parameter)?.map(|text| (*attribute, text)));
        }
        Ok::<_, IisChangeError>(all)
    };
    let entry = |all: &[(&'static str, String)]| {
        ElementPath::default().entry(all.iter().map(|(name, text)| (*name, text.as_str())))
    };
    let own = entry_named(&name);
    let mut order = IisChange::new(vec![match call.name {
        "new-webhandler" => {
            call.needed("path")?;
            call.needed("verb")?;
            new(
                HANDLERS,
                entry(&attributes(&[
                    ("path", "path"),
                    ("verb", "verb"),
                    ("type", "type"),
                    ("modules", "modules"),
                    ("scriptProcessor", "scriptprocessor"),
                    ("resourceType", "resourcetype"),
                    ("requireAccess", "requiredaccess"),
                    ("preCondition", "precondition"),
                ])?),
            )
        }
        "remove-webhandler" => take(HANDLERS, own),
        "new-webglobalmodule" => {
            call.needed("image")?;
            let names = [("image", "image"), ("preCondition", "precondition")];
            new(GLOBAL_MODULES, entry(&attributes(&names)?))
        }
        "enable-webglobalmodule" => new(MODULES, own),
        _ => take(MODULES, own),
    }]);
    for edit in &mut order.edits {
        edit.location.clone_from(&at);
    }
    order.into = into;
    Ok(order)
}
