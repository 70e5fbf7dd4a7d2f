//! `wincimg recipe list`: lists the built-in recipes.

use wincimg_images::recipes;
use wincimg_recipe::{Recipe, schema};

use crate::cli::prelude::*;

/// List the built-in recipes and their variables
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg recipe list\n  \
    wincimg recipe show pause > my-pause.toml\n  \
    wincimg recipe schema > recipe.schema.json")]
pub(super) struct Images {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// Print the file of a built-in recipe
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wincimg recipe show pause > my-pause.toml")]
pub(super) struct Show {
    /// Name of a built-in recipe
    #[arg(value_name = "NAME", add = complete::recipes())]
    name: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// Print the JSON schema of recipe files, for editors
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wincimg recipe schema > recipe.schema.json")]
pub(super) struct Schema {
    /// Output format; the schema is JSON in both
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

impl Show {
    pub(super) fn run(self) -> Result<CommandOutcome> {
        let recipe = Recipe::find(&self.name)?;
        let answer = || json!({"name": recipe.name(), "recipe": recipe.text()});
        self.format
            .print(answer, |out| out.write_all(recipe.text().as_bytes()))
    }
}

impl Schema {
    pub(super) fn run(self) -> Result<CommandOutcome> {
        self.format.print(schema, |out| write_json(&schema(), out))
    }
}

impl Images {
    pub(super) fn run(self) -> Result<CommandOutcome> {
        let recipes = recipes().iter().map(|recipe| Recipe::find(recipe.name));
        let recipes = recipes.collect::<Result<Vec<_>, _>>()?;
        let answer = || json!({"images": recipes.iter().map(as_json).collect::<Vec<_>>()});
        self.format.print(answer, |out| write_text(&recipes, out))
    }
}

fn write_text(recipes: &[Recipe], out: &mut dyn Write) -> io::Result<()> {
    let width = recipes.iter().map(|recipe| recipe.name().len()).max();
    let mut rows = recipes.iter();
    rows.try_for_each(|recipe| write_recipe(recipe, width.unwrap_or_default(), out))
}

fn write_recipe(recipe: &Recipe, width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:<width$} {}", recipe.name(), recipe.description())?;
    for (name, variable) in recipe.variables() {
        let value = variable.default_value().map_or_else(
            || format!("{}, required", variable.kind.name()),
            |default| format!("{}, default {default:?}", variable.kind.name()),
        );
        let description = variable.description.as_deref().unwrap_or_default();
        writeln!(out, "{:width$} --set {name}=…  {description} ({value})", "")?;
    }
    Ok(())
}

fn as_json(recipe: &Recipe) -> Value {
    let variables: Vec<Value> = recipe
        .variables()
        .map(|(name, variable)| {
            json!({
                "name": name,
                "type": variable.kind,
                "default": variable.default_value(),
                "description": variable.description,
            })
        })
        .collect();
    json!({
        "name": recipe.name(),
        "description": recipe.description(),
        "variables": variables,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_two_columns() {
        let recipes = recipes().iter().map(|recipe| Recipe::find(recipe.name));
        let recipes: Vec<Recipe> = recipes.collect::<Result<_, _>>().unwrap();
        let mut out = Vec::new();
        write_text(&recipes, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let longest = recipes.iter().map(|recipe| recipe.name().len()).max();
        for line in text.lines() {
            let column = line[longest.unwrap()..].strip_prefix(' ').unwrap();
            assert!(!column.starts_with(' '), "{line}");
        }
    }
}
