//! Descriptions of datatypes for people: the MPI calls that make a type.

use std::collections::HashMap;
use std::fmt::{Display, Formatter, Result};

use super::classes::Classes;
use crate::basic::Leaf;
use crate::datatype::{Combiner, Datatype, Distribution, Node, Order};

/// A datatype's description over several lines, made by [`Datatype::describe`].
#[derive(Clone, Debug)]
pub struct Description<'a>(&'a Datatype);

impl Datatype {
    /// A description for people. For each constructor, it shows the MPI call with its arguments,
    /// and below it the child types.
    ///
    /// A long list is cut after its first items. Derived types are numbered in the order of their
    /// appearance, as in the [notation](crate::notation), which shows whole lists. A repeated type
    /// is shown by its number. The text ends without a newline.
    ///
    /// ```
    /// use shipable::Datatype;
    /// let record = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let column = Datatype::vector(8, 1, 10, &record)?;
    /// assert_eq!(column.describe().to_string(), "\
    /// U1: MPI_Type_vector, count 8, blocklength 1, stride 10 extents
    ///   oldtype U2: MPI_Type_create_struct, count 2
    ///     blocklength 1, displacement 0 bytes: MPI_INT
    ///     blocklength 2, displacement 8 bytes: MPI_DOUBLE");
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn describe(&self) -> Description<'_> {
        Description(self)
    }
}

/// The number of items shown of a long list.
const SHOWN: usize = 16;

impl Display for Description<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let classes = Classes::new();
        Describer { f, classes, numbers: HashMap::new(), indent: 0 }.typeref(self.0)
    }
}

struct Describer<'a, 'f> {
    f: &'a mut Formatter<'f>,
    classes: Classes,
    /// The numbers of the classes described so far.
    numbers: HashMap<usize, usize>,
    indent: usize,
}

impl Describer<'_, '_> {
    /// Writes the rest of a line, and the lines below it.
    fn typeref(&mut self, datatype: &Datatype) -> Result {
        if let Some(basic) = datatype.as_basic() {
            return self.f.write_str(basic.mpi_name());
        }
        let class = self.classes.of(datatype);
        if let Some(number) = self.numbers.get(&class) {
            return write!(self.f, "U{number}, as above");
        }
        let number = self.numbers.len() + 1;
        self.numbers.insert(class, number);
        write!(self.f, "U{number}: {}", call(datatype.combiner()))?;
        self.indent += 2;
        self.arguments(datatype.node())?;
        self.indent -= 2;
        Ok(())
    }

