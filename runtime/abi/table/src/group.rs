//! Parameters that are passed on together, as one value.

use crate::function::{Function, Parameter, Way};

/// What one argument of a Rust function is made from.
pub(crate) enum Group<'a> {
    One(&'a Parameter),
    /// Several parameters: the name of the struct, in longshore-abi's module `edge::elements`, and
    /// each of its fields with its parameter.
    Several(&'static str, Vec<(&'static str, &'a Parameter)>),
}

/// The fields of a struct, each with the kinds that it may have.
type Fields = &'static [(&'static str, &'static [&'static str])];

/// A row for each struct: its name and its fields.
const STRUCTS: &[(&str, Fields)] = &[
    (
        "Reduction",
        &[
            ("operands", &["buf"]),
            ("result", &["buf"]),
            ("count", &["count"]),
            ("datatype", &["type"]),
        ],
    ),
    ("Elements", &[("buffer", &["buf"]), ("count", &["count", "number"]), ("datatype", &["type"])]),
    (
        "Divided",
        &[
            ("buffer", &["buf"]),
            ("partitions", &["int"]),
            ("count", &["large"]),
            ("datatype", &["type"]),
        ],
    ),
    (
        "Varying",
        &[
            ("buffer", &["buf"]),
            ("counts", &["count[]"]),
            ("displacements", &["disp[]"]),
            ("datatype", &["type"]),
        ],
    ),
    (
        "Typed",
        &[
            ("buffer", &["buf"]),
            ("counts", &["count[]"]),
            ("displacements", &["disp[]", "aint[]"]),
            ("types", &["type[]"]),
        ],
    ),
    (
        "Swap",
        &[
            ("origin", &["buf"]),
            ("compare", &["buf"]),
            ("result", &["buf"]),
            ("datatype", &["type"]),
            ("rank", &["rank"]),
            ("disp", &["aint"]),
        ],
    ),
    (
        "Fetch",
        &[
            ("origin", &["buf"]),
            ("result", &["buf"]),
            ("datatype", &["type"]),
            ("rank", &["rank"]),
            ("disp", &["aint"]),
        ],
    ),
    (
        "Remote",
        &[("rank", &["rank"]), ("disp", &["aint"]), ("count", &["count"]), ("datatype", &["type"])],
    ),
];

impl Function {
    /// Its parameters, in order, as they are passed on.
    pub(crate) fn groups(&self) -> Vec<Group<'_>> {
        let (mut groups, mut rest) = (Vec::new(), self.parameters());
        while let Some((first, others)) = rest.split_first() {
            let several = STRUCTS.iter().find_map(|(name, fields)| {
                let of_fields = fields.iter().zip(rest.get(..fields.len())?);
                let of_fields: Option<Vec<_>> = of_fields
                    .map(|((field, kinds), it)| it.is_one_of(kinds).then_some((*field, it)))
                    .collect();
                Some((*name, of_fields?))
            });
            let (group, after) = match several {
                Some((name, fields)) => {
                    let after = &rest[fields.len()..];
                    (Group::Several(name, fields), after)
                }
                None => (Group::One(first), others),
            };
            groups.push(group);
            rest = after;
        }
        groups
    }
}

impl Parameter {
    /// Whether it is a buffer or comes in, and has one of some kinds.
    fn is_one_of(&self, kinds: &[&str]) -> bool {
        let (name, is_array) = (self.kind().name(), self.kind().is_array());
        let is_it = |kind: &&str| match kind.strip_suffix("[]") {
            Some(element) => is_array && element == name,
            None => !is_array && *kind == name,
        };
        (name == "buf" || self.way() == Way::In) && kinds.iter().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::functions;

    /// The structs and the single parameters that a function gets.
    fn groups(name: &str) -> Vec<&'static str> {
        let is_it = |function: &&Function| function.name() == name && !function.is_own();
        let function = functions().iter().find(is_it).unwrap();
        let names = function.groups().into_iter().map(|group| match group {
            Group::One(parameter) => parameter.name(),
            Group::Several(name, _) => name,
        });
        names.collect()
    }

    #[test]
    fn a_buffer_is_passed_on_with_its_count_and_type() {
        assert_eq!(groups("Gather"), ["Elements", "Elements", "root", "comm"]);
        assert_eq!(groups("Scatterv"), ["Varying", "Elements", "root", "comm"]);
        assert_eq!(groups("Neighbor_alltoallw"), ["Typed", "Typed", "comm"]);
        assert_eq!(groups("Put"), ["Elements", "Remote", "win"]);
        assert_eq!(groups("Compare_and_swap"), ["Swap", "win"]);
        assert_eq!(groups("File_read_all_end"), ["fh", "buf", "status"]);
        assert_eq!(groups("Psend_init"), ["Divided", "dest", "tag", "comm", "info", "request"]);
    }

    #[test]
    fn operands_and_result_of_one_count_are_passed_on_together() {
        assert_eq!(groups("Allreduce"), ["Reduction", "op", "comm"]);
        let all = ["sendbuf", "recvbuf", "recvcounts", "datatype", "op", "comm"];
        assert_eq!(groups("Reduce_scatter"), all);
    }

    #[test]
    fn a_type_that_comes_out_is_passed_on_singly() {
        let own = functions().iter().find(|it| it.is_own() && it.name() == "Unpack").unwrap();
        assert!(own.groups().iter().all(|group| matches!(group, Group::One(_))));
    }
}
