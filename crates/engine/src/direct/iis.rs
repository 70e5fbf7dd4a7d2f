//! IIS settings without IIS: those of a site go into its `web.config`, those of the server into a
//! changed copy of the base's `applicationHost.config`, both in the layer.

use std::collections::BTreeSet;
use std::io;

use wincimg_common::diagnose::Problem;
use wincimg_iis::config::{
    APP_POOLS, ConfigChange, ConfigEdit, ConfigLocation, PathStep, Schema, Server, SharedBinding,
};
use wincimg_iis::web_config::merge;
use wincimg_iis::{IisSettings, folder_path, schema_files, schema_folder, server_config};
use wincimg_layer::{ContentSource, Layer, LayerError, LayerPath, ON_WINDOWS};
use wincimg_oci::reference::Reference;
use wincimg_recipe::Plan;
use wincimg_registry::{BaseReadError, Presence};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::path::ImagePath;

use super::error::{DirectError, refused};

/// Maximum size of a configuration; IIS reads 250 kB of a `web.config` unless the registry sets
/// another limit.
const LARGEST: u64 = 4 << 20;

/// Rejects settings on a base without IIS, and those of the server if the contents of the base are
/// unknown.
pub(super) fn check_base(plan: &Plan, inside: &dyn BaseContents) -> Result<(), DirectError> {
    let requires_server = plan.requires_server_config();
    let Some(file) = server_config().filter(|_| plan.iis.is_some() || requires_server) else {
        return Ok(());
    };
    let mut made = plan.entries_by_layer().flatten();
    if made.any(|entry| entry.path == file) {
        return Ok(());
    }
    let base = &plan.base.name;
    let found = if requires_server {
        inside.content(&file)?.map(drop)
    } else {
        inside.file(&file)?.map(drop)
    };
    let problem = match found {
        Presence::Present(()) => return Ok(()),
        Presence::Unknown if !lacks_iis(base) => {
            if !requires_server {
                return Ok(());
            }
            let problem =
                format!("cannot configure the IIS of the base {base}: its contents are not known");
            Problem::new("base/unseen", problem).hint(ON_WINDOWS)
        }
        Presence::Unknown | Presence::Absent => Problem::request(
            "base/no-iis",
            format!("the base {base} has no IIS: {file} not found"),
        )
        .hint(r#"build on a base with IIS: base = "aspnet" or base = "iis""#),
    };
    Err(problem.into())
}

/// Returns true for Microsoft's bases without IIS, by their names there or in a mirror.
fn lacks_iis(base: &str) -> bool {
    let repository = base
        .parse()
        .map(|base: Reference| base.repository().to_owned());
    ["nanoserver", "servercore"].iter().any(|name| {
        let own = repository.as_deref().ok();
        let above = own.and_then(|own| own.strip_suffix(name)?.strip_suffix("windows/"));
        above.is_some_and(|above| above.is_empty() || above.ends_with('/'))
    })
}

/// Merges the settings into the files of the layer or the base, or adds files. If the contents of
/// the base are unknown, settings of the server are left out, and the base has no `web.config`.
pub(super) fn configure(
    layer: &mut Layer,
    settings: &IisSettings,
    inside: &dyn BaseContents,
) -> Result<(), DirectError> {
    let mut for_server = settings.server_edits();
    let mut for_site = settings.site_edits();
    let mut folder = settings.path.clone();
    if let Some((file, mut server)) = server(layer, inside)? {
        let site = settings.site.as_str().parse::<ConfigLocation>();
        let site = site.map_err(|error| Problem::from_error("recipe/iis", error))?;
        for edit in std::mem::take(&mut for_site) {
            let is_delegated = server.is_delegated(&edit.section, Some(&site));
            if is_delegated.map_err(|error| refused(&edit.to_string(), error))? {
                for_site.push(edit);
            } else {
                let location = Some(site.clone());
                for_server.push(ConfigEdit { location, ..edit });
            }
        }
        change(layer, &file, &mut server, &for_server)?;
        if folder.is_none() || !for_site.is_empty() {
            folder = Some(folder_of(&server, &site)?);
        }
    }
    match folder {
        Some(folder) if !for_site.is_empty() => site_config(layer, &folder, &for_site, inside),
        _ => Ok(()),
    }
}

/// The folder from which the changed server reads the files of a site.
fn folder_of(server: &Server, site: &ConfigLocation) -> Result<ImagePath, DirectError> {
    let known = server.check_site(site);
    known.map_err(|error| refused(&format!("settings of {site}"), error))?;
    let named = server.folder(site);
    let folder = named.as_deref().and_then(folder_path);
    let unusable = || {
        let named = named
            .as_ref()
            .map_or_else(String::new, |named| format!(" {named:?}"));
        let problem = format!("the site {site} has no folder{named} in the image");
        Problem::request("recipe/iis", problem)
            .hint("set the site's folder: [iis] path = 'C:\\folder'")
    };
    Ok(folder.ok_or_else(unusable)?)
}

/// Changes the server's configuration as an instruction does, in the same way.
pub(super) fn configure_server(
    layer: &mut Layer,
    edits: &[ConfigEdit],
    inside: &dyn BaseContents,
) -> Result<(), DirectError> {
    if !edits.is_empty()
        && let Some((file, mut server)) = server(layer, inside)?
    {
        change(layer, &file, &mut server, edits)?;
    }
    Ok(())
}

/// The server's configuration, from the layer or else the base, and its path.
fn server(
    layer: &mut Layer,
    inside: &dyn BaseContents,
) -> Result<Option<(ImagePath, Server)>, DirectError> {
    let Some(file) = server_config() else {
        return Ok(None);
    };
    let Some((bytes, name)) = existing(layer, &file, inside)? else {
        return Ok(None);
    };
    let server = read_server(&bytes, &name, inside)?;
    Ok(Some((file, server)))
}

fn change(
    layer: &mut Layer,
    file: &ImagePath,
    server: &mut Server,
    edits: &[ConfigEdit],
) -> Result<(), DirectError> {
    for edit in edits {
        if let Err(error) = server.apply(edit) {
            let pool = missing_pool(server, edit);
            let hint = pool.map(|pool| format!("add it: [[iis.app_pools]] name = \"{pool}\""));
            return Err(refused(&edit.to_string(), error).hint_if(hint).into());
        }
    }
    if let Some(changed) = server.finish() {
        let path = LayerPath::try_from(file).map_err(LayerError::Path)?;
        replace_file(layer, path, changed);
    }
    Ok(())
}

/// The application pool that a change sets, if it does not exist.
fn missing_pool<'e>(server: &Server, edit: &'e ConfigEdit) -> Option<&'e str> {
    let ConfigChange::Set { element, .. } = &edit.change else {
        return None;
    };
    let (PathStep::Entry(pool), _) = element.steps().split_first()? else {
        return None;
    };
    let (_, name) = pool
        .attributes()
        .find(|(attribute, _)| *attribute == "name")?;
    let is_same = |known: &String| known.to_lowercase() == name.to_lowercase();
    let is_missing = edit.section.as_str() == APP_POOLS && !server.app_pools().iter().any(is_same);
    is_missing.then_some(name)
}

