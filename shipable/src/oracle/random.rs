//! Random types: first a random sequence of basic types, then a random tree with this signature.
//!
//! Two trees of one sequence have equal signatures, but usually different constructors and layouts.

use crate::arch::Architecture;
use crate::basic::{Basic, Leaf, Makeup};
use crate::datatype::{Datatype, Distribution, Order};
use crate::error::Result;

/// The properties of random types.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether all types are portable: no displacements in bytes, no markers.
    pub portable: bool,
    /// Whether no byte is covered twice, so that unpacking is well-defined. Tests of the generator
    /// check this.
    pub disjoint: bool,
    /// The architecture for which displacements in bytes are computed.
    pub architecture: Architecture,
    /// The approximate nesting depth of constructors.
    pub depth: u32,
    /// The approximate limit of basic items in one element.
    pub items: u64,
    /// Whether pair types are never split into two members. Accumulates need this, since they take
    /// one predefined type.
    pub whole_pairs: bool,
}

impl Default for Options {
    fn default() -> Options {
        let architecture = Architecture::NATIVE;
        Options {
            portable: false,
            disjoint: true,
            architecture,
            depth: 4,
            items: 200,
            whole_pairs: false,
        }
    }
}

/// A generator of random types. Equal seeds give equal types on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// The properties of the types; may be changed at any time.
    pub options: Options,
}

/// A sequence of basic types, structured by repetitions and lists.
#[derive(Clone, Debug)]
enum Sequence {
    One(Leaf),
    Repeat(i64, Box<Sequence>),
    List(Vec<Sequence>),
}