    fn arguments(&mut self, node: &Node) -> Result {
        match node {
            Node::Leaf(leaf) => return self.kind(*leaf),
            Node::Dup { .. } => {}
            Node::Contiguous { count, .. } => write!(self.f, ", count {count}")?,
            Node::Vector { count, blocklength, stride, .. } => {
                write!(
                    self.f,
                    ", count {count}, blocklength {blocklength}, stride {}",
                    extents(*stride)
                )?;
            }
            Node::Hvector { count, blocklength, stride, .. } => {
                write!(
                    self.f,
                    ", count {count}, blocklength {blocklength}, stride {}",
                    bytes(*stride)
                )?;
            }
            Node::Indexed { blocklengths, displacements, .. } => {
                self.blocks(blocklengths, displacements, extents)?;
            }
            Node::Hindexed { blocklengths, displacements, .. } => {
                self.blocks(blocklengths, displacements, bytes)?;
            }
            Node::IndexedBlock { blocklength, displacements, .. } => {
                self.equal_blocks(*blocklength, displacements, extents)?;
            }
            Node::HindexedBlock { blocklength, displacements, .. } => {
                self.equal_blocks(*blocklength, displacements, bytes)?;
            }
            Node::Struct { blocklengths, displacements, children, .. } => {
                write!(self.f, ", count {}", children.len())?;
                let members = blocklengths.iter().zip(displacements).zip(children);
                return self.list(members, |this, ((length, displacement), child)| {
                    let displacement = bytes(*displacement);
                    write!(this.f, "blocklength {length}, displacement {displacement}: ")?;
                    this.typeref(child)
                });
            }
            Node::SimpleStruct { blocklengths, children } => {
                write!(self.f, ", count {}", children.len())?;
                return self.list(blocklengths.iter().zip(children), |this, (length, child)| {
                    write!(this.f, "blocklength {length}: ")?;
                    this.typeref(child)
                });
            }
            Node::Subarray { sizes, subsizes, starts, order, .. } => {
                write!(self.f, ", ndims {}, order {}", sizes.len(), word(*order))?;
                let dimensions = sizes.iter().zip(subsizes).zip(starts);
                self.list(dimensions, |this, ((size, subsize), start)| {
                    write!(this.f, "size {size}, subsize {subsize}, start {start}")
                })?;
            }
            Node::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
                let (ndims, order) = (gsizes.len(), word(*order));
                write!(self.f, ", size {size}, rank {rank}, ndims {ndims}, order {order}")?;
                let dimensions = gsizes.iter().zip(distribs).zip(dargs).zip(psizes);
                self.list(dimensions, |this, (((gsize, distribution), darg), psize)| {
                    let distribution = match distribution {
                        Distribution::Block => "block",
                        Distribution::Cyclic => "cyclic",
                        Distribution::None => "none",
                    };
                    write!(this.f, "gsize {gsize}, distribution {distribution}, argument ")?;
                    match darg {
                        Some(darg) => write!(this.f, "{darg}, psize {psize}"),
                        None => write!(this.f, "default, psize {psize}"),
                    }
                })?;
            }
            Node::Resized { lb, extent, .. } => {
                write!(self.f, ", lb {}, extent {}", bytes(*lb), bytes(*extent))?;
            }
            Node::ValueIndex { value, index } => {
                self.line()?;
                write!(self.f, "value {value}")?;
                self.line()?;
                return write!(self.f, "index {index}");
            }
        }
        for child in node.children() {
            self.line()?;
            self.f.write_str("oldtype ")?;
            self.typeref(child)?;
        }
        Ok(())
    }

    fn kind(&mut self, leaf: Leaf) -> Result {
        let or_undefined = |n: Option<u32>| n.map_or("undefined".to_string(), |n| n.to_string());
        match leaf {
            Leaf::Basic(basic) => write!(self.f, ", {basic}"),
            Leaf::F90Real { precision, range } | Leaf::F90Complex { precision, range } => {
                let (precision, range) = (or_undefined(precision), or_undefined(range));
                write!(self.f, ", precision {precision}, range {range}")
            }
            Leaf::F90Integer { range } => write!(self.f, ", range {range}"),
        }
    }

    fn blocks(
        &mut self,
        lengths: &[i64],
        displacements: &[i64],
        unit: fn(i64) -> String,
    ) -> Result {
        write!(self.f, ", count {}", lengths.len())?;
        self.list(lengths.iter().zip(displacements), |this, (length, displacement)| {
            write!(this.f, "blocklength {length}, displacement {}", unit(*displacement))
        })
    }

    fn equal_blocks(
        &mut self,
        length: i64,
        displacements: &[i64],
        unit: fn(i64) -> String,
    ) -> Result {
        write!(self.f, ", count {}, blocklength {length}", displacements.len())?;
        self.list(displacements.iter(), |this, displacement| {
            write!(this.f, "displacement {}", unit(*displacement))
        })
    }

    /// Writes a line for each of the first items, and a line with the number of the others.
    fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> Result,
    ) -> Result {
        // A last item takes one line, just like the line that would replace it.
        let shown = if items.len() <= SHOWN + 1 { items.len() } else { SHOWN };
        let more = items.len() - shown;
        for each in items.take(shown) {
            self.line()?;
            item(self, each)?;
        }
        if more > 0 {
            self.line()?;
            write!(self.f, "... and {more} more")?;
        }
        Ok(())
    }

    fn line(&mut self) -> Result {
        write!(self.f, "\n{:width$}", "", width = self.indent)
    }
}

fn bytes(n: i64) -> String {
    format!("{n} byte{}", if n == 1 { "" } else { "s" })
}

fn extents(n: i64) -> String {
    format!("{n} extent{}", if n == 1 { "" } else { "s" })
}

fn word(order: Order) -> &'static str {
    match order {
        Order::C => "C",
        Order::Fortran => "Fortran",
    }
}

/// The MPI call that makes a type with this combiner.
pub(super) fn call(combiner: Combiner) -> &'static str {
    match combiner {
        Combiner::Named => "named",
        Combiner::Dup => "MPI_Type_dup",
        Combiner::Contiguous => "MPI_Type_contiguous",
        Combiner::Vector => "MPI_Type_vector",
        Combiner::HvectorInteger => "MPI_TYPE_HVECTOR of MPI-1",
        Combiner::Hvector => "MPI_Type_create_hvector",
        Combiner::Indexed => "MPI_Type_indexed",
        Combiner::HindexedInteger => "MPI_TYPE_HINDEXED of MPI-1",
        Combiner::Hindexed => "MPI_Type_create_hindexed",
        Combiner::IndexedBlock => "MPI_Type_create_indexed_block",
        Combiner::HindexedBlock => "MPI_Type_create_hindexed_block",
        Combiner::StructInteger => "MPI_TYPE_STRUCT of MPI-1",
        Combiner::Struct => "MPI_Type_create_struct",
        Combiner::SimpleStruct => "simple struct",
        Combiner::Subarray => "MPI_Type_create_subarray",
        Combiner::Darray => "MPI_Type_create_darray",
        Combiner::F90Real => "MPI_Type_create_f90_real",
        Combiner::F90Complex => "MPI_Type_create_f90_complex",
        Combiner::F90Integer => "MPI_Type_create_f90_integer",
        Combiner::Resized => "MPI_Type_create_resized",
        Combiner::ValueIndex => "MPI_Type_get_value_index",
    }
}
