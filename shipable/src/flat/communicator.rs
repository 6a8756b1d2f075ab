//! Descriptions of communicators, which jobs can store and compare.

use super::frame::{self, excerpt};
use super::{FlatError, field};
use crate::arch::Architecture;
use crate::error::Result;

/// The relation between two communicators, which may belong to different jobs (`MPI_Comm_compare`).
///
/// ARCH_EQUIV is the result that proposal 1 (docs/proposals.md) adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The same communicator of the same job.
    Ident,
    /// The same processes in the same order, with different contexts.
    Congruent,
    /// The same processes in different orders.
    Similar,
    /// Different processes, but this implementation can convert the data of each.
    ArchEquiv,
    /// None of the other relations.
    Unequal,
}

impl Comparison {
    /// The constant's name, such as `MPI_CONGRUENT`.
    pub const fn mpi_name(self) -> &'static str {
        match self {
            Comparison::Ident => "MPI_IDENT",
            Comparison::Congruent => "MPI_CONGRUENT",
            Comparison::Similar => "MPI_SIMILAR",
            Comparison::ArchEquiv => "MPI_ARCH_EQUIV",
            Comparison::Unequal => "MPI_UNEQUAL",
        }
    }
}

/// A communicator's description outside of its job: enough to compare it with other communicators,
/// and to convert data of its processes.
///
/// Its flat form has these fields:
///
/// ```text
/// MCM1;LEN;JOB;CONTEXT;SIZE;ORDERED;UNORDERED;RUNS;ARCHITECTURES;CRC
/// ```
///
/// - JOB: the job's random number, unique to one run, as 32 digits. The digits of all fields but
///   SIZE and RUNS are lowercase hexadecimal.
/// - CONTEXT: the communicator's identity in the job, as 16 digits.
/// - SIZE: the number of ranks, in decimal.
/// - ORDERED and UNORDERED: hashes of the members, with and without their order, as 32 digits.
/// - RUNS: the architecture of each rank, run-length coded. In `0*4,1*2`, the first four ranks have
///   architecture 0, the next two have architecture 1.
/// - ARCHITECTURES: the distinct descriptors, joined by `|`, in the order of their first use in
///   RUNS.
///
/// ```
/// use shipable::Architecture;
/// use shipable::flat::{CommunicatorDescription, Comparison};
///
/// let (x86_64, s390x) = (Architecture::X86_64, Architecture::S390X);
/// let here = CommunicatorDescription::new(0x5eed, 1, [(0, &x86_64), (1, &s390x)]);
/// let elsewhere = CommunicatorDescription::new(0xfeed, 1, [(0, &s390x)]);
/// let (unpacked, _) = CommunicatorDescription::unpack(elsewhere.pack().as_bytes())?;
/// assert_eq!(here.compare(&unpacked), Comparison::ArchEquiv);
/// assert_eq!(unpacked.architecture(0), Some(s390x));
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunicatorDescription {
    job: u128,
    context: u64,
    size: u64,
    ordered: u128,
    unordered: u128,
    /// Runs of ranks: an index into `architectures`, and a number of ranks.
    runs: Vec<(usize, u64)>,
    architectures: Vec<Described>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Described {
    descriptor: String,
    /// The architecture; `None` if the descriptor contains something that this implementation
    /// doesn't know.
    recognised: Option<Architecture>,
}

const COMMUNICATOR: &str = "MCM1;";
const LENGTH_AT: usize = COMMUNICATOR.len();

impl CommunicatorDescription {
    /// Describes a communicator.
    ///
    /// `job` identifies the run of a job, and `context` the communicator in the job. `members` has
    /// an identity in the job and an architecture for each rank.
    pub fn new<'a>(
        job: u128,
        context: u64,
        members: impl IntoIterator<Item = (u64, &'a Architecture)>,
    ) -> CommunicatorDescription {
        let mut table: Vec<Architecture> = Vec::new();
        let mut runs: Vec<(usize, u64)> = Vec::new();
        let mut identities = job.to_le_bytes().to_vec();
        let (mut size, mut unordered) = (0, 0u128);
        for (process, architecture) in members {
            size += 1;
            identities.extend(process.to_le_bytes());
            unordered = unordered.wrapping_add(mixed(job, process));
            let known = table.iter().position(|known| known == architecture);
            let index = known.unwrap_or_else(|| {
                table.push(*architecture);
                table.len() - 1
            });
            match runs.last_mut() {
                Some((last, count)) if *last == index => *count += 1,
                _ => runs.push((index, 1)),
            }
        }
        let described = |architecture: &Architecture| Described {
            descriptor: architecture.descriptor(),
            recognised: Some(*architecture),
        };
        CommunicatorDescription {
            job,
            context,
            size,
            ordered: hash(&identities),
            unordered,
            runs,
            architectures: table.iter().map(described).collect(),
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The architecture of a rank; `None` if the rank is out of range, or if this implementation
    /// doesn't recognise the architecture.
    pub fn architecture(&self, rank: u64) -> Option<Architecture> {
        let mut end = 0;
        // Can't overflow: the counts add up to the size.
        let run = self.runs.iter().find(|(_, count)| {
            end += count;
            rank < end
        });
        run.and_then(|(index, _)| self.architectures[*index].recognised)
    }

    /// The descriptors of the members' architectures, each with whether this implementation
    /// recognises it.
    pub fn architectures(&self) -> impl Iterator<Item = (&str, bool)> {
        self.architectures.iter().map(|a| (a.descriptor.as_str(), a.recognised.is_some()))
    }

    /// The relation between two communicators. An architecture is recognised if this implementation
    /// can convert its data: it knows the float formats, the byte order and the charset in the
    /// descriptor.
    ///
    /// | job and context | group | architectures | |
    /// |---|---|---|---|
    /// | same | same | recognised | IDENT |
    /// | | same | recognised | CONGRUENT |
    /// | | same members in another order | recognised | SIMILAR |
    /// | | | recognised | ARCH_EQUIV |
    /// | | | | UNEQUAL |
    pub fn compare(&self, other: &CommunicatorDescription) -> Comparison {
        let mut architectures = self.architectures().chain(other.architectures());
        if !architectures.all(|(_, recognised)| recognised) {
            return Comparison::Unequal;
        }
        let ordered = (self.size, self.ordered) == (other.size, other.ordered);
        let unordered = (self.size, self.unordered) == (other.size, other.unordered);
        let context = (self.job, self.context) == (other.job, other.context);
        match (ordered, unordered) {
            (true, true) if context => Comparison::Ident,
            (true, true) => Comparison::Congruent,
            (false, true) => Comparison::Similar,
            (_, false) => Comparison::ArchEquiv,
        }
    }

    /// The length of its flat form in bytes (`MPI_Pack_size` of a null datatype and a
    /// communicator).
    pub fn pack_size(&self) -> usize {
        self.pack().len()
    }

    /// Its flat form (`MPI_Pack` of a null datatype and a communicator).
    pub fn pack(&self) -> String {
        let runs: Vec<_> = self.runs.iter().map(|(at, count)| format!("{at}*{count}")).collect();
        let table: Vec<_> = self.architectures().map(|(descriptor, _)| descriptor).collect();
        let (job, context, size) = (self.job, self.context, self.size);
        let hashes = format!("{:032x};{:032x}", self.ordered, self.unordered);
        let (runs, table) = (runs.join(","), table.join("|"));
        let rest = format!(";{job:032x};{context:016x};{size};{hashes};{runs};{table};");
        frame::close(COMMUNICATOR.to_string(), &rest)
    }

    /// Reads the flat form at the start of `bytes`, and returns its description and its length.
    /// More bytes may follow (`MPI_Unpack` with a null datatype).
    ///
    /// # Errors
    /// [`Error::Flat`](crate::Error::Flat) if there is no valid form. An unrecognised architecture
    /// isn't an error: the description compares as UNEQUAL.
    pub fn unpack(bytes: &[u8]) -> Result<(CommunicatorDescription, usize)> {
        Ok(read(bytes)?)
    }
}

/// A process as a term of the unordered hash. Mixing makes the terms of consecutive processes
/// independent, so that small groups don't have equal sums.
fn mixed(job: u128, process: u64) -> u128 {
    // The final steps of splitmix64, a bijection.
    let finalised = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let (low, high) = (job as u64, (job >> 64) as u64);
    let low = finalised(finalised(process).wrapping_add(low));
    let high = finalised(finalised(!process).wrapping_add(high));
    u128::from(high) << 64 | u128::from(low)
}

/// The ordered hash: FNV-1a of 128 bits. It need not resist forgery.
fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

fn read(bytes: &[u8]) -> Result<(CommunicatorDescription, usize), FlatError> {
    let form = frame::open(bytes, COMMUNICATOR, LENGTH_AT)?;
    let mut fields = form.fields();
    fields.next("length")?;
    let job = hexadecimal("job", fields.next("job")?, 32)?;
    let context = hexadecimal("context", fields.next("context")?, 16)?;
    let size = decimal("size", fields.next("size")?)?;
    let ordered = hexadecimal("ordered hash", fields.next("ordered hash")?, 32)?;
    let unordered = hexadecimal("unordered hash", fields.next("unordered hash")?, 32)?;
    let runs = fields.next("runs")?;
    let table = fields.next("architectures")?;
    fields.end()?;
    let architectures: Vec<_> = list(table, '|').map(described).collect::<Result<_, _>>()?;
    let runs = read_runs(runs, size, architectures.len())?;
    let mut sorted: Vec<_> = architectures.iter().map(|a| a.descriptor.as_str()).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(field("architectures", "a descriptor occurs twice".to_string()));
    }
    // The 16 digits of CONTEXT fit 64 bits.
    let context = context as u64;
    let description =
        CommunicatorDescription { job, context, size, ordered, unordered, runs, architectures };
    Ok((description, form.length))
}

/// The items of a list: none for an empty text, otherwise at least one.
fn list(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).take(if text.is_empty() { 0 } else { usize::MAX })
}

fn described(descriptor: &str) -> Result<Described, FlatError> {
    match descriptor.is_empty() {
        true => Err(field("architectures", "a descriptor is empty".to_string())),
        false => Ok(Described {
            descriptor: descriptor.to_string(),
            recognised: Architecture::from_descriptor(descriptor).ok(),
        }),
    }
}

fn read_runs(text: &str, size: u64, table: usize) -> Result<Vec<(usize, u64)>, FlatError> {
    let wrong = |problem: String| field("runs", problem);
    let (mut runs, mut ranks, mut used) = (Vec::<(usize, u64)>::new(), 0u64, 0);
    for item in list(text, ',') {
        let (index, count) = item
            .split_once('*')
            .ok_or_else(|| wrong(format!("`{}` is not index*count", excerpt(&item))))?;
        let (index, count) = (decimal("runs", index)?, decimal("runs", count)?);
        let index = match usize::try_from(index) {
            Ok(index) if index < table && index <= used => index,
            _ => {
                return Err(wrong(format!(
                    "architecture {index}: there are {table}, numbered from 0 as they are first used"
                )));
            }
        };
        if count == 0 || runs.last().is_some_and(|(last, _)| *last == index) {
            return Err(wrong(format!(
                "`{}` is empty, or has the architecture of the run before it",
                excerpt(&item)
            )));
        }
        ranks = match ranks.checked_add(count) {
            Some(ranks) if ranks <= size => ranks,
            _ => return Err(wrong(format!("more ranks than the size, which is {size}"))),
        };
        used = used.max(index + 1);
        runs.push((index, count));
    }
    match ranks == size && used == table {
        true => Ok(runs),
        false => Err(wrong(format!(
            "{ranks} ranks of {size}, with {used} architectures of {table}: the runs must cover all of both"
        ))),
    }
}

fn hexadecimal(name: &'static str, digits: &str, length: usize) -> Result<u128, FlatError> {
    let lowercase = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let number = u128::from_str_radix(digits, 16).ok();
    match number.filter(|_| lowercase && digits.len() == length) {
        Some(number) => Ok(number),
        None => {
            let digits = excerpt(&digits);
            Err(field(name, format!("`{digits}` is not {length} lowercase hexadecimal digits")))
        }
    }
}

fn decimal(name: &'static str, digits: &str) -> Result<u64, FlatError> {
    match digits.parse::<u64>() {
        Ok(number) if number.to_string() == digits => Ok(number),
        _ => Err(field(name, format!("`{}` is not a number of plain digits", excerpt(&digits)))),
    }
}
