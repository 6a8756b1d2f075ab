//! The modules of a crate: which file holds each of them, and the names that each declares.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ForeignItem, Item, Lit, Meta, Token, UseTree};

/// The index of a file among those of its crate.
pub type FileId = usize;
/// The index of a module among those of its crate. The crate's root is module 0.
pub type ModuleId = usize;

/// A crate's files and modules, without its tests.
pub struct Crate {
    pub files: Vec<SourceFile>,
    pub modules: Vec<Module>,
}

pub struct SourceFile {
    pub path: PathBuf,
    /// The file that declares this one as a module.
    pub parent: Option<FileId>,
}

pub struct Module {
    pub file: FileId,
    pub parent: Option<ModuleId>,
    /// The module's items, except inline modules: each of those is a module of its own.
    pub items: Vec<Item>,
    /// A name may stand for several things: types, values and macros have namespaces of their
    /// own, and `cfg` chooses between others.
    pub names: HashMap<String, Vec<Name>>,
    /// Paths that the module imports all names from.
    pub globs: Vec<Vec<String>>,
    /// Identifiers in macro calls of the module. Any of them may be an item that a macro defines.
    pub written: HashSet<String>,
}

/// The meaning of a name in a module.
pub enum Name {
    Item(FileId),
    Macro(FileId),
    Module(ModuleId),
    /// The target of a path that is written in the module.
    Import(Vec<String>),
}

/// One of the names that a `use` declaration imports.
pub struct Leaf {
    pub path: Vec<String>,
    /// The name that the path gets. `None` where all names of the path are imported.
    pub name: Option<String>,
    pub line: usize,
}

impl Crate {
    /// Reads a crate from its root file.
    ///
    /// # Errors
    /// A description of the first file that is missing or isn't Rust.
    pub fn read(root: &Path) -> Result<Crate, String> {
        let mut krate = Crate { files: Vec::new(), modules: Vec::new() };
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        krate.read_file(root.to_owned(), folder, None)?;
        krate.expand_macros();
        Ok(krate)
    }

    /// Reads a file as a module. The files of its child modules lie in `folder`.
    fn read_file(
        &mut self,
        path: PathBuf,
        folder: PathBuf,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| at(&error))?;
        let parsed = syn::parse_file(&text).map_err(|error| at(&error))?;
        let file = self.files.len();
        let parent_file = parent.map(|parent| self.modules[parent].file);
        self.files.push(SourceFile { path, parent: parent_file });
        self.read_module(file, parsed.items, folder, parent)
    }

    fn read_module(
        &mut self,
        file: FileId,
        items: Vec<Item>,
        folder: PathBuf,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let module = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            items: Vec::new(),
            names: HashMap::new(),
            globs: Vec::new(),
            written: HashSet::new(),
        });
        for item in items {
            if is_test(&item) {
                continue;
            }
            let Item::Mod(child) = item else {
                self.declare(module, &item);
                self.modules[module].items.push(item);
                continue;
            };
            let name = child.ident.to_string();
            let child = match child.content {
                Some((_, items)) => self.read_module(file, items, folder.join(&name), Some(module)),
                None => {
                    let (path, folder) = self.child_file(file, &name, &child.attrs, &folder);
                    self.read_file(path, folder, Some(module))
                }
            }?;
            self.modules[module].names.entry(name).or_default().push(Name::Module(child));
        }
        Ok(module)
    }

    /// The file of a module that is declared in another one, and the folder of its own children.
    fn child_file(
        &self,
        declared_in: FileId,
        name: &str,
        attributes: &[Attribute],
        folder: &Path,
    ) -> (PathBuf, PathBuf) {
        if let Some(path) = attributes.iter().find_map(path_attribute) {
            let file = self.files[declared_in].path.with_file_name("").join(path);
            let folder = file.with_file_name("");
            return (file, folder);
        }
        let file = folder.join(format!("{name}.rs"));
        let folder = folder.join(name);
        if file.exists() { (file, folder) } else { (folder.join("mod.rs"), folder) }
    }

    /// Enters the names that an item declares.
    fn declare(&mut self, module: ModuleId, item: &Item) {
        let file = self.modules[module].file;
        let ident = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::TraitAlias(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Union(item) => &item.ident,
            Item::ForeignMod(block) => {
                for item in &block.items {
                    let ident = match item {
                        ForeignItem::Fn(item) => &item.sig.ident,
                        ForeignItem::Static(item) => &item.ident,
                        ForeignItem::Type(item) => &item.ident,
                        _ => continue,
                    };
                    self.enter(module, ident.to_string(), Name::Item(file));
                }
                return;
            }
            Item::Macro(item) => {
                let Some(ident) = &item.ident else { return };
                if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                    self.enter(0, ident.to_string(), Name::Macro(file));
                }
                return self.enter(module, ident.to_string(), Name::Macro(file));
            }
            Item::Use(item) if item.leading_colon.is_none() => {
                for leaf in leaves(&item.tree) {
                    match leaf.name {
                        Some(name) => self.enter(module, name, Name::Import(leaf.path)),
                        None => self.modules[module].globs.push(leaf.path),
                    }
                }
                return;
            }
            _ => return,
        };
        self.enter(module, ident.to_string(), Name::Item(file));
    }

    fn enter(&mut self, module: ModuleId, name: String, what: Name) {
        self.modules[module].names.entry(name).or_default().push(what);
    }

    /// Notes the names that macro calls may define, since no macro is expanded. These are the
    /// identifiers of the call, and those after a keyword such as `struct` in the macro's body.
    fn expand_macros(&mut self) {
        let macros = self.modules.iter().flat_map(|module| &module.items).filter_map(|item| {
            let Item::Macro(item) = item else { return None };
            Some((item.ident.as_ref()?.to_string(), item.mac.tokens.clone()))
        });
        let mut defined: HashMap<String, HashSet<String>> = HashMap::new();
        for (name, body) in macros {
            collect_defined(body, defined.entry(name).or_default());
        }
        for module in &mut self.modules {
            for item in &module.items {
                let Item::Macro(call) = item else { continue };
                if call.ident.is_some() {
                    continue;
                }
                collect_identifiers(call.mac.tokens.clone(), &mut module.written);
                let name = call.mac.path.segments.last().map(|last| last.ident.to_string());
                if let Some(names) = name.and_then(|name| defined.get(&name)) {
                    module.written.extend(names.iter().cloned());
                }
            }
        }
    }
}

