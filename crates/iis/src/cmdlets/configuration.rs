//! Cmdlets on sections of the configuration.

use super::super::config::{
    Change, ConfigEdit, ElementPath, Found, Location, SectionPath, Selector, Server, Step,
};
use super::super::order::{Order, OrderError, edit, new, take};
use super::{Call, Value};

/// The section with the handlers.
const HANDLERS: &str = "system.webServer/handlers";

/// The section with the modules that there are.
const GLOBAL_MODULES: &str = "system.webServer/globalModules";

/// The section with the modules that are in use.
const MODULES: &str = "system.webServer/modules";

pub(super) fn read(call: Call<'_>, server: &Server) -> Result<Order, OrderError> {
    let (into, at) = call.place()?;
    let filter = call.needed("filter")?;
    let found = server.schema().filtered(&filter)?;
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
            let value = call
                .value("atelement")
                .ok_or_else(|| OrderError::unclear("it lacks -AtElement"))?;
            let entry = entry(&found.section, &element, value, server)?;
            let entry = element.with(Step::Entry(entry));
            vec![Change::Take { entry }]
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
                return Err(OrderError::unclear(format!(
                    "-Metadata {kind} is not understood"
                )));
            }
            None => set_whole(call, &found, server)?,
        },
        "add-webconfiguration" => add(call, &found, &found.element, server)?,
        "clear-webconfiguration" => clear(found.element.clone(), &found, server)?,
        other => {
            return Err(OrderError::unclear(format!("{other} is not understood")));
        }
    };
    let edits = changes.into_iter().map(|change| ConfigEdit {
        section: found.section.clone(),
        location: at.clone(),
        change,
    });
    Ok(Order {
        edits: edits.collect(),
        into,
        ..Order::default()
    })
}

/// The element of a property's name: `.` is the one that the filter leads to.
fn below(
    element: &ElementPath,
    name: &str,
    found: &Found,
    server: &Server,
) -> Result<ElementPath, OrderError> {
    if found.attribute.is_some() {
        return Err(OrderError::unclear("the filter leads to an attribute"));
    }
    if matches!(name.to_lowercase().as_str(), "" | "." | "collection") {
        return Ok(element.clone());
    }
    let element = name.split('.').fold(element.clone(), ElementPath::element);
    if !server.schema().is_collection(&found.section, &element) {
        return Err(OrderError::unclear(format!(
            "{name} is not a collection of {}",
            found.section
        )));
    }
    Ok(element)
}

fn set_property(call: Call<'_>, found: &Found, server: &Server) -> Result<Vec<Change>, OrderError> {
    call.without(&["atelement", "atindex", "atname", "clr"])?;
    let name = call.needed("name")?;
    let value = call
        .value("value")
        .ok_or_else(|| OrderError::unclear("it lacks -Value"))?;
    if found.attribute.is_some() {
        return Err(OrderError::unclear("the filter leads to an attribute"));
    }
    if name == "." {
        return of_element(found, &found.element, value, server);
    }
    let mut names: Vec<&str> = name.split('.').collect();
    let last = names.pop().unwrap_or_default();
    let owner = names
        .into_iter()
        .fold(found.element.clone(), ElementPath::element);
    match value {
        Value::Table(_) | Value::List(_) => of_element(found, &owner.element(last), value, server),
        value => Ok(vec![attribute(found, owner, last, value, server)?]),
    }
}

