//! `ONBUILD` instructions of a base, which a daemon carries out by itself. Those that only change
//! the configuration become part of the plan; the rest requires Windows.
//!
//! A daemon parses them with `\` as the escape character, whatever their Dockerfile used. So texts
//! with one, or with a variable, are left to a daemon, except for arrays, which are JSON.

use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::UntrustedText;
use wincimg_dockerfile::expand::expand_plain;
use wincimg_dockerfile::instruction::{InstructionKind, read_trigger};
use wincimg_recipe::{CommandForm, Plan};

use super::error::needs_windows;

/// Adds the instructions of the base to the plan, whose own settings take precedence.
pub(super) fn apply_on_build(plan: &Plan) -> Result<Plan, Problem> {
    let mut whole = plan.clone();
    let triggers = std::mem::take(&mut whole.base.on_build);
    let mut failed = None;
    // The last one counts; of those that fail, the first is named.
    for trigger in triggers.iter().rev() {
        if add_trigger(&mut whole, trigger).is_none() {
            failed = Some(trigger);
        }
    }
    match failed {
        None => Ok(whole),
        Some(trigger) => Err(needs_windows(format!(
            "the direct engine cannot carry out an instruction of the base {}: ONBUILD {}",
            plan.base.name,
            UntrustedText(trigger)
        ))),
    }
}

/// Adds a supported instruction, as far as the plan says nothing else.
fn add_trigger(plan: &mut Plan, trigger: &str) -> Option<()> {
    match read_trigger(trigger).ok()? {
        InstructionKind::Env(pairs) => {
            for (name, value) in plain_pairs(&pairs)?.into_iter().rev() {
                let is_said = |own: &String| own.eq_ignore_ascii_case(&name);
                if !plan.env.keys().any(is_said) {
                    plan.env.insert(name, value);
                }
            }
        }
        InstructionKind::Label(pairs) => {
            for (name, value) in plain_pairs(&pairs)?.into_iter().rev() {
                plan.labels.entry(name).or_insert(value);
            }
        }
        InstructionKind::Expose(ports) => {
            for port in expand_plain(&ports)?.words.iter().rev() {
                let port = port_of(port)?;
                plan.ports.retain(|own| *own != port);
                plan.ports.insert(0, port);
            }
        }
        InstructionKind::User(user) => plan.user = plan.user.take().or(Some(single(&user)?)),
        InstructionKind::Workdir(folder) => {
            let folder = single(&folder)?.parse().ok()?;
            plan.working_dir = plan.working_dir.take().or(Some(folder));
        }
        InstructionKind::Entrypoint(CommandForm::Exec(words)) if !words.is_empty() => {
            plan.entrypoint = plan.entrypoint.take().or(Some(words));
        }
        InstructionKind::Cmd(CommandForm::Exec(words)) if !words.is_empty() => {
            plan.cmd = plan.cmd.take().or(Some(words));
        }
        _ => return None,
    }
    Some(())
}

fn plain_pairs(pairs: &[(String, String)]) -> Option<Vec<(String, String)>> {
    let plain = |text: &str| Some(expand_plain(text)?.text);
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| Some((plain(name)?, plain(value)?)))
        .collect()
}

fn single(text: &str) -> Option<String> {
    let words = expand_plain(text)?.words;
    let [word] = words.as_slice() else {
        return None;
    };
    Some(word.clone())
}