/// The names of a `use` tree, each with its whole path.
pub fn leaves(tree: &UseTree) -> Vec<Leaf> {
    fn descend(tree: &UseTree, prefix: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
        let (ident, name) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                descend(&path.tree, prefix, leaves);
                prefix.pop();
                return;
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| descend(tree, prefix, leaves));
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                return leaves.push(Leaf { path: prefix.clone(), name: None, line });
            }
            UseTree::Name(name) => (&name.ident, &name.ident),
            UseTree::Rename(rename) => (&rename.ident, &rename.rename),
        };
        let mut path = prefix.clone();
        let mut name = name.to_string();
        // `use a::{self}` imports `a`.
        if ident == "self" && !path.is_empty() {
            if name == "self" {
                name = path[path.len() - 1].clone();
            }
        } else {
            path.push(ident.to_string());
        }
        leaves.push(Leaf { path, name: Some(name), line: ident.span().start().line });
    }
    let mut found = Vec::new();
    descend(tree, &mut Vec::new(), &mut found);
    found
}

/// Whether attributes keep something out of all builds except those of tests.
pub fn are_of_test(attributes: &[Attribute]) -> bool {
    fn requires_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test"),
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .is_ok_and(|all| all.iter().any(requires_test)),
            _ => false,
        }
    }
    attributes.iter().any(|attribute| {
        let is_conditional = attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| requires_test(&condition));
        is_conditional || attribute.path().is_ident("test")
    })
}

fn is_test(item: &Item) -> bool {
    are_of_test(attributes(item)) || matches!(item, Item::Mod(module) if module.ident == "tests")
}

/// An item's attributes.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The file that an attribute `#[path = "FILE"]` names.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(path) if pair.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

fn collect_identifiers(tokens: TokenStream, into: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                into.insert(ident.to_string());
            }
            TokenTree::Group(group) => collect_identifiers(group.stream(), into),
            _ => {}
        }
    }
}

/// Collects the identifiers that stand after a keyword that begins an item.
fn collect_defined(tokens: TokenStream, into: &mut HashSet<String>) {
    const KEYWORDS: [&str; 8] =
        ["struct", "enum", "union", "trait", "fn", "const", "static", "type"];
    let mut is_after_keyword = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let ident = ident.to_string();
                let is_keyword = KEYWORDS.contains(&ident.as_str());
                if is_after_keyword && !is_keyword {
                    into.insert(ident);
                }
                is_after_keyword = is_keyword;
                continue;
            }
            TokenTree::Group(group) => collect_defined(group.stream(), into),
            _ => {}
        }
        is_after_keyword = false;
    }
}
