//! The words for the values of the job's options, on the command line and in the environment.

use std::fmt;
use std::str::FromStr;

use super::{OnDeath, Progress, Routes, Switch};

/// A word that names no value of the option. The message lists the words that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct UnknownWord(pub(super) &'static str);

/// Implements `Display` and `FromStr` by one word for each value, and further words for `FromStr`.
macro_rules! words {
    ($type:ident, $expected:literal: $($value:ident = $word:literal $(or $other:literal)*),+) => {
        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<$type, UnknownWord> {
                match word {
                    $($word $(| $other)* => Ok($type::$value),)+
                    _ => Err(UnknownWord($expected)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($type::$value => $word,)+
                })
            }
        }
    };
}

words!(Routes, "best or message": Best = "best", Message = "message");
words!(Progress, "on or off": On = "on" or "1", Off = "off" or "0");
words!(Switch, "on or off": On = "on" or "1", Off = "off" or "0");
words!(OnDeath, "end or survive": End = "end", Survive = "survive");
