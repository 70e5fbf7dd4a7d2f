//! Values of any plan are read by the daemon's parsers unchanged.

use proptest::prelude::*;

use super::*;

/// Texts with the special characters of all parsers.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        r#"["\\'`$%^&|<>! a-c=äß€😀]{0,16}"#,
        r"[a-z]:\\[a-z \\]{0,8}",
    ]
}

fn words(least: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), least..5)
}

proptest! {
    #[test]
    fn the_programs_get_the_words_of_the_plan(
        arguments in words(0),
        entrypoint in words(0),
        cmd in words(0),
    ) {
        let mut plan = plan();
        let command = [strings(&[r"C:\app\a.exe"]), arguments].concat();
        plan.steps = vec![step(CommandForm::Exec(command.clone()))];
        plan.entrypoint = Some(entrypoint.clone());
        plan.cmd = Some(cmd.clone());
        let text = dockerfile(&plan);
        prop_assert_eq!(reader::runs(&text), [command]);
        prop_assert_eq!(reader::array(&text, "ENTRYPOINT").unwrap(), entrypoint);
        prop_assert_eq!(reader::array(&text, "CMD").unwrap(), cmd);
    }

    #[test]
    fn names_and_values_come_back_as_they_are(
        env in prop::collection::btree_map("[A-Za-z_ ()\"$`'.\\\\]{1,8}", text(), 0..4),
        labels in prop::collection::btree_map("[a-z./ \"$`'#\\\\]{1,8}", text(), 0..4),
        user in text().prop_filter("a user has a name", |user| !user.is_empty()),
    ) {
        let mut plan = plan();
        plan.env.clone_from(&env);
        plan.labels.clone_from(&labels);
        plan.user = Some(user.clone());
        let text = dockerfile(&plan);
        prop_assert_eq!(reader::pairs(&text, "ENV").into_iter().collect::<BTreeMap<_, _>>(), env);
        prop_assert_eq!(reader::pairs(&text, "LABEL").into_iter().collect::<BTreeMap<_, _>>(), labels);
        prop_assert_eq!(reader::value(&text, "USER"), Some(user));
    }
}
