//! Label selectors in the syntax of kubectl's `--selector`: `pool=web,tier!=cache,zone in
//! (a,b),!spot`.

use std::fmt;
use std::str::FromStr;

use super::controller::HOSTNAME_LABEL;
use super::names::{is_label_key, is_label_value};
use super::nodes::Node;
use super::scheduling::{Operator, Requirement};

/// A label selector: requirements that all have to be met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector(pub(crate) Vec<Requirement>);

impl LabelSelector {
    /// Returns true if a node matches. The labels of a host without a name are unknown, so it may
    /// match.
    pub fn matches(&self, node: &Node) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.may_be_met(node))
    }

    /// The same selector without these nodes, which have names.
    #[must_use]
    pub fn without(mut self, nodes: &[&Node]) -> Self {
        let hostnames = nodes.iter().filter_map(|node| {
            let label = node.labels.get(HOSTNAME_LABEL);
            label.or(node.name.as_ref()).cloned()
        });
        self.0.push(Requirement {
            key: HOSTNAME_LABEL.to_owned(),
            operator: Operator::NotIn,
            values: hostnames.collect(),
        });
        self
    }
}

impl FromStr for LabelSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = parts(text);
        let requirements = parts.into_iter().map(requirement).collect::<Result<_, _>>();
        let expected = "expected pool=web,tier!=cache,zone in (a,b),!spot";
        requirements
            .map(Self)
            .map_err(|problem: String| format!("invalid selector {text:?}: {problem}; {expected}"))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, requirement) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(requirement, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (self.operator, self.values.as_slice()) {
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::In, [value]) => write!(f, "{key}={value}"),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::In, values) => write!(f, "{key} in ({})", values.join(",")),
            (Operator::NotIn, values) => write!(f, "{key} notin ({})", values.join(",")),
            (Operator::Exists, _) => f.write_str(key),
            (Operator::Gt, values) => write!(f, "{key}>{}", values.join(",")),
            (Operator::Lt, values) => write!(f, "{key}<{}", values.join(",")),
        }
    }
}

/// Splits at commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (place, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let (key, operator, values) = if let Some(key) = text.strip_prefix('!') {
        (key.trim(), Operator::DoesNotExist, Vec::new())
    } else if let Some(list) = text.strip_suffix(')') {
        let (before, list) = list
            .split_once('(')
            .ok_or_else(|| format!("{text:?} has no opening parenthesis"))?;
        let mut words = before.split_whitespace();
        let operator = match (words.next(), words.next(), words.next()) {
            (Some(_), Some("in"), None) => Operator::In,
            (Some(_), Some("notin"), None) => Operator::NotIn,
            _ => return Err(format!("{text:?} has neither in nor notin")),
        };
        let key = before.split_whitespace().next().unwrap_or_default();
        let values = list.split(',').map(|value| value.trim().to_owned());
        (key, operator, values.collect())
    } else if let Some((key, value)) = text.split_once("!=") {
        (key.trim(), Operator::NotIn, vec![value.trim().to_owned()])
    } else if let Some((key, value)) = text.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        (key.trim(), Operator::In, vec![value.trim().to_owned()])
    } else {
        (text, Operator::Exists, Vec::new())
    };
    if !is_label_key(key) {
        return Err(format!("{key:?} cannot be the name of a label"));
    }
    if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
        return Err(format!("{value:?} cannot be the value of a label"));
    }
    Ok(Requirement {
        key: key.to_owned(),
        operator,
        values,
    })
}

#[cfg(test)]
mod tests {
    use wincimg_windows::compat::HostBuild;

    use super::*;

    fn node(labels: &[(&str, &str)]) -> Node {
        let labels = labels.iter();
        Node {
            labels: labels
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            labels_are_complete: true,
            ..Node::from_build(HostBuild::new("17763.973".parse().unwrap()))
        }
    }

    #[test]
    fn nodes_are_selected_as_kubectl_selects_them() {
        let web = node(&[("pool", "web"), ("example.com/zone", "a")]);
        for (selector, expected) in [
            ("pool=web", true),
            ("pool==web", true),
            ("pool=cache", false),
            ("pool!=cache", true),
            ("tier!=cache", true),
            ("pool", true),
            ("tier", false),
            ("!tier", true),
            ("! pool", false),
            ("pool in (web, shop)", true),
            ("pool in (shop)", false),
            ("pool notin (shop,cache)", true),
            ("tier notin (shop)", true),
            ("pool=web,example.com/zone in (a,b),!tier", true),
            ("pool=web,example.com/zone in (b,c)", false),
            ("pool=", false),
        ] {
            let selector: LabelSelector = selector.parse().unwrap();
            assert_eq!(selector.matches(&web), expected, "{selector}");
        }
    }

    #[test]
    fn what_is_not_a_selector_is_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("", "\"\" cannot be the name of a label"),
            ("pool=web,", "\"\" cannot be the name of a label"),
            ("pool=a b", "\"a b\" cannot be the value of a label"),
            ("-pool", "\"-pool\" cannot be the name of a label"),
            (
                "pool in web)",
                "\"pool in web)\" has no opening parenthesis",
            ),
            (
                "pool of (web)",
                "\"pool of (web)\" has neither in nor notin",
            ),
            ("a/b/c=d", "\"a/b/c\" cannot be the name of a label"),
        ] {
            let error = text.parse::<LabelSelector>().unwrap_err();
            let start = format!("invalid selector {text:?}: {problem}; expected ");
            assert!(error.starts_with(&start), "{text}: {error}");
        }
    }

    #[test]
    fn a_node_is_left_out_by_the_label_of_its_hostname() {
        let host = node(&[(HOSTNAME_LABEL, "win-a"), ("pool", "web")]);
        let named = Node {
            name: Some("win-b".to_owned()),
            ..node(&[])
        };
        let selector: LabelSelector = "pool=web".parse().unwrap();
        let selector = selector.without(&[&host, &named]);
        let text = format!("pool=web,{HOSTNAME_LABEL} notin (win-a,win-b)");
        assert_eq!(selector.to_string(), text);
        assert!(!selector.matches(&host));
    }

    #[test]
    fn a_selector_is_written_as_it_is_read() {
        for text in [
            "pool=web",
            "pool!=a,!tier,x",
            "pool in (a,b),zone notin (c,d)",
        ] {
            let selector: LabelSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
        }
    }
}
