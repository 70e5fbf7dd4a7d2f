//! Environment variables of a RUN line's process.

use wincimg_registry::{RegistryEdit, TypedData};
use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::{
    environment_key, filled_in, fixed_variable, is_unrecorded_variable,
};

use super::error::ScriptError;
use super::image::{ImageAction, ImageState, Lookup};

/// Returns true if a user of an image has all rights; without a name it is the default user.
pub fn is_administrator(user: &str) -> bool {
    let name = user.rsplit(['\\', '/']).next().unwrap_or_default();
    ["", "ContainerAdministrator", "Administrator", "SYSTEM"]
        .iter()
        .any(|known| same(known, name))
}

/// Variables of a process; names are case-insensitive.
#[derive(Clone)]
pub(super) struct Variables<'a> {
    /// Those that it was given.
    given: &'a dyn Fn(&str) -> Option<String>,
    set: Vec<(String, Option<String>)>,
    user: String,
}

impl<'a> Variables<'a> {
    /// Creates the variables from those of the image configuration and the build arguments.
    pub(super) fn new(given: &'a dyn Fn(&str) -> Option<String>, user: Option<&str>) -> Self {
        let user = user.filter(|user| !user.is_empty());
        Self {
            given,
            set: Vec::new(),
            user: user.unwrap_or("ContainerAdministrator").to_owned(),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        self.set.retain(|(other, _)| !same(other, name));
        self.set.push((name.to_owned(), value));
    }

    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Returns true if the user has all rights.
    pub(super) fn is_administrator(&self) -> bool {
        is_administrator(&self.user)
    }

    /// Profile folder of the user, if it is one of the two accounts of every image.
    pub(super) fn profile(&self) -> Option<String> {
        ["ContainerAdministrator", "ContainerUser"]
            .into_iter()
            .find(|name| same(name, &self.user))
            .map(|name| format!(r"C:\Users\{name}"))
    }

    /// File of the user's registry hive, if it is one of these accounts.
    pub(super) fn hive(&self) -> Option<ImagePath> {
        format!(r"{}\NTUSER.DAT", self.profile()?).parse().ok()
    }

    /// Returns true for a folder of the user's profile that exists in every container.
    pub(super) fn is_profile_folder(&self, path: &ImagePath) -> bool {
        let Some(profile) = self.profile() else {
            return false;
        };
        let path = path.to_string();
        let path = path.trim_end_matches('\\');
        let temp = format!(r"{profile}\AppData\Local\Temp");
        let Some((start, rest)) = temp.split_at_checked(path.len()) else {
            return false;
        };
        start.eq_ignore_ascii_case(path) && (rest.is_empty() || rest.starts_with('\\'))
    }

    /// The value that the process itself set or was given.
    pub(super) fn own(&self, name: &str) -> Option<Lookup<String>> {
        let set = self.set.iter().find(|(other, _)| same(other, name));
        let value = match set {
            Some((_, value)) => value.clone(),
            None => Some((self.given)(name)?),
        };
        Some(value.map_or(Lookup::Absent, Lookup::Present))
    }

    /// The value that a process gets from the image when it starts.
    pub(super) fn recorded(&self, name: &str, image: &dyn ImageState) -> Lookup<String> {
        if let Some(value) = fixed_variable(name) {
            return Lookup::Present(value.to_owned());
        }
        if let Some(value) = self.user_variable(name, image) {
            return value;
        }
        if same(name, "Path") {
            return self.path(image);
        }
        if is_unrecorded_variable(name) {
            return Lookup::Unknown;
        }
        machine_variable(name, image)
    }

    /// Variable that a line, or an image below, set in the user's hive.
    fn variable_of_hive(&self, name: &str, image: &dyn ImageState) -> Option<Lookup<String>> {
        let found = image.user_variable(&self.hive()?, name);
        let profile = self.profile().unwrap_or_default();
        let value = found.and_then(|data| match data.typed() {
            TypedData::Text(text) => filled_in(&text, &[("USERPROFILE", &profile)])
                .map_or(Lookup::Unknown, Lookup::Present),
            _ => Lookup::Unknown,
        });
        (value != Lookup::Absent).then_some(value)
    }

    fn user_variable(&self, name: &str, image: &dyn ImageState) -> Option<Lookup<String>> {
        if !same(name, "Path")
            && let Some(value) = self.variable_of_hive(name, image)
        {
            return Some(value);
        }
        let below = match name.to_ascii_uppercase().as_str() {
            "USERPROFILE" => "",
            "APPDATA" => r"\AppData\Roaming",
            "LOCALAPPDATA" => r"\AppData\Local",
            "TEMP" | "TMP" => r"\AppData\Local\Temp",
            "USERNAME" => return Some(Lookup::Present(self.user.clone())),
            "HOMEPATH" | "HOMEDRIVE" | "LOGONSERVER" => return Some(Lookup::Unknown),
            _ => return None,
        };
        Some(match self.profile() {
            Some(profile) => Lookup::Present(profile + below),
            None => Lookup::Unknown,
        })
    }

    /// `PATH`: the machine's folders, then the user's.
    fn path(&self, image: &dyn ImageState) -> Lookup<String> {
        match (machine_variable("Path", image), self.profile()) {
            (Lookup::Present(machine), Some(profile)) => {
                let divider = if machine.ends_with(';') { "" } else { ";" };
                let usual = || {
                    let apps = r"AppData\Local\Microsoft\WindowsApps";
                    Lookup::Present(format!(r"{profile}\{apps}"))
                };
                let own = self.variable_of_hive("Path", image);
                own.unwrap_or_else(usual)
                    .map(|own| format!("{machine}{divider}{own}"))
            }
            (Lookup::Present(_), None) => Lookup::Unknown,
            (other, _) => other,
        }
    }
}

/// Name of the variable that an action changes for later processes.
pub(super) fn changed_variable(action: &ImageAction) -> Option<&str> {
    match action {
        ImageAction::UserVariable { name, .. } => Some(name),
        ImageAction::Registry(
            RegistryEdit::SetValue { key, name, .. } | RegistryEdit::DeleteValue { key, name },
        ) => (*key == environment_key()).then_some(name),
        _ => None,
    }
}

pub(super) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Error for an unknown value. What the registry does not say, no index of a base says either.
pub(super) fn unknown_variable(name: &str, written: &str) -> ScriptError {
    if is_unrecorded_variable(name) && !same(name, "Path") {
        ScriptError::windows(format!("the value of {written} is known only on Windows"))
    } else {
        ScriptError::unknown(format!("the value of {written} is unknown"))
    }
}

/// Variable of the machine from the registry, with Windows' own variables expanded.
pub(super) fn machine_variable(name: &str, image: &dyn ImageState) -> Lookup<String> {
    image
        .value(&environment_key(), name)
        .and_then(|data| match data.typed() {
            TypedData::Text(text) => filled_in(&text, &[]).map_or(Lookup::Unknown, Lookup::Present),
            _ => Lookup::Unknown,
        })
}
