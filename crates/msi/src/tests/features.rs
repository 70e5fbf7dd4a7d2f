//! Which features and components are installed.

use super::*;

#[test]
fn tables_for_windows_count_only_for_installed_components() {
    for (action, table) in [
        ("SelfRegModules", "SelfReg|File_|#Cost\nf|"),
        (
            "MsiPublishAssemblies",
            "MsiAssembly|Component_|Feature_\nOther|Rare",
        ),
        (
            "MsiConfigureServices",
            "MsiServiceConfig|Id|Component_\nc|Other",
        ),
    ] {
        for (level, is_refused) in [(1, true), (100, false)] {
            let features = format!("Feature|Feature|#Level\nAll|1\nRare|{level}");
            let sequence =
                format!("InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n{action}|2");
            let tables = [
                features.as_str(),
                "Component|Component|Directory_\nMain|TARGETDIR\nOther|TARGETDIR",
                "FeatureComponents|Feature_|Component_\nAll|Main\nRare|Other",
                "File|File|Component_|FileName\nf|Other|a.dll",
                table,
                sequence.as_str(),
            ];
            let plan = plan("x64", &tables, TestSystem::default()).unwrap();
            assert_eq!(
                plan.refused.len(),
                usize::from(is_refused),
                "{table} {level}"
            );
        }
    }
}

#[test]
fn the_level_of_an_installation_is_1() {
    let level = written("INSTALLLEVEL", &[], TestSystem::default());
    assert_eq!(level, RegistryData::sz("<1>"));
}

/// Plans a package with features and properties.
fn with_features(features: &str, properties: &str) -> Result<InstallPlan, MsiError> {
    let features = format!("Feature|Feature|Feature_Parent|#Level|#Attributes\n{features}");
    let properties = format!("{}\n{properties}", TABLES[0]);
    let tables = [features.as_str(), properties.as_str()];
    plan("x64", &tables, TestSystem::default())
}

#[test]
fn a_named_feature_needs_those_above_it() {
    for (features, properties, expected) in [
        ("P||0|0\nQ|P|1|0\nR||1|0", "ADDLOCAL|ALL", "R"),
        ("P||0|0\nQ|P|1|0", "ADDLOCAL|Q", ""),
        ("P||0|0\nQ|P|1|2", "ADDLOCAL|ALL", ""),
        ("P||100|0\nQ|P|1|0", "ADDLOCAL|Q", "P,Q"),
        ("P||1|0\nQ|P|1|2", "ADDLOCAL|P", "P,Q"),
        ("P||1|0\nQ|P|1|0\nR||1|0", "ADDLOCAL|ALL\nREMOVE|P", "R"),
        ("P||1|0\nQ|P|1|0", "ADDLOCAL|ALL\nREMOVE|Q", "P"),
        ("P||1|0\nQ|P|1|0", "INSTALLLEVEL|1", "P,Q"),
    ] {
        let plan = with_features(features, properties).unwrap();
        assert_eq!(
            plan.features.join(","),
            expected,
            "{features:?} {properties:?}"
        );
    }
}

#[test]
fn features_have_at_most_the_levels_that_windows_takes() {
    let chain = |levels: usize| {
        let below = (1..levels).map(|level| format!("\nF{level}|F{}|1|0", level - 1));
        with_features(
            &below.fold("F0||1|0".to_owned(), |all, row| all + &row),
            "INSTALLLEVEL|1",
        )
    };
    assert_eq!(chain(16).unwrap().features.len(), 16);
    let why = chain(17).unwrap_err().to_string();
    let expected = "feature \"F16\" is more than 16 levels deep";
    assert!(why.ends_with(expected), "{why}");
}

#[test]
fn features_are_only_those_that_a_property_names() {
    let features = "A||1|0\nB||1|0";
    let plan = with_features(features, "REMOVE|B").unwrap();
    assert!(plan.features.is_empty());
    let note = "REMOVE without ADDLOCAL installs no feature: write ADDLOCAL=ALL REMOVE=B";
    assert_eq!(plan.notes, [note]);
    for property in ["ADDSOURCE", "COMPADDLOCAL", "FILEADDDEFAULT"] {
        let error = with_features(features, &format!("{property}|A")).unwrap_err();
        assert!(error.to_string().starts_with(property), "{error}");
    }
}
