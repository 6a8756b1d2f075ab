//! Enums without fields: an implementation of `shipable::Enumeration`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, DataEnum, DeriveInput, Error, Ident, Path, Result};

/// The integers that an enum can have.
const INTEGERS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

/// The integers in words.
const FIXED: &str = "8 to 64 bits";

/// Implements `Enumeration` for an enum.
pub(crate) fn implementation(
    input: &DeriveInput,
    data: &DataEnum,
    krate: &Path,
) -> Result<TokenStream> {
    let name = &input.ident;
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new(
            variant.fields.span(),
            "an enum with fields can't be shipped: the bytes don't determine which of them to \
             convert; ship a struct with a field for each variant, and an enum without fields that \
             names the variant",
        ));
    }
    if data.variants.is_empty() {
        return Err(Error::new(name.span(), "an enum without variants has no value to ship"));
    }
    let number = number(&input.attrs, name)?;
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics #krate::Enumeration for #name #arguments #bounds {
            type Number = #number;

            const NAME: &'static str = ::core::stringify!(#name);

            const VARIANTS: &'static [(Self, &'static str)] =
                &[#((Self::#variants, ::core::stringify!(#variants))),*];

            fn number(self) -> #number {
                self as #number
            }
        }
    })
}

/// The integer that the attribute `repr` gives the enum.
fn number(attributes: &[Attribute], name: &Ident) -> Result<Ident> {
    let mut found = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if let Some(integer) = INTEGERS.iter().find(|integer| meta.path.is_ident(integer)) {
                found = Some(format_ident!("{integer}"));
                return Ok(());
            }
            let why = match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("C") => "the width of an enum in C is the compiler's choice",
                Some("usize" | "isize") => "its width differs between machines",
                Some("u128" | "i128") => "MPI has no integer of 128 bits in C",
                _ => {
                    // The argument of `align(8)`.
                    if meta.input.peek(syn::token::Paren) {
                        let argument;
                        syn::parenthesized!(argument in meta.input);
                        argument.parse::<TokenStream>()?;
                    }
                    return Ok(());
                }
            };
            Err(meta.error(format!("{why}: use #[repr(i32)], or another integer of {FIXED}")))
        })?;
    }
    found.ok_or_else(|| {
        let problem = format!(
            "add #[repr(u8)], or another integer of {FIXED}, to {name}: otherwise the compiler \
             chooses the width of its numbers"
        );
        Error::new(name.span(), problem)
    })
}
