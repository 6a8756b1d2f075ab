//! Hints for files (MPI-5.0 section 14.2.8).

use std::path::Path;

use longshore::Class;

use crate::error::{Error, Result};

/// Whether a way of access is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Where it is likely to be faster.
    #[default]
    Automatic,
    /// Wherever it is possible.
    Enable,
    /// Never.
    Disable,
}

impl Choice {
    fn parse(value: &str) -> Option<Choice> {
        match value {
            "automatic" => Some(Choice::Automatic),
            "enable" | "true" => Some(Choice::Enable),
            "disable" | "false" => Some(Choice::Disable),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Choice::Automatic => "automatic",
            Choice::Enable => "enable",
            Choice::Disable => "disable",
        }
    }
}

/// Hints for a file, each with a value that it takes. None of them changes what a call does, only
/// how. [`KEYS`](Info::KEYS) has the keys.
///
/// ```
/// use longshore_file::Info;
///
/// let info = Info::default().set("cb_nodes", "2")?.set("romio_ds_read", "disable")?;
/// assert_eq!(info.get("cb_nodes").as_deref(), Some("2"));
/// assert_eq!(info.get("romio_ds_read").as_deref(), Some("disable"));
/// assert!(Info::default().set("cb_nodes", "many").is_err());
/// # Ok::<(), longshore_file::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The number of ranks that access the file for all in collective calls: the aggregators. Key
    /// `cb_nodes`; 0 stands for one on each host.
    pub(crate) cb_nodes: u32,
    /// The bytes of the file that an aggregator handles at a time, which bounds its memory. Key
    /// `cb_buffer_size`.
    pub(crate) cb_buffer_size: u64,
    /// Whether collective reads go by aggregators. Key `romio_cb_read`.
    pub(crate) cb_read: Choice,
    /// Whether collective writes go by aggregators. Key `romio_cb_write`.
    pub(crate) cb_write: Choice,
    /// Whether a read of scattered data reads the gaps between them, too. Key `romio_ds_read`.
    pub(crate) ds_read: Choice,
    /// The bytes that an individual read handles at a time, if the data aren't read to their place
    /// directly. Key `ind_rd_buffer_size`.
    pub(crate) ind_rd_buffer_size: u64,
    /// The bytes that an individual write handles at a time, if the data aren't written from their
    /// place directly. Key `ind_wr_buffer_size`.
    pub(crate) ind_wr_buffer_size: u64,
    /// The permissions of a file that is made, in octal digits. Key `file_perm`.
    pub(crate) file_perm: u32,
    /// The name of the file; key `filename`. A file sets it, and nothing else does.
    filename: Option<String>,
    /// Hints that are kept and shown, but have no effect here.
    others: [Option<String>; OTHERS.len()],
}

/// The keys of hints that are kept and shown, but have no effect.
const OTHERS: [&str; 9] = [
    "access_style",
    "cb_block_size",
    "chunked",
    "chunked_item",
    "chunked_size",
    "io_node_list",
    "num_io_nodes",
    "striping_factor",
    "striping_unit",
];

impl Default for Info {
    fn default() -> Info {
        Info {
            cb_nodes: 0,
            cb_buffer_size: 16 << 20,
            cb_read: Choice::Automatic,
            cb_write: Choice::Automatic,
            ds_read: Choice::Automatic,
            ind_rd_buffer_size: 4 << 20,
            ind_wr_buffer_size: 1 << 20,
            file_perm: 0o666,
            filename: None,
            others: Default::default(),
        }
    }
}

impl Info {
    /// The keys of all hints.
    pub const KEYS: [&'static str; 21] = [
        "access_style",
        "cb_block_size",
        "cb_buffer_size",
        "cb_nodes",
        "chunked",
        "chunked_item",
        "chunked_size",
        "collective_buffering",
        "file_perm",
        "filename",
        "ind_rd_buffer_size",
        "ind_wr_buffer_size",
        "io_node_list",
        "num_io_nodes",
        "romio_cb_read",
        "romio_cb_write",
        "romio_ds_read",
        "romio_ds_write",
        "romio_no_indep_rw",
        "striping_factor",
        "striping_unit",
    ];