/// `80` means TCP; a range is left to a daemon.
fn port_of(text: &str) -> Option<String> {
    let (number, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let number: u16 = number.parse().ok()?;
    let protocol = protocol.to_ascii_lowercase();
    matches!(protocol.as_str(), "tcp" | "udp").then(|| format!("{number}/{protocol}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use wincimg_recipe::{PlanBase, Recipe, RecipeInputs};

    use super::*;

    fn plan(on_build: &[&str]) -> Plan {
        let base = PlanBase {
            name: "repo.lan/base:1".to_owned(),
            digest: format!("sha256:{}", "a".repeat(64)),
            os_version: Some("17763.973".parse().unwrap()),
            on_build: on_build.iter().map(ToString::to_string).collect(),
            ..PlanBase::default()
        };
        let settings = RecipeInputs {
            values: &BTreeMap::new(),
            context: Path::new("."),
        };
        let host = Some("17763.973".parse().unwrap());
        let recipe = Recipe::find("pause").unwrap();
        let plan = recipe.plan(base, host, &settings).unwrap();
        Plan {
            entrypoint: None,
            cmd: None,
            user: None,
            ..plan
        }
    }

    #[test]
    fn what_is_said_about_the_image_becomes_the_plans_unless_it_says_otherwise() {
        let mut plan = plan(&[
            "ENV Path=C:/tools A=\"b c\"",
            "ENV OLD=first LAST=1 LAST=2",
            "env OLD the rest = of it",
            "LABEL team=first",
            "LABEL team='web servers' org.opencontainers.image.title=other",
            "EXPOSE 80 53/UDP",
            "USER ContainerUser",
            "WORKDIR /app",
            r#"ENTRYPOINT ["C:\\app\\run.exe", "--serve"]"#,
            r#"CMD ["first"]"#,
            r#"CMD ["second"]"#,
        ]);
        plan.env.insert("PATH".to_owned(), "C:\\own".to_owned());
        plan.ports = vec!["80/tcp".to_owned()];
        let whole = apply_on_build(&plan).unwrap();
        let expected = [
            ("A", "b c"),
            ("LAST", "2"),
            ("OLD", "the rest = of it"),
            ("PATH", "C:\\own"),
        ];
        for (name, value) in expected {
            assert_eq!(whole.env[name], value);
        }
        assert!(!whole.env.contains_key("Path"), "the plan's own counts");
        assert_eq!(whole.labels["team"], "web servers");
        assert_eq!(whole.labels["org.opencontainers.image.title"], "pause");
        assert_eq!(whole.ports, ["80/tcp", "53/udp"]);
        assert_eq!(whole.user.as_deref(), Some("ContainerUser"));
        assert_eq!(whole.working_dir.unwrap().to_string(), r"C:\app");
        assert_eq!(whole.entrypoint.unwrap(), [r"C:\app\run.exe", "--serve"]);
        assert_eq!(whole.cmd.unwrap(), ["second"]);
        assert!(whole.base.on_build.is_empty());

        plan.entrypoint = Some(vec!["own.exe".to_owned()]);
        let whole = apply_on_build(&plan).unwrap();
        assert_eq!(whole.entrypoint.unwrap(), ["own.exe"]);
        assert_eq!(whole.cmd.unwrap(), ["second"], "set in the same build");
    }

    #[test]
    fn a_port_is_added_once_in_the_order_of_the_instructions() {
        let mut plan = plan(&["EXPOSE 443", "EXPOSE 80 53/udp 443"]);
        plan.ports = vec!["8080/tcp".to_owned()];
        let whole = apply_on_build(&plan).unwrap();
        assert_eq!(whole.ports, ["443/tcp", "80/tcp", "53/udp", "8080/tcp"]);
    }

    #[test]
    fn of_several_that_need_windows_the_first_is_named() {
        let plan = plan(&["ENV A=b", "RUN first.exe", "CMD second.cmd"]);
        let printed = apply_on_build(&plan).unwrap_err().to_string();
        assert!(printed.contains("ONBUILD RUN first.exe"), "{printed}");
    }

    #[test]
    fn everything_else_needs_windows_and_is_named() {
        for trigger in [
            "RUN setup.exe",
            "COPY . /app",
            "ADD a.zip /app/",
            "ARG VERSION=1",
            "VOLUME C:/data",
            "SHELL [\"powershell\", \"-Command\"]",
            "HEALTHCHECK NONE",
            "STOPSIGNAL 9",
            "CMD start.cmd",
            "ENTRYPOINT []",
            "ENV A=$B",
            r"WORKDIR C:\app",
            "WORKDIR a b",
            "ENV A=\"b",
            "ENV A",
            "EXPOSE 80-90",
            "EXPOSE http",
            "WHATEVER 1",
            "ENV",
            "",
        ] {
            let error = apply_on_build(&plan(&["ENV A=b", trigger])).unwrap_err();
            let printed = error.to_string();
            let named = format!("ONBUILD {trigger}");
            assert!(printed.contains(&named), "{trigger}: {printed}");
        }
    }
}