fn read_server(bytes: &[u8], name: &str, inside: &dyn BaseContents) -> Result<Server, DirectError> {
    let mut schemas = Vec::new();
    for file in schema_paths(inside)? {
        if let Presence::Present(bytes) = inside.content(&file)? {
            schemas.push((file.to_string(), bytes));
        }
    }
    let files = schemas
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let schema = Schema::read(files)?;
    let server = Server::read(bytes, schema);
    Ok(server.map_err(|error| {
        Problem::new("base/unreadable", format!("cannot read {name}")).source(error)
    })?)
}

/// Paths of the base's schema files.
fn schema_paths(inside: &dyn BaseContents) -> Result<Vec<ImagePath>, BaseReadError> {
    let Some(folder) = schema_folder() else {
        return Ok(Vec::new());
    };
    let found = inside.read_dir(&folder)?.present().unwrap_or_default();
    let names = schema_files(found.iter().map(|file| file.name.as_str()));
    let paths = names.into_iter().filter_map(|name| folder.join(name).ok());
    Ok(paths.collect())
}

/// Bindings that two sites share after these layers, from the lowest, but not in the base.
///
/// A check of each layer would report sites that a later one removes.
pub(super) fn shared_bindings<'l>(
    layers: impl DoubleEndedIterator<Item = &'l Layer>,
    inside: &dyn BaseContents,
) -> Result<BTreeSet<SharedBinding>, DirectError> {
    let Some(file) = server_config() else {
        return Ok(BTreeSet::new());
    };
    let path = LayerPath::try_from(&file).map_err(LayerError::Path)?;
    let source = layers.rev().find_map(|layer| layer.source_of(&path));
    let Some(bytes) = source.and_then(|source| source.read(LARGEST).ok()) else {
        return Ok(BTreeSet::new());
    };
    let shared = |bytes: &[u8]| {
        let server = Server::read(bytes, Schema::default());
        server.map_or_else(|_| BTreeSet::new(), |server| server.shared_bindings())
    };
    let mut found = shared(&bytes);
    if let Presence::Present(bytes) = inside.content(&file)? {
        let known = shared(&bytes);
        found.retain(|binding| !known.contains(binding));
    }
    Ok(found)
}