    /// The hints with another value for a key. A key that isn't one of [`KEYS`](Info::KEYS) changes
    /// nothing, as MPI says.
    ///
    /// # Errors
    /// INFO_VALUE for a value that the hint doesn't take.
    pub fn set(mut self, key: &str, value: &str) -> Result<Info> {
        let expected = match key {
            "cb_nodes" => number(value, 1).map(|n| self.cb_nodes = n as u32).err(),
            "cb_buffer_size" => number(value, 4096).map(|n| self.cb_buffer_size = n).err(),
            "ind_rd_buffer_size" => number(value, 1).map(|n| self.ind_rd_buffer_size = n).err(),
            "ind_wr_buffer_size" => number(value, 1).map(|n| self.ind_wr_buffer_size = n).err(),
            "romio_cb_read" => choice(value).map(|it| self.cb_read = it).err(),
            "romio_cb_write" => choice(value).map(|it| self.cb_write = it).err(),
            "romio_ds_read" => choice(value).map(|it| self.ds_read = it).err(),
            // Gaps may belong to other ranks, so none is ever written.
            "romio_ds_write" => choice(value).err(),
            "collective_buffering" => match value {
                "true" => {
                    (self.cb_read, self.cb_write) = (Choice::Enable, Choice::Enable);
                    None
                }
                "false" => {
                    (self.cb_read, self.cb_write) = (Choice::Disable, Choice::Disable);
                    None
                }
                _ => Some("true or false"),
            },
            // Every rank opens the file, so that it may access it by itself at any time.
            "romio_no_indep_rw" => match value {
                "true" | "false" => None,
                _ => Some("true or false"),
            },
            "file_perm" => match u32::from_str_radix(value, 8) {
                Ok(bits) if bits <= 0o7777 => {
                    self.file_perm = bits;
                    None
                }
                _ => Some("permissions in octal digits, such as 640"),
            },
            _ => {
                if let Some(at) = OTHERS.iter().position(|known| *known == key) {
                    self.others[at] = Some(value.to_owned());
                }
                None
            }
        };
        match expected {
            None => Ok(self),
            Some(expected) => {
                let problem = format!("the hint {key} takes {expected}, not {value:?}");
                Err(Error::argument(Class::InfoValue, problem))
            }
        }
    }

    /// The hints of a file of this name.
    pub(crate) fn of_file(mut self, name: &Path) -> Info {
        self.filename = Some(name.to_string_lossy().into_owned());
        self
    }

    /// The value of a key; `None` for an unknown key, and for a hint without an effect that wasn't
    /// given.
    pub fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "cb_nodes" => self.cb_nodes.to_string(),
            "cb_buffer_size" => self.cb_buffer_size.to_string(),
            "ind_rd_buffer_size" => self.ind_rd_buffer_size.to_string(),
            "ind_wr_buffer_size" => self.ind_wr_buffer_size.to_string(),
            "romio_cb_read" => self.cb_read.name().to_owned(),
            "romio_cb_write" => self.cb_write.name().to_owned(),
            "romio_ds_read" => self.ds_read.name().to_owned(),
            "romio_ds_write" => Choice::Disable.name().to_owned(),
            "collective_buffering" => match (self.cb_read, self.cb_write) {
                (Choice::Disable, Choice::Disable) => "false".to_owned(),
                _ => "true".to_owned(),
            },
            "romio_no_indep_rw" => "false".to_owned(),
            "file_perm" => format!("{:o}", self.file_perm),
            "filename" => return self.filename.clone(),
            _ => {
                let at = OTHERS.iter().position(|known| *known == key)?;
                return self.others[at].clone();
            }
        })
    }
}

fn number(value: &str, least: u64) -> Result<u64, &'static str> {
    let number = value.parse().ok().filter(|number| (least..1 << 31).contains(number));
    number.ok_or(match least {
        4096 => "a number from 4096 to 2147483647",
        _ => "a number from 1 to 2147483647",
    })
}

fn choice(value: &str) -> Result<Choice, &'static str> {
    Choice::parse(value).ok_or("automatic, enable or disable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_set_is_shown() {
        for (key, value) in [
            ("cb_nodes", "3"),
            ("cb_buffer_size", "65536"),
            ("romio_cb_write", "enable"),
            ("romio_ds_read", "disable"),
            ("file_perm", "640"),
            ("collective_buffering", "false"),
            ("striping_unit", "1048576"),
            ("access_style", "read_once,sequential"),
        ] {
            let info = Info::default().set(key, value).unwrap();
            assert_eq!(info.get(key).as_deref(), Some(value), "{key}");
            assert!(Info::KEYS.contains(&key));
        }
        assert_eq!(Info::default().set("nobody's", "x").unwrap(), Info::default());
    }

    #[test]
    fn values_that_a_hint_does_not_take_are_named() {
        for (key, value) in
            [("cb_nodes", "0"), ("cb_buffer_size", "1"), ("romio_cb_read", "perhaps")]
        {
            let error = Info::default().set(key, value).unwrap_err();
            assert_eq!(error.class(), Class::InfoValue);
            assert!(error.to_string().contains(key) && error.to_string().contains(value));
        }
    }
}
