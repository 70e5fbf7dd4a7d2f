//! `#[derive(Named)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, LitStr, Result, Token};

pub(super) fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let (ty, visibility) = (&input.ident, &input.vis);
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(ty, "requires an enum"));
    };
    let separator = match option(&input.attrs, "rename_all")?.as_deref() {
        Some("kebab-case") => "-",
        Some("snake_case") => "_",
        Some("lowercase") => "",
        _ => {
            let expected = "requires rename_all = kebab-case, snake_case or lowercase";
            return Err(Error::new_spanned(ty, expected));
        }
    };
    let mut names = Vec::new();
    for variant in &data.variants {
        let own = option(&variant.attrs, "rename")?;
        names.push(own.unwrap_or_else(|| separated(&variant.ident.to_string(), separator)));
    }
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let mut fields = data.variants.iter().map(|variant| &variant.fields);
    let is_fieldless = fields.all(|fields| matches!(fields, Fields::Unit));
    let receiver = if is_fieldless {
        quote!(self)
    } else {
        quote!(&self)
    };
    let of_fieldless = is_fieldless.then(|| {
        let count = names.len();
        let list = alternatives(&names);
        quote! {
            /// All of them, in order.
            #visibility const ALL: [Self; #count] = [#(Self::#variants),*];

            /// The names in an error: `a, b or c`.
            #visibility const NAMES: &'static str = #list;

            /// The first one with this name.
            #visibility fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        #[allow(dead_code, reason = "some enums need only the names")]
        impl #ty {
            #of_fieldless

            /// The name.
            #visibility const fn name(#receiver) -> &'static str {
                match self { #(Self::#variants { .. } => #names),* }
            }
        }
    })
}

fn alternatives(names: &[String]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        names => names.concat(),
    }
}

/// A text option of `#[named(…)]` or `#[serde(…)]`.
fn option(attributes: &[Attribute], key: &str) -> Result<Option<String>> {
    let mut found = None;
    let is_own = |it: &&Attribute| it.path().is_ident("named") || it.path().is_ident("serde");
    for attribute in attributes.iter().filter(is_own) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident(key) {
                found = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.input.peek(Token![=]) {
                meta.value()?.parse::<Expr>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The words of a variant's name in lower case, as serde separates them.
fn separated(variant: &str, separator: &str) -> String {
    let mut name = String::new();
    for (index, letter) in variant.char_indices() {
        if index > 0 && letter.is_uppercase() {
            name += separator;
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