/// Content of a file that the layer has, or else the base, and a name for it.
fn existing(
    layer: &mut Layer,
    file: &ImagePath,
    inside: &dyn BaseContents,
) -> Result<Option<(Vec<u8>, String)>, DirectError> {
    let path = LayerPath::try_from(file).map_err(LayerError::Path)?;
    if let Some(source) = layer.file_mut(&path) {
        return Ok(Some(content(source, &path)?));
    }
    let content = inside.content(file)?.present();
    Ok(content.map(|bytes| (bytes, format!("the base's {file}"))))
}

/// Replaces a file of the layer or the base; it gets the descriptor of the base's when the layer is
/// fitted to the base.
fn replace_file(layer: &mut Layer, path: LayerPath, bytes: Vec<u8>) {
    match layer.file_mut(&path) {
        Some(source) => *source = bytes.into(),
        None => layer.file(path, bytes),
    }
}

fn site_config(
    layer: &mut Layer,
    folder: &ImagePath,
    edits: &[ConfigEdit],
    inside: &dyn BaseContents,
) -> Result<(), DirectError> {
    let file = folder.join("web.config");
    let file = file.map_err(|error| Problem::from_error("recipe/iis", error))?;
    let path = LayerPath::try_from(&file).map_err(LayerError::Path)?;
    let (bytes, name) = match existing(layer, &file, inside)? {
        Some((bytes, name)) => (Some(bytes), name),
        None if inside.file(&file)?.present().is_some() => {
            let problem = format!("cannot change {file}: what the base has there is not known");
            let hint = format!(
                "name the site's folder, so that the build reads it: [iis] path = '{folder}'"
            );
            return Err(Problem::new("base/unseen", problem).hint(hint).into());
        }
        None => (None, path.to_string()),
    };
    let merged = merge(bytes.as_deref(), edits).map_err(|error| {
        let problem = format!("the settings of IIS cannot be merged into {name}");
        Problem::request("recipe/iis", problem).source(error)
    })?;
    if let Some(changed) = merged {
        replace_file(layer, path, changed);
    }
    Ok(())
}

/// Content of a file of the layer, and a name for it.
fn content(source: &ContentSource, path: &LayerPath) -> Result<(Vec<u8>, String), DirectError> {
    let name = match source {
        ContentSource::Path(file) => file.path.display().to_string(),
        ContentSource::Member(member) => member.to_string(),
        ContentSource::Bytes(_) | ContentSource::Part(_) | ContentSource::NotDownloaded { .. } => {
            path.to_string()
        }
    };
    let bytes = source.read(LARGEST).map_err(|error| LayerError::Read {
        path: name.clone().into(),
        source: match error.kind() {
            io::ErrorKind::FileTooLarge => {
                let problem = "it is larger than any configuration that IIS reads";
                io::Error::new(io::ErrorKind::FileTooLarge, problem)
            }
            _ => error,
        },
    })?;
    Ok((bytes, name))
}

