//! Circles of imports: source files each of which imports the next, and the last of which imports
//! the first. No file of a circle can be read, tested or moved without the others.
//!
//! A file *imports* another one if it names an item that the other file defines, wherever in its
//! code. The parts of a folder, which are its files and folders, import each other by the files in
//! them, and their circles count too. Three kinds of names are no imports:
//!
//! - names of a parent module's items in its child module, and of the child's items in the parent;
//! - names in tests;
//! - members of a type. `Type::member` imports the file of the type, wherever the `impl` block
//!   stands. `value.member()` imports nothing, since a parser doesn't know the type of a value.

mod c_files;
mod graph;
mod imports;
mod modules;
mod names;
mod packages;
#[cfg(test)]
mod tests;
mod tokens;

use std::path::Path;

use graph::Imports;
use modules::Crate;

const ADVICE: &str = "Break each circle: move the items that two of its files share into a file \
                      that imports neither, or into their parent module, or join the files.";

/// Prints every circle, and returns whether there are none. A manifest stands for the crates of its
/// workspace, any other path for a folder with C files.
///
/// # Errors
/// A description of the first file or manifest that can't be read.
pub fn run(operands: &[String]) -> Result<bool, String> {
    let mut imports = Imports::default();
    for operand in operands {
        let path = Path::new(operand);
        if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            for root in packages::crate_roots(path)? {
                imports::of_crate(&Crate::read(&root)?, &mut imports);
            }
        } else {
            c_files::imports(path, &mut imports)?;
        }
    }
    let parts = imports.between_parts();
    let mut number = 0;
    for (imports, what) in [(&imports, "files"), (&parts, "parts of a folder")] {
        for circle in imports.circles() {
            println!("{}", imports.describe(&circle, what));
            number += 1;
        }
    }
    match number {
        0 => println!("No circle among {} imports.", imports.len()),
        _ => println!("{number} circle{}. {ADVICE}", if number == 1 { "" } else { "s" }),
    }
    Ok(number == 0)
}
