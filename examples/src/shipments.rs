//! The input of the table example: shipments as CSV, one in each line. The example
//! `make-shipments` generates it from a seed.

use std::io::{Read, Write};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The first line of the CSV.
const HEADER: [&str; 5] = ["id", "containers", "tonnes", "value", "port"];
/// Bytes of a port's name, padded with blanks like a Fortran string.
pub const PORT: usize = 12;

const PORTS: [&str; 8] =
    ["Rotterdam", "Gdynia", "Valparaiso", "Busan", "Mombasa", "Oakland", "Port Said", "Chittagong"];

/// Shipments by column, as in a column store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shipments {
    /// Numbers of the shipments, in increasing order.
    pub id: Vec<i32>,
    /// Containers on board.
    pub containers: Vec<i16>,
    /// Masses in tonnes.
    pub tonnes: Vec<f64>,
    /// Values in cents. They exceed 32 bits.
    pub value: Vec<i64>,
    /// Ports of destination, padded with blanks.
    pub port: Vec<[u8; PORT]>,
}

impl Shipments {
    /// Generates `rows` shipments. On one machine, the same seed gives the same shipments.
    pub fn random(rows: usize, seed: u64) -> Shipments {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut made = Shipments::default();
        for row in 0..rows {
            let port = PORTS[random.random_range(0..PORTS.len())];
            made.id.push(1_000_000 + row as i32);
            made.containers.push(random.random_range(1..=24_000));
            made.tonnes.push(f64::from(random.random_range(1..=240_000_000_u32)) / 1000.0);
            made.value.push(random.random_range(-1_000_000..=900_000_000_000));
            made.port.push(padded(port.as_bytes()));
        }
        made
    }

    /// The number of shipments.
    pub fn rows(&self) -> usize {
        self.id.len()
    }

    /// Reads CSV in the format of [`Shipments::write`].
    ///
    /// # Errors
    /// A line that isn't a shipment. The message has the line's number and the bad field.
    pub fn read(from: impl Read) -> Result<Shipments, String> {
        let mut read = Shipments::default();
        for line in csv::Reader::from_reader(from).records() {
            let line = line.map_err(|error| error.to_string())?;
            let number = line.position().map_or(0, csv::Position::line);
            let bad = |field: &str| format!("line {number}: {field} is not valid: {line:?}");
            let field = |at: usize| line.get(at).unwrap_or_default();
            read.id.push(field(0).parse().map_err(|_| bad(HEADER[0]))?);
            read.containers.push(field(1).parse().map_err(|_| bad(HEADER[1]))?);
            read.tonnes.push(field(2).parse().map_err(|_| bad(HEADER[2]))?);
            read.value.push(field(3).parse().map_err(|_| bad(HEADER[3]))?);
            if field(4).len() > PORT {
                return Err(bad(HEADER[4]));
            }
            read.port.push(padded(field(4).as_bytes()));
        }
        Ok(read)
    }

    /// Writes CSV. The same shipments give the same bytes on every machine.
    ///
    /// # Errors
    /// An error of `to`.
    pub fn write(&self, to: impl Write) -> Result<(), csv::Error> {
        let mut csv = csv::Writer::from_writer(to);
        csv.write_record(HEADER)?;
        for row in 0..self.rows() {
            let port = String::from_utf8_lossy(self.port[row].trim_ascii_end()).into_owned();
            csv.write_record([
                self.id[row].to_string(),
                self.containers[row].to_string(),
                self.tonnes[row].to_string(),
                self.value[row].to_string(),
                port,
            ])?;
        }
        Ok(csv.flush()?)
    }
}

fn padded(name: &[u8]) -> [u8; PORT] {
    let mut port = [b' '; PORT];
    port[..name.len()].copy_from_slice(name);
    port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipments_are_read_back_as_written() {
        let made = Shipments::random(1000, 7);
        let mut text = Vec::new();
        made.write(&mut text).expect("writing to a vector cannot fail");
        assert_eq!(Shipments::read(text.as_slice()), Ok(made));
    }

    #[test]
    fn equal_seeds_give_equal_shipments() {
        let made = Shipments::random(1000, 7);
        assert_eq!(Shipments::random(1000, 7), made);
        assert_ne!(Shipments::random(1000, 8), made);
    }

    #[test]
    fn an_error_names_the_line_and_the_field() {
        let text = "id,containers,tonnes,value,port\n1,2,3.5,4,Gdynia\n2,70000,1,1,Busan\n";
        let error = Shipments::read(text.as_bytes()).expect_err("70000 is no i16");
        assert!(error.starts_with("line 3: containers"), "{error}");
    }
}