#[cfg(test)]
mod tests {
    use wincimg_common::diagnose::{Diagnose as _, error_chain};
    use wincimg_recipe::{PlanBase, Recipe, RecipeInputs, add_entries};
    use wincimg_registry::UnknownBase;
    use wincimg_testkit::iis::{SCHEMA, SERVER, SETTINGS as WHOLE};
    use wincimg_windows::testing::TestBaseContents;

    use super::*;

    const PATH: &str = "Windows/System32/inetsrv/config/applicationHost.config";

    fn base_with(server: &str) -> TestBaseContents {
        let schema = r"C:\Windows\System32\inetsrv\config\schema\IIS_schema.xml";
        without_iis()
            .with_file(&format!("/{PATH}"), server.as_bytes(), 0x20, "O:SYG:SYD:")
            .with_file(schema, SCHEMA.as_bytes(), 0x20, "O:SYG:SYD:")
    }

    fn without_iis() -> TestBaseContents {
        TestBaseContents::default().with_drive()
    }

    fn plan(settings: &str) -> Plan {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recipe.toml");
        let text = format!("name = \"x\"\nbase = \"iis\"\n{settings}\n");
        std::fs::write(&file, text).unwrap();
        let base = PlanBase {
            name: "mcr/iis:10.0.17763.973".to_owned(),
            digest: String::new(),
            os_version: Some("17763.973".parse().unwrap()),
            ..PlanBase::default()
        };
        let values = std::collections::BTreeMap::new();
        let settings = RecipeInputs {
            values: &values,
            context: folder.path(),
        };
        Recipe::load(&file)
            .unwrap()
            .plan(base, None, &settings)
            .unwrap()
    }

    fn layer(plan: &Plan, inside: &dyn BaseContents) -> Result<Layer, DirectError> {
        let mut layer = Layer::new(0);
        add_entries(&mut layer, &plan.files)?;
        configure(&mut layer, plan.iis.as_ref().unwrap(), inside)?;
        Ok(layer)
    }

