//! The attribute that turns a function into a test of `wincimg_testkit::harness`.

use proc_macro::{TokenStream, TokenTree};

/// A test, under the name that libtest would give it. An `async` one gets its own runtime: with one
/// thread, or with several by `#[test(multi_thread)]` and `#[test(multi_thread = 2)]`. With
/// `#[test(ignore)]` it runs only on request.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    let words = |tokens: TokenStream| {
        tokens.into_iter().filter_map(|token| match token {
            TokenTree::Ident(word) => Some(word.to_string()),
            _ => None,
        })
    };
    let is_async = words(function.clone())
        .take_while(|word| word != "fn")
        .any(|word| word == "async");
    let Some(name) = words(function.clone())
        .skip_while(|word| word != "fn")
        .nth(1)
    else {
        return error("only a function can be a test");
    };
    let options = options.to_string();
    let run = match (is_async, options.split_once('=')) {
        (true, None) if options == "multi_thread" => format!("|| multi_thread(None, {name}())"),
        (true, Some((option, threads))) if option.trim() == "multi_thread" => {
            format!("|| multi_thread(Some({threads}), {name}())")
        }
        (true, None) if options.is_empty() => format!("|| current_thread({name}())"),
        (false, None) if options.is_empty() || options == "ignore" => name.clone(),
        _ => return error("unknown kind of test"),
    };
    let is_ignored = options == "ignore";
    let registration = format!(
        r#"const _: () = {{
            use ::wincimg_testkit::harness::{{Test, current_thread, multi_thread, submit}};
            submit! {{
                Test {{ path: concat!(module_path!(), "::{name}"), is_ignored: {is_ignored}, run: {run} }}
            }}
        }};"#
    );
    let registration: TokenStream = registration.parse().unwrap_or_default();
    function.into_iter().chain(registration).collect()
}

fn error(reason: &str) -> TokenStream {
    let error = format!("compile_error!({reason:?});");
    error.parse().unwrap_or_default()
}