impl Sequence {
    /// Replaces every leaf by this one.
    fn fill(&mut self, with: Leaf) {
        match self {
            Sequence::One(leaf) => *leaf = with,
            Sequence::Repeat(_, of) => of.fill(with),
            Sequence::List(members) => members.iter_mut().for_each(|member| member.fill(with)),
        }
    }
}

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64, options: Options) -> Random {
        Random { state: seed.wrapping_mul(0x2545_f491_4f6c_dd1d), options }
    }

    /// A random type.
    pub fn datatype(&mut self) -> Datatype {
        let sequence = self.sequence(self.options.depth, self.options.items);
        self.tree(&sequence, self.options.depth)
    }

    /// Two random types with equal signatures.
    pub fn pair(&mut self) -> (Datatype, Datatype) {
        let sequence = self.sequence(self.options.depth, self.options.items);
        let depth = self.options.depth;
        (self.tree(&sequence, depth), self.tree(&sequence, depth))
    }

    /// Two random types with equally many items, all of one leaf.
    pub fn pair_of(&mut self, leaf: Leaf) -> (Datatype, Datatype) {
        let whole = std::mem::replace(&mut self.options.whole_pairs, true);
        let mut sequence = self.sequence(self.options.depth, self.options.items);
        sequence.fill(leaf);
        let depth = self.options.depth;
        let pair = (self.tree(&sequence, depth), self.tree(&sequence, depth));
        self.options.whole_pairs = whole;
        pair
    }

    /// A random predefined type that holds data.
    pub fn basic(&mut self) -> Basic {
        loop {
            let basic = *self.pick(Basic::ALL);
            if !basic.is_marker() {
                return basic;
            }
        }
    }

    /// A random architecture.
    pub fn architecture(&mut self) -> Architecture {
        *self.pick(Architecture::all())
    }

    /// Random bytes. About half of them are 0, so that small integers are frequent.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| if self.chance(2) { self.number() as u8 } else { 0 }).collect()
    }

    /// A random number, by splitmix64.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below a limit, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// A random index of a list of this length, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `n` times.
    pub fn chance(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random item of a list, which must not be empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    fn between(&mut self, least: i64, greatest: i64) -> i64 {
        least + self.below((greatest - least + 1) as u64) as i64
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }

    fn sequence(&mut self, depth: u32, items: u64) -> Sequence {
        if depth == 0 || items <= 1 || self.chance(12) {
            return Sequence::One(self.any_leaf());
        }
        if self.chance(2) {
            let most = items.min(12);
            let count = if self.chance(20) { 0 } else { 1 + self.below(most) };
            let rest = self.sequence(depth - 1, items / count.max(1));
            Sequence::Repeat(count as i64, Box::new(rest))
        } else {
            let members = 1 + self.below(5);
            let rest = items / members;
            Sequence::List((0..members).map(|_| self.sequence(depth - 1, rest)).collect())
        }
    }

    /// A random type with the signature of a sequence.
    fn tree(&mut self, sequence: &Sequence, depth: u32) -> Datatype {
        let made = match sequence {
            Sequence::One(leaf) => self.leaf(*leaf),
            Sequence::Repeat(count, of) => {
                let child = self.tree(of, depth.saturating_sub(1));
                self.repetition(*count, &child)
            }
            Sequence::List(members) => {
                let members: Vec<_> =
                    members.iter().map(|m| self.tree(m, depth.saturating_sub(1))).collect();
                self.structure(&members)
            }
        };
        // No constructor fails for these arguments: counts are small, and lists have equal lengths.
        let made = made.expect("the arguments of random types are valid");
        match self.below(14) {
            0 => Datatype::dup(&made).expect("dup accepts a shallow type"),
            1 if !self.options.portable => {
                self.resized(&made).expect("the bounds of random types are small")
            }
            2 => Datatype::contiguous(1, &made).expect("one element doesn't overflow"),
            _ => made,
        }
    }

    /// A random leaf. Rarely it is a Fortran kind, one that every architecture has.
    fn any_leaf(&mut self) -> Leaf {
        let (precision, range) = match self.below(3) {
            0 => (Some(1 + self.below(31) as u32), None),
            1 => (None, Some(1 + self.below(291) as u32)),
            _ => (Some(1 + self.below(31) as u32), Some(1 + self.below(291) as u32)),
        };
        match self.below(40) {
            0 => Leaf::F90Real { precision, range },
            1 => Leaf::F90Complex { precision, range },
            2 => Leaf::F90Integer { range: 1 + self.below(38) as u32 },
            _ => self.basic().into(),
        }
    }

    fn leaf(&mut self, leaf: Leaf) -> Result<Datatype> {
        match leaf {
            Leaf::Basic(basic) => match basic.makeup() {
                Makeup::Pair(value, index) if !self.options.whole_pairs && self.chance(2) => {
                    self.structure(&[value.into(), index.into()])
                }
                _ => Ok(basic.into()),
            },
            Leaf::F90Real { precision, range } => Datatype::f90_real(precision, range),
            Leaf::F90Complex { precision, range } => Datatype::f90_complex(precision, range),
            Leaf::F90Integer { range } => Datatype::f90_integer(range),
        }
    }

    fn extent(&self, datatype: &Datatype) -> (i64, i64) {
        let bounds = datatype.bounds(&self.options.architecture);
        bounds.map_or((0, 0), |bounds| (bounds.lb, bounds.extent()))
    }

    fn resized(&mut self, child: &Datatype) -> Result<Datatype> {
        let bounds = child.bounds(&self.options.architecture)?;
        if self.options.disjoint {
            let lb = bounds.lb.min(bounds.true_lb) - self.between(0, 9);
            let ub = bounds.ub.max(bounds.true_ub) + self.between(0, 9);
            return Datatype::resized(lb, ub - lb, child);
        }
        let (lb, extent) = (self.between(-20, 20), self.between(-40, 80));
        Datatype::resized(lb, extent, child)
    }

    /// `count` elements of a type, by a random constructor.
    fn repetition(&mut self, count: i64, child: &Datatype) -> Result<Datatype> {
        let divisors: Vec<_> = (1..=count).filter(|n| count % n == 0).collect();
        let outer = if divisors.is_empty() { 0 } else { *self.pick(&divisors) };
        let inner = if outer == 0 { self.between(0, 3) } else { count / outer };
        let (lb, extent) = self.extent(child);
        // An array begins at displacement 0, so a child that begins elsewhere would reach out of
        // its bounds.
        let fits = count > 0 && (lb == 0 || !self.options.disjoint);
        let most = if self.options.portable { 6 } else { 11 };
        match self.below(most) {
            0 => Datatype::contiguous(count, child),
            1 => {
                let stride = self.stride(inner);
                Datatype::vector(outer, inner, stride, child)
            }
            2 => {
                let (blocklengths, displacements) = self.blocks(count);
                Datatype::indexed(&blocklengths, &displacements, child)
            }
            3 => {
                let displacements = self.displacements(&vec![inner; outer as usize]);
                Datatype::indexed_block(inner, &displacements, child)
            }
            4 if fits => self.subarray(outer, inner, child),
            5 if fits || count == 0 => self.darray(outer, inner, child),
            6 => {
                let (stride, slack) = (self.stride(inner), self.between(0, 7));
                let stride = stride * extent + if stride < 0 { -slack } else { slack };
                match self.chance(4) {
                    true => Datatype::hvector_integer(outer, inner, stride, child),
                    false => Datatype::hvector(outer, inner, stride, child),
                }
            }
            7 => {
                let (blocklengths, displacements) = self.blocks(count);
                let displacements = self.in_bytes(&displacements, extent);
                match self.chance(4) {
                    true => Datatype::hindexed_integer(&blocklengths, &displacements, child),
                    false => Datatype::hindexed(&blocklengths, &displacements, child),
                }
            }
            8 => {
                let displacements = self.displacements(&vec![inner; outer as usize]);
                let displacements = self.in_bytes(&displacements, extent);
                Datatype::hindexed_block(inner, &displacements, child)
            }
            9 => {
                let (blocklengths, displacements) = self.blocks(count);
                let displacements = self.in_bytes(&displacements, extent);
                let children = vec![child.clone(); blocklengths.len()];
                Datatype::struct_(&blocklengths, &displacements, &children)
            }
            10 => {
                let many = self.structure(&vec![child.clone(); inner as usize])?;
                Datatype::contiguous(outer, &many)
            }
            _ => Datatype::contiguous(count, child),
        }
    }

    /// A random stride for blocks of this length. It is shorter than a block only if types may
    /// overlap.
    fn stride(&mut self, blocklength: i64) -> i64 {
        let least = if self.options.disjoint { blocklength } else { 0 };
        let stride = least + self.between(0, 4);
        if self.chance(4) { -stride } else { stride }
    }

    /// Displacements in bytes: multiples of the extent, plus a constant.
    fn in_bytes(&mut self, displacements: &[i64], extent: i64) -> Vec<i64> {
        let shift = self.between(-30, 30);
        displacements.iter().map(|at| at * extent + shift).collect()
    }

    /// Divides `count` elements into blocks, some of them empty, and gives each block a
    /// displacement.
    fn blocks(&mut self, count: i64) -> (Vec<i64>, Vec<i64>) {
        let mut blocklengths = Vec::new();
        let mut left = count;
        while left > 0 {
            let blocklength = if self.chance(8) { 0 } else { self.between(1, left.min(4)) };
            blocklengths.push(blocklength);
            left -= blocklength;
        }
        let displacements = self.displacements(&blocklengths);
        (blocklengths, displacements)
    }

    /// Displacements for blocks of these lengths, in random order in memory.
    fn displacements(&mut self, blocklengths: &[i64]) -> Vec<i64> {
        if !self.options.disjoint {
            return blocklengths.iter().map(|_| self.between(-5, 20)).collect();
        }
        let mut order: Vec<_> = (0..blocklengths.len()).collect();
        if self.chance(2) {
            self.shuffle(&mut order);
        }
        let mut displacements = vec![0; blocklengths.len()];
        let mut end = self.between(-6, 6);
        for at in order {
            end += if self.chance(2) { 0 } else { self.between(0, 3) };
            displacements[at] = end;
            end += blocklengths[at];
        }
        displacements
    }

    fn order(&mut self) -> Order {
        if self.chance(2) { Order::C } else { Order::Fortran }
    }

    fn subarray(&mut self, outer: i64, inner: i64, child: &Datatype) -> Result<Datatype> {
        let subsizes = match self.below(3) {
            0 => vec![outer * inner],
            1 => vec![outer, inner],
            _ => vec![outer, 1, inner],
        };
        let starts: Vec<_> = subsizes.iter().map(|_| self.between(0, 2)).collect();
        let sizes: Vec<_> =
            subsizes.iter().zip(&starts).map(|(n, at)| n + at + self.between(0, 2)).collect();
        Datatype::subarray(&sizes, &subsizes, &starts, self.order(), child)
    }

    /// A distributed array of which this process owns `outer` indices in one dimension and `inner`
    /// indices in the other.
    fn darray(&mut self, outer: i64, inner: i64, child: &Datatype) -> Result<Datatype> {
        let (mut gsizes, mut distribs, mut dargs, mut psizes) = (vec![], vec![], vec![], vec![]);
        let (mut size, mut rank) = (1, 0);
        for owned in [outer, inner] {
            let processes = self.between(1, 3);
            let (gsize, distribution, darg, psize, coordinate) = match self.below(4) {
                // One index on two processes: the second process owns none.
                _ if owned == 0 => (1, Distribution::Block, None, 2, 1),
                0 => (owned, Distribution::None, None, 1, 0),
                1 => {
                    // Only the last block may be shorter than the others.
                    let block = owned + self.between(0, 2);
                    let gsize = (processes - 1) * block + owned;
                    (gsize, Distribution::Block, Some(block), processes, processes - 1)
                }
                2 => {
                    let divisors: Vec<_> = (1..=owned).filter(|n| owned % n == 0).collect();
                    let block = *self.pick(&divisors);
                    let mine = self.between(0, processes - 1);
                    (owned * processes, Distribution::Cyclic, Some(block), processes, mine)
                }
                _ => {
                    let how = *self.pick(&[Distribution::Block, Distribution::Cyclic]);
                    let mine = self.between(0, processes - 1);
                    (owned * processes, how, None, processes, mine)
                }
            };
            gsizes.push(gsize);
            distribs.push(distribution);
            dargs.push(darg);
            psizes.push(psize);
            (size, rank) = (size * psize, rank * psize + coordinate);
        }
        let order = self.order();
        Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, order, child)
    }

    /// A struct of the members in the order of the type map, in random order in memory.
    fn structure(&mut self, members: &[Datatype]) -> Result<Datatype> {
        if let ([value, index], false) = (members, self.options.portable) {
            match Datatype::value_index(value, index) {
                Ok(pair) if self.chance(3) => return Ok(pair),
                _ => {}
            }
        }
        // Equal neighbours may form one block.
        let mut blocks: Vec<(i64, Datatype)> = Vec::new();
        for member in members {
            match blocks.last_mut() {
                Some((count, last)) if last == member && self.chance(2) => *count += 1,
                _ => blocks.push((1, member.clone())),
            }
        }
        if self.chance(8) {
            let empty = Datatype::basic(self.basic());
            let at = self.below(blocks.len() as u64 + 1) as usize;
            blocks.insert(at, (0, empty));
        }
        let (mut blocklengths, mut children): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        if self.options.portable || self.chance(3) {
            return Datatype::simple_struct(&blocklengths, &children);
        }
        let mut order: Vec<_> = (0..children.len()).collect();
        if self.chance(3) {
            self.shuffle(&mut order);
        }
        let mut displacements = vec![0; children.len()];
        let (start, mut end) = (self.between(-20, 20), 0);
        for at in order {
            let (lb, extent) = self.extent(&children[at]);
            end += if self.chance(2) { 0 } else { self.between(0, 9) };
            displacements[at] = start + end - lb;
            end += match self.options.disjoint {
                true => extent * blocklengths[at],
                false => self.between(-4, 8),
            };
        }
        if self.chance(10) {
            for (marker, displacement) in
                [(Datatype::lb(), start - self.between(0, 9)), (Datatype::ub(), start + end)]
            {
                if self.chance(2) {
                    let at = self.below(children.len() as u64 + 1) as usize;
                    blocklengths.insert(at, 1);
                    displacements.insert(at, displacement);
                    children.insert(at, marker);
                }
            }
        }
        let made = match self.chance(4) {
            true => Datatype::struct_integer(&blocklengths, &displacements, &children),
            false => Datatype::struct_(&blocklengths, &displacements, &children),
        }?;
        // A member's markers may set bounds that exclude the data of other members.
        let bounds = made.bounds(&self.options.architecture)?;
        match self.options.disjoint && (bounds.true_lb < bounds.lb || bounds.true_ub > bounds.ub) {
            true => self.resized(&made),
            false => Ok(made),
        }
    }
}