    fn text(layer: &mut Layer, path: &str) -> Option<String> {
        match layer.file_mut(&path.parse().unwrap())? {
            ContentSource::Bytes(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            ContentSource::Path(_)
            | ContentSource::Part(_)
            | ContentSource::Member(_)
            | ContentSource::NotDownloaded { .. } => None,
        }
    }

    fn base() -> TestBaseContents {
        base_with(&SERVER.replace('\n', "\r\n"))
    }

    #[test]
    fn a_server_is_configured_as_a_recipe_says() {
        let plan = plan(WHOLE);
        check_base(&plan, &base()).unwrap();
        let mut layer = layer(&plan, &base()).unwrap();
        let server = text(&mut layer, &format!("Files/{PATH}"))
            .or_else(|| text(&mut layer, PATH))
            .unwrap();
        assert!(
            !server.replace("\r\n", "").contains('\n'),
            "line ends are kept"
        );
        let added: Vec<&str> = server
            .lines()
            .filter(|line| !SERVER.lines().any(|old| old == *line))
            .map(str::trim)
            .collect();
        insta::assert_snapshot!(added.join("\n"));
        let web_config = text(&mut layer, "api/web.config").unwrap();
        let place = |text: &str| web_config.find(text).unwrap();
        assert!(place("<add value=\"a.html\"") < place("<add value=\"index.html\""));
        assert!(web_config.contains(".json"));
    }

    #[test]
    fn what_a_site_may_not_say_itself_the_server_says() {
        let plan = plan("[iis]\nmime_types = { json = \"text/x\" }");
        let denied = SERVER.replace(
            "name=\"staticContent\" overrideModeDefault=\"Allow\"",
            "name=\"staticContent\" overrideModeDefault=\"Deny\"",
        );
        let mut by_server = layer(&plan, &base_with(&denied)).unwrap();
        let server = text(&mut by_server, PATH).unwrap();
        let expected = "<location path=\"Default Web Site\">";
        assert!(server.contains(expected), "{server}");
        assert_eq!(text(&mut by_server, "inetpub/wwwroot/web.config"), None);
        let mut by_site = layer(&plan, &base()).unwrap();
        assert_eq!(text(&mut by_site, PATH), None);
        assert!(text(&mut by_site, "inetpub/wwwroot/web.config").is_some());
    }

    #[test]
    fn the_file_of_a_site_is_where_the_server_reads_it_and_keeps_what_the_base_has() {
        let shop = r#"<site name="Shop" id="2"><application path="/">
            <virtualDirectory path="/" physicalPath="C:\shop" /></application></site></sites>"#;
        let own = b"<configuration><!-- own --></configuration>";
        let base = base_with(&SERVER.replace("</sites>", shop))
            .with_file(r"C:\shop\web.config", own, 0x20, "O:SYG:SYD:");
        let described =
            "[[iis.sites]]\nname = \"SHOP\"\npath = 'C:\\shop'\nbindings = [\"http/*:8080:\"]\n";
        let settings = |site: &str, more: &str| {
            let types = "mime_types = { json = \"text/x\" }";
            plan(&format!("[iis]\nsite = \"{site}\"\n{types}\n{more}"))
        };
        for (site, more) in [("Shop", ""), ("shop", ""), ("Shop", described)] {
            let mut layer = layer(&settings(site, more), &base).unwrap();
            let found = text(&mut layer, "shop/web.config").unwrap();
            assert!(found.contains("<!-- own -->") && found.contains(".json"));
            assert_eq!(text(&mut layer, "inetpub/wwwroot/web.config"), None);
        }
        let misspelt = layer(&settings("Shoop", ""), &base).unwrap_err();
        let printed = error_chain(&misspelt);
        assert!(printed.contains("site \"Shoop\" not found"), "{printed}");
        assert_eq!(
            misspelt.diagnosis().hint.as_deref(),
            Some("did you mean \"Shop\"?")
        );
        let unseen = check_base(&settings("Shop", ""), &UnknownBase).unwrap_err();
        assert_eq!(unseen.diagnosis().code, "base/unseen");
    }

    #[test]
    fn a_section_is_meant_only_if_its_own_name_is_similar() {
        let hint = |section: &str| {
            let entry = format!("[[iis.config]]\nsection = \"{section}\"\nset = {{ a = 1 }}");
            let refused = layer(&plan(&entry), &base()).unwrap_err();
            refused.diagnosis().hint
        };
        for (typed, meant) in [
            ("system.webServer/httpErors", "httpErrors"),
            ("httpErors", "httpErrors"),
            ("system.webServer/ipSecurity", "security/ipSecurity"),
        ] {
            let expected = format!("did you mean \"system.webServer/{meant}\"?");
            assert_eq!(hint(typed), Some(expected), "{typed}");
        }
        for typed in [
            "system.webServer/proxy",
            "system.webServer/rewrite/rules",
            "machineKey",
        ] {
            assert_eq!(hint(typed), None, "{typed}");
        }
    }

    #[test]
    fn only_bases_that_may_have_a_web_config_are_read_for_it() {
        let mut plan = plan("[iis]\nfile_extensions = [\"json\"]");
        let file: ImagePath = r"C:\inetpub\wwwroot\web.config".parse().unwrap();
        for name in [
            "a:1/acme/iis:1",
            "oci:iis",
            "mcr.microsoft.com/dotnet/framework/samples:a",
        ] {
            plan.base.name = name.to_owned();
            let needs = plan.base_requirements();
            assert!(needs.files && needs.contents.contains(&file), "{name}");
        }
        for name in [
            "mcr.microsoft.com/windows/servercore/iis:ltsc2022",
            "a:1/mcr/dotnet/framework/aspnet:4.8@sha256:00",
            "mcr.microsoft.com/windows/server:ltsc2022",
        ] {
            plan.base.name = name.to_owned();
            assert!(plan.base_requirements().is_empty(), "{name}");
        }
    }

    #[test]
    fn sites_that_share_a_binding_are_those_of_the_last_configuration() {
        let site = |name: &str, port: u16| {
            format!(
                "[[iis.sites]]\nname = \"{name}\"\npath = 'C:\\shop'\nbindings = [\"http/*:{port}:\"]\n"
            )
        };
        let made = |settings: &str| layer(&plan(settings), &base()).unwrap();
        let shared = |layers: &[&Layer], base: &TestBaseContents| {
            let found = shared_bindings(layers.iter().copied(), base).unwrap();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let shop = made(&site("Shop", 80));
        let found = shared(&[&shop], &base());
        assert_eq!(found.len(), 1);
        for value in ["\"Shop\"", "\"Default Web Site\"", "http/*:80:"] {
            assert!(found[0].contains(value), "{found:?}");
        }
        let moved = made(&(site("Shop", 80) + &site("Default Web Site", 81)));
        let none = Vec::<String>::new();
        assert_eq!(shared(&[&moved], &base()), none);
        assert_eq!(shared(&[&shop, &moved], &base()), none);
        assert_eq!(shared(&[&shop, &Layer::new(0)], &base()).len(), 1);
        assert_eq!(shared(&[], &base()), none);
        // A base that has them is not for this build to change.
        let mut shop = shop;
        let known = base_with(&text(&mut shop, PATH).unwrap());
        assert_eq!(shared(&[&shop], &known), none);
    }

    #[test]
    fn a_base_without_iis_or_with_unknown_contents_is_refused() {
        let plan = plan("[[iis.app_pools]]\nname = \"api\"");
        let needs = plan.base_requirements();
        assert!(needs.files && needs.contents.contains(&server_config().unwrap()));
        let unseen = check_base(&plan, &UnknownBase).unwrap_err();
        let expected = "its contents are not known";
        assert!(unseen.to_string().contains(expected), "{unseen}");
        let none = check_base(&plan, &without_iis()).unwrap_err();
        assert!(none.to_string().contains("has no IIS"), "{none}");
        // Settings of a site alone do not require the contents, which the base's name may say.
        let mut of_site = self::plan("[iis]\nfile_extensions = [\"json\"]");
        check_base(&of_site, &base()).unwrap();
        check_base(&of_site, &UnknownBase).unwrap();
        assert_eq!(
            check_base(&of_site, &without_iis())
                .unwrap_err()
                .diagnosis()
                .code,
            "base/no-iis"
        );
        for name in [
            "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "a:1/b/windows/servercore:x",
        ] {
            of_site.base.name = name.to_owned();
            let none = check_base(&of_site, &UnknownBase).unwrap_err();
            assert_eq!(none.diagnosis().code, "base/no-iis", "{name}");
            check_base(&of_site, &base()).unwrap();
        }
        of_site.base.name = "mcr.microsoft.com/windows/servercore/iis:ltsc2022".to_owned();
        check_base(&of_site, &UnknownBase).unwrap();
        let broken = layer(&plan, &base_with("<configuration>")).unwrap_err();
        let printed = broken.to_string();
        let expected = "cannot read the base's C:\\Windows";
        assert!(printed.starts_with(expected), "{printed}");
        let missing = self::plan("[iis.app_pool]\nname = \"api\"\nsettings = { autoStart = true }");
        let refused = layer(&missing, &base()).unwrap_err();
        let added = "add it: [[iis.app_pools]] name = \"api\"";
        assert_eq!(refused.diagnosis().hint.as_deref(), Some(added));
        let printed = error_chain(&refused);
        let expected = "applicationPools has no entry [name='api']";
        assert!(printed.ends_with(expected), "{printed}");
    }
}
