//! The MPI error classes.

macro_rules! classes {
    ($($name:ident = $wire:literal;)*) => {
        /// An MPI error class (MPI-5.0 section 9.4).
        ///
        /// Every error has a class, so a C interface can map errors without knowing each of them.
        /// The discriminant is MPI's constant in the standard ABI, and the class's wire code. The
        /// classes of failed processes aren't in MPI-5.0: the MPI Forum's proposal of fault
        /// tolerance names them, and their constants are Longshore's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Class {
            $($name = $wire,)*
        }

        impl Class {
            /// All classes, in the order of their wire codes.
            pub const ALL: &'static [Class] = &[$(Class::$name),*];

            /// The class with this wire code; `None` if the code is unassigned.
            pub const fn from_wire(code: u8) -> Option<Class> {
                match code { $($wire => Some(Class::$name),)* _ => None }
            }
        }
    };
}

classes! {
    Buffer = 1;
    Count = 2;
    Type = 3;
    Tag = 4;
    Comm = 5;
    Rank = 6;
    Request = 7;
    Root = 8;
    Group = 9;
    Op = 10;
    Topology = 11;
    Dims = 12;
    Arg = 13;
    Unknown = 14;
    Truncate = 15;
    Other = 16;
    Intern = 17;
    Pending = 18;
    InStatus = 19;
    Access = 20;
    Amode = 21;
    Assert = 22;
    BadFile = 23;
    Base = 24;
    Conversion = 25;
    Disp = 26;
    DupDatarep = 27;
    FileExists = 28;
    FileInUse = 29;
    File = 30;
    InfoKey = 31;
    InfoNokey = 32;
    InfoValue = 33;
    Info = 34;
    Io = 35;
    Keyval = 36;
    Locktype = 37;
    Name = 38;
    NoMem = 39;
    NotSame = 40;
    NoSpace = 41;
    NoSuchFile = 42;
    Port = 43;
    Quota = 44;
    ReadOnly = 45;
    RmaAttach = 46;
    RmaConflict = 47;
    RmaRange = 48;
    RmaShared = 49;
    RmaSync = 50;
    Service = 51;
    Size = 52;
    Spawn = 53;
    UnsupportedDatarep = 54;
    UnsupportedOperation = 55;
    Win = 56;
    RmaFlavor = 57;
    ProcAborted = 58;
    ValueTooLarge = 59;
    Session = 60;
    Errhandler = 61;
    Abi = 62;
    ProcFailed = 100;
    ProcFailedPending = 101;
    Revoked = 102;
}

impl Class {
    /// The wire code.
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// MPI's name of the class, such as `MPI_ERR_TYPE`. That of a class which MPI-5.0 doesn't have
    /// begins with `MPIX_`.
    pub fn mpi_name(self) -> String {
        let is_own = matches!(self, Class::ProcFailed | Class::ProcFailedPending | Class::Revoked);
        let mut name = String::from(if is_own { "MPIX_ERR" } else { "MPI_ERR" });
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_codes_are_stable_and_decode_to_their_classes() {
        for &class in Class::ALL {
            assert_eq!(Class::from_wire(class.wire()), Some(class));
        }
        assert_eq!((Class::Buffer.wire(), Class::Abi.wire()), (1, 62));
        assert_eq!((Class::from_wire(0), Class::from_wire(62 + 1)), (None, None));
    }

    #[test]
    fn mpi_names_are_those_of_the_standard() {
        assert_eq!(Class::Type.mpi_name(), "MPI_ERR_TYPE");
        assert_eq!(Class::RmaSync.mpi_name(), "MPI_ERR_RMA_SYNC");
        assert_eq!(Class::InfoNokey.mpi_name(), "MPI_ERR_INFO_NOKEY");
        assert_eq!(Class::ValueTooLarge.mpi_name(), "MPI_ERR_VALUE_TOO_LARGE");
        assert_eq!(Class::ProcFailedPending.mpi_name(), "MPIX_ERR_PROC_FAILED_PENDING");
    }
}
