//! Reads calls of the cmdlets of `WebAdministration` and `IISAdministration` as configuration
//! changes.

mod configuration;
mod sites;

use super::change::{IisChange, Result, location, unclear};
use super::config::{ConfigLocation, Server};

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// `$true`, `$false`, or a switch.
    Bool(bool),
    /// `@{ … }`
    Table(Vec<(String, ParameterValue)>),
    /// Several.
    List(Vec<ParameterValue>),
}

/// A cmdlet and its parameters, all names in lower case and in full.
#[derive(Debug, Clone, Copy)]
pub struct CmdletCall<'a> {
    /// The cmdlet; PowerShell's own ones are those on the drive `IIS:`.
    pub name: &'a str,
    /// The parameters.
    pub parameters: &'a [(String, ParameterValue)],
}

/// Reads a call as changes of this server's configuration.
pub fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let order = match call.name {
        "set-itemproperty" | "new-item" | "remove-item" => sites::read_item(call, server),
        name if name.contains("-webconfiguration") => configuration::read(call, server),
        _ => sites::read(call, server),
    }?;
    order.normalized(server)
}

impl CmdletCall<'_> {
    fn value(&self, name: &str) -> Option<&ParameterValue> {
        let mut all = self.parameters.iter();
        all.find(|(own, _)| own == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        match self.value(name).map(ParameterValue::text) {
            Some(None) => unclear(format!("-{name} has more than one value")),
            text => Ok(text.flatten()),
        }
    }

    fn needed(&self, name: &str) -> Result<String> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.map_or_else(|| missing(name), Ok)
    }

    /// A value that may be a table or a list.
    fn needed_value(&self, name: &str) -> Result<&ParameterValue> {
        self.value(name).map_or_else(|| missing(name), Ok)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name) == Some(&ParameterValue::Bool(true))
    }

    /// Rejects a parameter that is not supported.
    fn without(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.value(name).is_some()) {
            Some(name) => unclear(format!("-{name} is not supported")),
            None => Ok(()),
        }
    }

    /// The location whose `web.config` is changed, or the location in the server's configuration.
    fn place(&self) -> Result<(Option<ConfigLocation>, Option<ConfigLocation>)> {
        let path = self.text("pspath")?.unwrap_or_default().replace('\\', "/");
        let lower = path.to_lowercase();
        let into = match lower.strip_prefix("iis:") {
            None => location(&path)?,
            Some(rest) => match rest.trim_matches('/') {
                "" | "sites" => None,
                rest if rest.starts_with("sites/") => {
                    location(&path[lower.find("sites/").unwrap_or_default() + "sites/".len()..])?
                }
                _ => return unclear(format!("{path} is not supported")),
            },
        };
        let at = self.text("location")?.filter(|text| !text.is_empty());
        let at = at
            .map(|text| location(&text.replace('\\', "/")))
            .transpose()?;
        match (into, at.flatten()) {
            (Some(_), Some(_)) => unclear("a -Location in the file of a site is not supported"),
            place => Ok(place),
        }
    }
}

fn missing<T>(name: &str) -> Result<T> {
    unclear(format!("-{name} is missing"))
}

impl ParameterValue {
    /// The value as PowerShell converts it to text; none for a list or table.
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            Self::Bool(true) => Some("True".to_owned()),
            Self::Bool(false) => Some("False".to_owned()),
            Self::Table(_) | Self::List(_) => None,
        }
    }

    /// The items of a list, or the value.
    fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            one => std::slice::from_ref(one),
        }
    }
}

#[cfg(test)]
mod tests;
