//! Expansion of `#[derive(Diagnose)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Ident, Lit, Result};

/// The field whose diagnosis is forwarded.
enum Forward {
    Cause,
    Field(Ident),
}

/// Contents of `#[diagnose(…)]`.
#[derive(Default)]
struct Options {
    forward: Option<Forward>,
    code: Option<Expr>,
    blame: Option<Expr>,
    hint: Option<Expr>,
    excerpt: Option<Expr>,
}

impl Options {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes
            .iter()
            .filter(|it| it.path().is_ident("diagnose"))
        {
            attribute.parse_nested_meta(|meta| {
                let option = if meta.path.is_ident("forward") {
                    options.forward = Some(if meta.input.peek(syn::Token![=]) {
                        Forward::Field(meta.value()?.parse()?)
                    } else {
                        Forward::Cause
                    });
                    return Ok(());
                } else if meta.path.is_ident("code") {
                    &mut options.code
                } else if meta.path.is_ident("blame") {
                    &mut options.blame
                } else if meta.path.is_ident("hint") {
                    &mut options.hint
                } else if meta.path.is_ident("excerpt") {
                    &mut options.excerpt
                } else {
                    return Err(meta.error("expected forward, code, blame, hint or excerpt"));
                };
                *option = Some(meta.value()?.parse()?);
                Ok(())
            })?;
        }
        Ok(options)
    }

    /// Generates the diagnosis of a variant or struct, whose fields are in scope.
    fn diagnosis(&self, common: &Self, name: &Ident, fields: &Fields) -> Result<TokenStream> {
        let rest = match &self.forward {
            Some(forward) => {
                let field = match forward {
                    Forward::Field(field) => Some(field.clone()),
                    Forward::Cause => cause(fields),
                };
                let field = field
                    .ok_or_else(|| Error::new_spanned(name, "forward requires a source field"))?;
                quote!(#field.diagnosis())
            }
            None => quote!(Diagnosis::default()),
        };
        // Options of the whole enum do not apply to variants that forward.
        let or_common = |own: &Option<Expr>, common: &Option<Expr>| {
            let common = common.as_ref().filter(|_| self.forward.is_none());
            own.as_ref().or(common).cloned()
        };
        let code = or_common(&self.code, &common.code);
        if code.is_none() && self.forward.is_none() {
            return Err(Error::new_spanned(
                name,
                "requires a code, here or for the whole type",
            ));
        }
        let code = code.map(|code| quote!(code: #code,));
        let blame = or_common(&self.blame, &common.blame).map(|blame| {
            let blame = match blame {
                Expr::Path(path) if path.path.get_ident().is_some() => quote!(Blame::#path),
                blame => quote!(#blame),
            };
            quote!(blame: #blame,)
        });
        let hint = or_common(&self.hint, &common.hint).map(|hint| match hint {
            Expr::Lit(text) if matches!(text.lit, Lit::Str(_)) => {
                quote!(hint: ::std::option::Option::Some(::std::format!(#text)),)
            }
            hint => quote!(hint: #hint,),
        });
        let excerpt = or_common(&self.excerpt, &common.excerpt);
        let excerpt = excerpt.map(|excerpt| quote!(excerpt: #excerpt,));
        Ok(quote!(Diagnosis { #code #blame #hint #excerpt ..#rest }))
    }
}

/// The field with the cause: `source`, or the only unnamed one.
fn cause(fields: &Fields) -> Option<Ident> {
    match fields {
        Fields::Named(fields) => {
            let mut names = fields.named.iter().filter_map(|field| field.ident.clone());
            names.find(|name| name == "source")
        }
        Fields::Unnamed(fields) => (!fields.unnamed.is_empty()).then(|| format_ident!("_0")),
        Fields::Unit => None,
    }
}

/// A pattern that binds each field to its name; `_0`, `_1` if unnamed.
fn pattern(fields: &Fields) -> TokenStream {
    match fields {
        Fields::Named(fields) => {
            let names = fields.named.iter().map(|field| &field.ident);
            quote!({ #(#names),* })
        }
        Fields::Unnamed(fields) => {
            let names = (0..fields.unnamed.len()).map(|index| format_ident!("_{index}"));
            quote!((#(#names),*))
        }
        Fields::Unit => TokenStream::new(),
    }
}

pub(super) fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let common = Options::read(&input.attrs)?;
    let name = &input.ident;
    let body = match &input.data {
        Data::Struct(data) => {
            let pattern = pattern(&data.fields);
            let diagnosis = common.diagnosis(&Options::default(), name, &data.fields)?;
            quote!(let Self #pattern = self; #diagnosis)
        }
        Data::Enum(data) => {
            let mut arms = TokenStream::new();
            for variant in &data.variants {
                let options = Options::read(&variant.attrs)?;
                let diagnosis = options.diagnosis(&common, &variant.ident, &variant.fields)?;
                let (variant, pattern) = (&variant.ident, pattern(&variant.fields));
                arms.extend(quote!(Self::#variant #pattern => #diagnosis,));
            }
            quote!(match self { #arms })
        }
        Data::Union(_) => return Err(Error::new_spanned(name, "unions are unsupported")),
    };
    Ok(quote! {
        #[automatically_derived]
        impl ::wincimg_common::diagnose::Diagnose for #name {
            #[allow(
                unused_variables,
                clippy::needless_update,
                clippy::used_underscore_binding,
                reason = "the arms of some enums need none of these"
            )]
            fn diagnosis(&self) -> ::wincimg_common::diagnose::Diagnosis {
                use ::wincimg_common::diagnose::{Blame, Diagnose as _, Diagnosis};
                #body
            }
        }
    })
}
