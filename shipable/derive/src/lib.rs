//! The derive macro `Shipable`, which implements `shipable::Element` for structs, and
//! `shipable::Enumeration` for enums.

mod enumeration;

use proc_macro::TokenStream;
use proc_macro_crate::{FoundCrate, crate_name};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, GenericParam, Member, Path, Result, Type};

/// Implements `Element` for a struct, or `Enumeration` for an enum without fields.
///
/// A struct must be `Copy` and `#[repr(C)]`, and every field must be an element. An enum must be
/// `Copy` and have a representation of fixed width, such as `#[repr(u8)]`. `Enum<T>` is an element
/// for it.
///
/// The generated code refers to the crate `shipable`, or to `longshore`, which re-exports it. If
/// neither is a dependency, `#[shipable(crate = some::path)]` gives the path of `shipable`, or of a
/// module with its `Element`, `Enumeration` and `Datatype`.
#[proc_macro_derive(Shipable, attributes(shipable))]
pub fn derive_shipable(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            return enumeration::implementation(input, data, &crate_path(&input.attrs)?);
        }
        Data::Union(_) => {
            return Err(Error::new(
                name.span(),
                "a union can't be shipped: the bytes don't determine which field to convert",
            ));
        }
    };
    if !has_layout(&input.attrs)? {
        return Err(Error::new(
            name.span(),
            format!("add #[repr(C)] to {name}: Rust's own layout may differ between builds"),
        ));
    }
    let krate = crate_path(&input.attrs)?;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Type(parameter) => {
                parameter.bounds.push(syn::parse_quote!(#krate::Element));
            }
            GenericParam::Lifetime(lifetime) => {
                return Err(Error::new(
                    lifetime.span(),
                    "a struct with a lifetime can't be shipped: an address means nothing to \
                     another process",
                ));
            }
            GenericParam::Const(_) => {}
        }
    }
    let names = fields.iter().enumerate().map(|(at, field)| {
        field.ident.as_ref().map_or(at.to_string(), |name| name.unraw().to_string())
    });
    let names: Vec<_> = names.collect();
    let members = members(fields)?;
    let (generics, arguments, bounds) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        // SAFETY: the struct is `#[repr(C)]`, and the compiler computes the offsets. Each field is
        // an element: an item of the trait itself takes the fields, so it is the library's,
        // whatever else the crate's path names. So the items lie inside of the struct, and any
        // bytes are a valid value.
        unsafe impl #generics #krate::Element for #name #arguments #bounds {
            fn datatype() -> #krate::Datatype {
                <Self as #krate::Element>::structure(|members| members #(#members)*)
            }

            fn simple() -> ::core::option::Option<#krate::Datatype> {
                <Self as #krate::Element>::simple_structure(|members| members #(#members)*)
            }

            fn field_names() -> ::std::string::String {
                <Self as #krate::Element>::names_of(&[#(#names),*], |members| members #(#members)*)
            }

            fn item_names() -> ::std::string::String {
                <Self as #krate::Element>::items_of(&[#(#names),*], |members| members #(#members)*)
            }
        }
    })
}

/// The calls that add the struct's members, each with an element type and an offset.
fn members(fields: &Fields) -> Result<Vec<proc_macro2::TokenStream>> {
    let refusals = fields.iter().filter_map(|field| refuse(&field.ty).err());
    if let Some(all) = refusals.reduce(|mut all, one| {
        all.combine(one);
        all
    }) {
        return Err(all);
    }
    let members = fields.iter().enumerate().map(|(at, field)| {
        let (ty, member) = (&field.ty, field.ident.clone().map_or(Member::from(at), Member::from));
        quote_spanned! { ty.span() =>
            .field::<#ty>(::core::mem::offset_of!(Self, #member))
        }
    });
    Ok(members.collect())
}

/// Refuses common types that can't be shipped, with an error that names an alternative.
fn refuse(ty: &Type) -> Result<()> {
    let why = match ty {
        Type::Reference(_) | Type::Ptr(_) | Type::BareFn(_) => {
            "an address means nothing to another process"
        }
        Type::Array(array) => return refuse(&array.elem),
        Type::Tuple(tuple) if tuple.elems.len() > 8 => {
            "tuples of up to 8 elements can be shipped: use a struct"
        }
        Type::Tuple(tuple) => return tuple.elems.iter().try_for_each(refuse),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Ok(()) };
            let generic = !last.arguments.is_empty();
            let local = path.path.segments.len() == 1;
            let standard = ["std", "core", "alloc"];
            if !local
                && !path
                    .path
                    .segments
                    .first()
                    .is_some_and(|s| standard.iter().any(|n| s.ident == n))
            {
                return Ok(());
            }
            match (last.ident.to_string().as_str(), generic) {
                ("usize", _) => "usize has another width on other machines: use u64",
                ("isize", _) => {
                    "isize has another width on other machines: use i64, or c::Aint of longshore or shipable for an MPI_Aint"
                }
                ("bool", _) => {
                    "received bytes may not be a valid bool: use c::Bool of longshore or shipable, which accepts any byte"
                }
                ("char", _) => {
                    "received bytes may not be a valid char: use u32, and char::from_u32"
                }
                ("i128" | "u128", _) => "MPI has no integer of 128 bits in C: use two u64",
                ("String", false) => "a String holds an address: use an array of bytes",
                ("Vec" | "Box" | "Rc" | "Arc", true) => {
                    "it holds an address, which means nothing to another process: use an array"
                }
                ("Option", true) => {
                    "received bytes may not be a valid Option: use the value, and reserve one for none"
                }
                ("NonZero", true) => "received bytes may be zero: use the plain integer",
                _ => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
}

/// Whether the attributes give the struct a defined layout.
fn has_layout(attributes: &[Attribute]) -> Result<bool> {
    let mut found = false;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            // The argument of `align(8)` or `packed(2)`.
            if meta.input.peek(syn::token::Paren) {
                let argument;
                syn::parenthesized!(argument in meta.input);
                argument.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The path of the crate `shipable`: the attribute's path, otherwise the name in the manifest of
/// the crate being compiled.
fn crate_path(attributes: &[Attribute]) -> Result<Path> {
    let mut given = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("shipable")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = path`"));
            }
            given = Some(meta.value()?.call(Path::parse_mod_style)?);
            Ok(())
        })?;
    }
    if let Some(path) = given {
        return Ok(path);
    }
    let by_dependency = |name: &str| match crate_name(name) {
        Ok(FoundCrate::Name(renamed)) => Some(format_ident!("{renamed}")),
        Ok(FoundCrate::Itself) => Some(format_ident!("{name}")),
        Err(_) => None,
    };
    Ok(match (by_dependency("shipable"), by_dependency("longshore")) {
        (Some(shipable), _) => syn::parse_quote!(::#shipable),
        (None, Some(longshore)) => syn::parse_quote!(::#longshore::shipable),
        (None, None) => syn::parse_quote!(::shipable),
    })
}
