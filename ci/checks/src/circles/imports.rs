//! The imports of a crate: every path in its code, and the file that it leads to.

use std::collections::HashMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item};

use super::graph::Imports;
use super::modules::{Crate, Leaf, ModuleId, are_of_test, attributes, leaves};
use super::names::{Space, Target, segments};
use super::tokens;

/// Adds the imports between files of a crate, except those between a file and its parent.
pub fn of_crate(krate: &Crate, imports: &mut Imports) {
    for (module, content) in krate.modules.iter().enumerate() {
        let mut reader = Reader { krate, module, scopes: Vec::new(), imports };
        content.items.iter().for_each(|item| reader.visit_item(item));
    }
}

/// Names of a block: those that it imports, and those of its own items, which lead nowhere.
#[derive(Default)]
struct Scope {
    names: HashMap<String, Vec<Target>>,
    globs: Vec<Target>,
}

struct Reader<'a> {
    krate: &'a Crate,
    module: ModuleId,
    /// The blocks around the code that is read, the innermost one last.
    scopes: Vec<Scope>,
    imports: &'a mut Imports,
}

impl Reader<'_> {
    fn resolve(&self, path: &[String], space: Space) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let continued = |starts: &[Target]| {
            let ends =
                starts.iter().flat_map(|start| self.krate.descend(start.clone(), rest, space));
            ends.collect()
        };
        for scope in self.scopes.iter().rev() {
            if let Some(targets) = scope.names.get(first) {
                return continued(targets);
            }
            let from_globs = scope.globs.iter().flat_map(|glob| match glob {
                Target::Module(_) => self.krate.descend(glob.clone(), path, space),
                Target::Item { .. } => Vec::new(),
            });
            let from_globs: Vec<Target> = from_globs.collect();
            if !from_globs.is_empty() {
                return from_globs;
            }
        }
        self.krate.resolve(self.module, path, space)
    }

    /// Adds the imports that a path makes. Modules are no items: only the names in them count.
    fn add(&mut self, path: &[String], space: Space, line: usize) {
        for target in self.resolve(path, space) {
            self.add_target(&target, line);
        }
    }

    fn add_target(&mut self, target: &Target, line: usize) {
        let Target::Item { file: to, name, .. } = target else { return };
        let krate = self.krate;
        let from = krate.modules[self.module].file;
        let (source, definer) = (&krate.files[from], &krate.files[*to]);
        if source.parent != Some(*to) && definer.parent != Some(from) {
            self.imports.add(&source.path, &definer.path, name, line);
        }
    }

    fn add_leaf(&mut self, leaf: &Leaf) {
        self.add(&leaf.path, Space::Any, leaf.line);
    }

    /// The names that the items among a block's statements declare.
    fn scope_of(&self, block: &syn::Block) -> Scope {
        let mut scope = Scope::default();
        for statement in &block.stmts {
            let syn::Stmt::Item(item) = statement else { continue };
            if are_of_test(attributes(item)) {
                continue;
            }
            let ident = match item {
                Item::Use(item) => {
                    for leaf in leaves(&item.tree) {
                        let targets = self.resolve(&leaf.path, Space::Any);
                        match leaf.name {
                            Some(name) => scope.names.entry(name).or_default().extend(targets),
                            None => scope.globs.extend(targets),
                        }
                    }
                    continue;
                }
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Union(item) => &item.ident,
                _ => continue,
            };
            scope.names.entry(ident.to_string()).or_default();
        }
        scope
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add(&segments(path), Space::Items, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.leading_colon.is_none() {
            self.add(&segments(&call.path), Space::Macros, call.path.span().start().line);
        }
        for path in tokens::paths(call.tokens.clone()) {
            let space = if path.is_call { Space::Macros } else { Space::Any };
            self.add(&path.segments, space, path.line);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            leaves(&item.tree).iter().for_each(|leaf| self.add_leaf(leaf));
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.scopes.push(self.scope_of(block));
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    // Attributes and visibilities name modules and derives, which are no items of the file's code.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    // Code that only tests see is left out wherever an attribute can stand.
    fn visit_item(&mut self, item: &'ast Item) {
        if !are_of_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !are_of_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if !are_of_test(&item.attrs) {
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !are_of_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !are_of_test(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !are_of_test(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !are_of_test(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !are_of_test(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt_macro(&mut self, call: &'ast syn::StmtMacro) {
        if !are_of_test(&call.attrs) {
            visit::visit_stmt_macro(self, call);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let attributes = match expression {
            Expr::Assign(expression) => &expression.attrs,
            Expr::Block(expression) => &expression.attrs,
            Expr::Call(expression) => &expression.attrs,
            Expr::If(expression) => &expression.attrs,
            Expr::Macro(expression) => &expression.attrs,
            Expr::MethodCall(expression) => &expression.attrs,
            Expr::Return(expression) => &expression.attrs,
            Expr::Unsafe(expression) => &expression.attrs,
            _ => return visit::visit_expr(self, expression),
        };
        if !are_of_test(attributes) {
            visit::visit_expr(self, expression);
        }
    }
}
