//! Services in a recipe's image.

use wincimg_windows::service::{FailureActions, FailureKind, Service, ServiceName, StartType};

use super::{Recipe, Result};

impl Recipe {
    /// Rejects services that cannot all be in an image, or cannot work.
    pub(super) fn checked_services(&self, services: Vec<Service>) -> Result<Vec<Service>> {
        for (place, service) in services.iter().enumerate() {
            let name = &service.name;
            let is_same = |other: &Service| other.name.eq_ignore_case(name);
            let checked = if services[..place].iter().any(is_same) {
                Err((
                    "name".to_owned(),
                    format!("two services have the name {name}"),
                ))
            } else {
                check_dependencies(service, &services)
                    .and_then(|()| service.on_failure.as_ref().map_or(Ok(()), check_actions))
            };
            checked.map_err(|(key, problem)| {
                let key = format!("services.{place}.{key}");
                self.origin.error_in(&key, problem)
            })?;
        }
        Ok(services)
    }
}

/// Rejects a command that is missing or never runs.
fn check_actions(failure: &FailureActions) -> Result<(), (String, String)> {
    let mut actions = failure.actions.iter();
    let run = actions.position(|it| it.action == FailureKind::Run);
    let (key, problem) = match (run, &failure.command) {
        _ if failure.actions.is_empty() => ("name".to_owned(), "on_failure has no actions"),
        (Some(run), None) => {
            let problem = "on_failure has no command for the action run";
            (format!("on_failure.actions.{run}.action"), problem)
        }
        (None, Some(_)) => {
            let problem = "no action is run, so the command never runs";
            ("on_failure.command".to_owned(), problem)
        }
        _ => return Ok(()),
    };
    Err((key, problem.to_owned()))
}

/// Rejects a service that can never start because it depends on itself or on a disabled one.
fn check_dependencies(own: &Service, services: &[Service]) -> Result<(), (String, String)> {
    let find = |name: &ServiceName| {
        services
            .iter()
            .find(|other| other.name.eq_ignore_case(name))
    };
    let is_disabled = |service: &Service| service.start == StartType::Disabled;
    for (place, name) in own.depends_on.iter().enumerate() {
        let refused = |problem| Err((format!("depends_on.{place}"), problem));
        if !is_disabled(own) && find(name).is_some_and(is_disabled) {
            return refused(format!("{} cannot start: {name} is disabled", own.name));
        }
        // All dependencies of it, each once.
        let mut seen: Vec<&ServiceName> = Vec::new();
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            if name.eq_ignore_case(&own.name) {
                return refused(format!(
                    "{} depends on itself, so it never starts",
                    own.name
                ));
            }
            if !seen.iter().any(|known| known.eq_ignore_case(name)) {
                seen.push(name);
                next.extend(find(name).into_iter().flat_map(|other| &other.depends_on));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