fn set_whole(call: Call<'_>, found: &Found, server: &Server) -> Result<Vec<Change>, OrderError> {
    let value = call
        .value("value")
        .ok_or_else(|| OrderError::unclear("it lacks -Value"))?;
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

/// The attributes of an element that is not a collection: what becomes of one's entries is not certain.
fn of_element(
    found: &Found,
    element: &ElementPath,
    value: &Value,
    server: &Server,
) -> Result<Vec<Change>, OrderError> {
    let is_collection = server.schema().is_collection(&found.section, element);
    match value {
        Value::Table(entries) if !is_collection => {
            let edits = of_table(&found.section, element, entries, server)?;
            Ok(edits.into_iter().map(|edit| edit.change).collect())
        }
        _ => Err(OrderError::unclear(
            "a whole collection is set: add and remove its entries",
        )),
    }
}

fn attribute(
    found: &Found,
    element: ElementPath,
    name: &str,
    value: &Value,
    server: &Server,
) -> Result<Change, OrderError> {
    Ok(Change::Set {
        value: text(&found.section, &element, name, value, server)?,
        attribute: name.to_owned(),
        element,
    })
}

/// Adds the entries of a value to a collection; what is a table in an entry are attributes of an
/// element of it.
fn add(
    call: Call<'_>,
    found: &Found,
    collection: &ElementPath,
    server: &Server,
) -> Result<Vec<Change>, OrderError> {
    call.without(&["atelement", "atname"])?;
    let first = match call.value("atindex") {
        None => false,
        Some(Value::Number(0)) => true,
        Some(_) => return Err(OrderError::unclear("-AtIndex is understood as 0 only")),
    };
    if !server.schema().is_collection(&found.section, collection) {
        return Err(OrderError::unclear("it adds to what is not a collection"));
    }
    let value = call
        .value("value")
        .ok_or_else(|| OrderError::unclear("it lacks -Value"))?;
    let mut changes = Vec::new();
    for value in value.items() {
        let Value::Table(all) = value else {
            return Err(OrderError::unclear(
                "an entry is not understood: expected @{name='value'}",
            ));
        };
        let is_inner = |(_, value): &&(String, Value)| matches!(value, Value::Table(_));
        let own: Vec<_> = all.iter().filter(|it| !is_inner(it)).cloned().collect();
        let own = entry(&found.section, collection, &Value::Table(own), server)?;
        let at = collection.clone().with(Step::Entry(own));
        changes.push(Change::New {
            entry: at.clone(),
            first,
        });
        for (name, value) in all.iter().filter(is_inner) {
            changes.extend(of_element(found, &at.clone().element(name), value, server)?);
        }
    }
    Ok(changes)
}

fn clear(element: ElementPath, found: &Found, server: &Server) -> Result<Vec<Change>, OrderError> {
    let element = match &found.attribute {
        Some(name) => element.element(name),
        None => element,
    };
    if server.schema().is_collection(&found.section, &element) {
        return Err(OrderError::unclear(
            "what clearing a collection leaves of inherited entries is not certain",
        ));
    }
    if element.split_entry().is_some() {
        return Ok(vec![Change::Take { entry: element }]);
    }
    Ok(vec![Change::Clear { element }])
}

fn override_mode(
    call: Call<'_>,
    found: Found,
    location: Option<Location>,
) -> Result<Order, OrderError> {
    let value = call.needed("value")?;
    let allowed = match value.to_lowercase().as_str() {
        "allow" => true,
        "deny" => false,
        _ => {
            return Err(OrderError::unclear(format!(
                "the overrideMode {value} is not understood"
            )));
        }
    };
    if !found.element.steps().is_empty() || found.attribute.is_some() {
        return Err(OrderError::unclear(
            "only whole sections have an overrideMode",
        ));
    }
    Ok(Order::of(vec![ConfigEdit {
        section: found.section,
        location,
        change: Change::Delegate { allowed },
    }]))
}

/// What is written into an attribute for a value.
pub(super) fn text(
    section: &SectionPath,
    element: &ElementPath,
    name: &str,
    value: &Value,
    server: &Server,
) -> Result<String, OrderError> {
    let written = match value {
        Value::Text(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => server.schema().of_number(section, element, name, *number),
        Value::Table(_) | Value::List(_) => None,
    };
    written.ok_or_else(|| unclear_value(name, value))
}

fn unclear_value(name: &str, value: &Value) -> OrderError {
    let value = value.text().unwrap_or_else(|| "a table".to_owned());
    OrderError::unclear(format!("what {value} means for {name} is not certain"))
}

/// The attributes of an element.
pub(super) fn of_table(
    section: &SectionPath,
    element: &ElementPath,
    entries: &[(String, Value)],
    server: &Server,
) -> Result<Vec<ConfigEdit>, OrderError> {
    if entries.is_empty() {
        return Err(OrderError::unclear("its table is empty"));
    }
    let set = |(name, value): &(String, Value)| {
        let value = text(section, element, name, value, server)?;
        let change = Change::Set {
            element: element.clone(),
            attribute: name.clone(),
            value,
        };
        Ok(edit(section.as_str(), change))
    };
    entries.iter().map(set).collect()
}

/// The attributes of an entry of a collection.
pub(super) fn entry(
    section: &SectionPath,
    collection: &ElementPath,
    value: &Value,
    server: &Server,
) -> Result<Selector, OrderError> {
    let Value::Table(all) = value else {
        return Err(OrderError::unclear(
            "an entry is not understood: expected @{name='value'}",
        ));
    };
    let mut attributes: Vec<(String, String)> = Vec::new();
    for (name, value) in all {
        let written = match value {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => {
                let schema = server.schema();
                schema.of_number_in_entry(section, collection, name, *number)
            }
            Value::Table(_) | Value::List(_) => None,
        };
        let written = written.ok_or_else(|| unclear_value(name, value))?;
        attributes.push((name.clone(), written));
    }
    if attributes.is_empty() {
        return Err(OrderError::unclear("its table is empty"));
    }
    let pairs = attributes.iter();
    Ok(Selector::of(
        pairs.map(|(name, value)| (name.as_str(), value.as_str())),
    ))
}

/// `New-WebHandler`, `New-WebGlobalModule` and what belongs to them.
pub(super) fn handler_or_module(call: Call<'_>) -> Result<Order, OrderError> {
    let name = call.needed("name")?;
    let (into, at) = call.place()?;
    let attributes = |names: &[(&'static str, &str)]| {
        let mut all = vec![("name", name.clone())];
        for (attribute, parameter) in names {
            all.extend(call.text(parameter)?.map(|text| (*attribute, text)));
        }
        Ok::<_, OrderError>(all)
    };
    let entry = |all: &[(&'static str, String)]| {
        ElementPath::default().entry(all.iter().map(|(name, text)| (*name, text.as_str())))
    };
    let own = ElementPath::default().entry([("name", name.as_str())]);
    let mut order = Order::of(vec![match call.name {
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
