//! Cmdlets on IIS's configuration, carried on by their names and parameters.

use super::super::image::{Action, Iis};
use super::super::trouble::Trouble;
use super::ast::Command;
use super::bind::{Given, Takes};
use super::eval::Shell;
use super::value::Value;

const SITE: Takes = Takes {
    values: &[
        "name",
        "port",
        "ipaddress",
        "hostheader",
        "physicalpath",
        "applicationpool",
        "id",
    ],
    switches: &["force", "ssl"],
    positions: &["name"],
};

const NAME: Takes = Takes {
    values: &["name"],
    switches: &["force"],
    positions: &["name"],
};

const UNDER_SITE: Takes = Takes {
    values: &["name", "site", "physicalpath", "applicationpool"],
    switches: &["force"],
    positions: &["name"],
};

const BINDING: Takes = Takes {
    values: &[
        "name",
        "protocol",
        "port",
        "ipaddress",
        "hostheader",
        "bindinginformation",
    ],
    switches: &["force"],
    positions: &["name"],
};

const CONFIGURATION: Takes = Takes {
    values: &[
        "pspath",
        "filter",
        "name",
        "value",
        "location",
        "metadata",
        "atelement",
    ],
    switches: &["force"],
    positions: &[],
};

fn takes(name: &str) -> Option<&'static Takes> {
    Some(match name {
        "new-website" => &SITE,
        "remove-website" | "new-webapppool" | "remove-webapppool" => &NAME,
        "new-webapplication" | "new-webvirtualdirectory" => &UNDER_SITE,
        "new-webbinding" | "remove-webbinding" => &BINDING,
        "set-webconfigurationproperty"
        | "add-webconfigurationproperty"
        | "set-webconfiguration"
        | "add-webconfiguration" => &CONFIGURATION,
        _ => return None,
    })
}

/// Whether a cmdlet is one of IIS's that are carried on.
pub(super) fn is_cmdlet(name: &str) -> bool {
    takes(name).is_some()
}

impl Shell<'_, '_> {
    pub(super) fn iis_cmdlet(&mut self, name: &str, command: &Command) -> Result<Value, Trouble> {
        let Some(takes) = takes(name) else {
            return Err(Trouble::unclear("the cmdlet is not understood"));
        };
        let given = self.given(command, takes)?;
        self.iis(name, parameters(&given)?)
    }

    fn iis(&mut self, name: &str, parameters: Vec<(String, String)>) -> Result<Value, Trouble> {
        self.apply(Action::Iis(Iis::Cmdlet {
            name: name.to_owned(),
            parameters,
        }))?;
        Ok(Value::Null)
    }

    /// `New-Item IIS:\AppPools\x`
    pub(super) fn iis_item(&mut self, path: &str, given: &Given) -> Result<Value, Trouble> {
        let names: Vec<&str> = names(path);
        let is_plain = given
            .entries()
            .iter()
            .all(|(name, _)| matches!(*name, "path" | "name" | "force"));
        match names.as_slice() {
            [folder, pool] if folder.eq_ignore_ascii_case("apppools") && is_plain => self.iis(
                "new-webapppool",
                vec![("name".to_owned(), (*pool).to_owned())],
            ),
            _ => Err(Trouble::unclear("what is made on IIS: is not understood")),
        }
    }

    /// `Set-ItemProperty IIS:\AppPools\x -Name … -Value …`
    pub(super) fn iis_property(&mut self, path: &str, given: &Given) -> Result<Value, Trouble> {
        let names = names(path);
        let [folder, name] = names.as_slice() else {
            return Err(Trouble::unclear(
                "what is changed on IIS: is not understood",
            ));
        };
        if !["apppools", "sites"].contains(&folder.to_lowercase().as_str()) {
            return Err(Trouble::unclear(
                "what is changed on IIS: is not understood",
            ));
        }
        let parameters = vec![
            (
                "path".to_owned(),
                format!(r"{}\{name}", folder.to_lowercase()),
            ),
            ("name".to_owned(), given.needed("name")?),
            ("value".to_owned(), given.needed("value")?),
        ];
        self.iis("set-itemproperty", parameters)
    }
}

fn names(path: &str) -> Vec<&str> {
    path.split(['\\', '/'])
        .filter(|name| !name.is_empty())
        .collect()
}

/// The parameters as texts; a table is `name=value` with line ends between.
fn parameters(given: &Given) -> Result<Vec<(String, String)>, Trouble> {
    given
        .entries()
        .iter()
        .map(|(name, value)| {
            let text = match value {
                Value::Bool(true) => "true".to_owned(),
                Value::Bool(false) => "false".to_owned(),
                Value::Table(entries) => {
                    let lines: Vec<String> = entries
                        .iter()
                        .map(|(key, value)| Ok(format!("{key}={}", value.text()?)))
                        .collect::<Result<_, Trouble>>()?;
                    lines.join("\n")
                }
                value => value.text()?,
            };
            Ok(((*name).to_owned(), text))
        })
        .collect()
}
