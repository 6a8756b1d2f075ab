//! The resolution of paths, through imports and re-exports, to the file that defines the item.

use super::modules::{Crate, FileId, ModuleId, Name};

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Module(ModuleId),
    Item { file: FileId, module: ModuleId, name: String },
}

/// The namespace that a path's last name is looked up in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Macros,
    Items,
    Any,
}

/// Lookups under way, in order to end an import that leads back to itself.
type Pending = Vec<(ModuleId, String)>;

impl Crate {
    /// The targets of a path that is written in a module. None if it leads out of the crate.
    pub fn resolve(&self, from: ModuleId, path: &[String], space: Space) -> Vec<Target> {
        self.follow(from, path, space, &mut Pending::new())
    }

    /// The targets of a path whose beginning leads to `start`.
    pub fn descend(&self, start: Target, rest: &[String], space: Space) -> Vec<Target> {
        self.walk(vec![start], rest, space, &mut Pending::new())
    }

    fn follow(
        &self,
        from: ModuleId,
        path: &[String],
        space: Space,
        pending: &mut Pending,
    ) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let start = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(from)],
            "super" => {
                let mut parent = self.modules[from].parent;
                while let (Some(module), Some("super")) = (parent, rest.first().map(String::as_str))
                {
                    parent = self.modules[module].parent;
                    rest = &rest[1..];
                }
                parent.map(Target::Module).into_iter().collect()
            }
            name => {
                let space = if rest.is_empty() { space } else { Space::Items };
                let found = self.look_up(from, name, space, pending);
                if found.is_empty() && space == Space::Macros {
                    self.look_up_textually(from, name)
                } else {
                    found
                }
            }
        };
        self.walk(start, rest, space, pending)
    }

    fn walk(
        &self,
        mut reached: Vec<Target>,
        path: &[String],
        space: Space,
        pending: &mut Pending,
    ) -> Vec<Target> {
        for (index, name) in path.iter().enumerate() {
            let space = if index + 1 == path.len() { space } else { Space::Items };
            let mut next = Vec::new();
            for target in reached {
                match target {
                    Target::Module(module) => {
                        let found = self.look_up(module, name, space, pending);
                        if found.is_empty() && self.modules[module].written.contains(name.as_str())
                        {
                            next.push(item(self.modules[module].file, module, name));
                        }
                        next.extend(found);
                    }
                    // The rest of the path is a variant, or a member of the type.
                    Target::Item { .. } => next.push(target),
                }
            }
            reached = next;
        }
        reached.sort();
        reached.dedup();
        reached
    }

    /// The targets of a name within a module.
    fn look_up(
        &self,
        module: ModuleId,
        name: &str,
        space: Space,
        pending: &mut Pending,
    ) -> Vec<Target> {
        // An import may begin with the very name that it declares, as `use lower::lower` does where
        // `lower` is also a module. So only the imports of a name that is under way are left out.
        let key = (module, name.to_owned());
        let is_pending = pending.contains(&key);
        pending.push(key);
        let mut found = Vec::new();
        for meaning in self.modules[module].names.get(name).into_iter().flatten() {
            match meaning {
                Name::Item(file) if space != Space::Macros => {
                    found.push(item(*file, module, name));
                }
                Name::Macro(file) if space != Space::Items => {
                    found.push(item(*file, module, name));
                }
                Name::Module(child) if space != Space::Macros => found.push(Target::Module(*child)),
                Name::Import(path) if !is_pending => {
                    let targets = self.follow(module, path, space, pending);
                    if targets.is_empty() && self.leads_out(module, path) {
                        // In this crate, the name is this module's.
                        found.push(item(self.modules[module].file, module, name));
                    }
                    found.extend(targets);
                }
                _ => {}
            }
        }
        // A declared name hides those of globs.
        if found.is_empty() && !is_pending {
            for glob in &self.modules[module].globs {
                for target in self.follow(module, glob, Space::Items, pending) {
                    if let Target::Module(other) = target {
                        found.extend(self.look_up(other, name, space, pending));
                    }
                }
            }
        }
        pending.pop();
        found
    }

    /// Whether an imported path begins with the name of another crate.
    fn leads_out(&self, from: ModuleId, path: &[String]) -> bool {
        let [first, rest @ ..] = path else { return false };
        let is_own = matches!(first.as_str(), "crate" | "self" | "super");
        // `pub use other;` declares the very name that it imports.
        let is_declared = self.modules[from].names.contains_key(first) && !rest.is_empty();
        !is_own && !is_declared
    }

    /// A macro without a path is also in scope in the modules within the one that defines it.
    fn look_up_textually(&self, from: ModuleId, name: &str) -> Vec<Target> {
        let ancestors = std::iter::successors(Some(from), |&module| self.modules[module].parent);
        for module in ancestors {
            for meaning in self.modules[module].names.get(name).into_iter().flatten() {
                if let Name::Macro(file) = meaning {
                    return vec![item(*file, module, name)];
                }
            }
        }
        Vec::new()
    }
}

/// The names of a path without generic arguments.
pub fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn item(file: FileId, module: ModuleId, name: &str) -> Target {
    Target::Item { file, module, name: name.to_owned() }
}
