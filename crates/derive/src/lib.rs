//! `#[derive(Diagnose)]`, `#[derive(Named)]` and `#[derive(SerializeDisplay)]`, which `wincimg_common`
//! exports and documents.
//!
//! Not `miette`'s derive: a diagnosis also says who has to act, and a variant without a code is a
//! compile error here, but an error without one there. Not `strum`'s: names would be spelled again
//! beside serde's `rename_all`.

mod diagnose;
mod named;

use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `Diagnose` from the `#[diagnose(…)]` attributes.
#[proc_macro_derive(Diagnose, attributes(diagnose))]
pub fn diagnose(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    diagnose::implementation(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Implements the names of an enum's variants.
#[proc_macro_derive(Named, attributes(named, serde))]
pub fn named(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    named::implementation(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Implements serde's `Serialize` with the text of `Display`.
#[proc_macro_derive(SerializeDisplay)]
pub fn serialize_display(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let DeriveInput { ident, .. } = parse_macro_input!(input as DeriveInput);
    let implementation = quote::quote! {
        #[automatically_derived]
        impl ::serde::Serialize for #ident {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    implementation.into()
}
