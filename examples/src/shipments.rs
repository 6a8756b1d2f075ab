//! The real input of the table example: shipments, a line each, as CSV. A small program makes it from a seed.

use std::io::{Read, Write};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The first line.
const HEADER: [&str; 5] = ["id", "containers", "tonnes", "value", "port"];
/// Bytes of a port's name, padded with blanks as Fortran would.
pub const PORT: usize = 12;

const PORTS: [&str; 8] =
    ["Rotterdam", "Gdynia", "Valparaiso", "Busan", "Mombasa", "Oakland", "Port Said", "Chittagong"];

/// Shipments by columns, as a column store would hold them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shipments {
    /// Numbers of the shipments, increasing.
    pub id: Vec<i32>,
    /// Containers on board.
    pub containers: Vec<i16>,
    /// Their mass.
    pub tonnes: Vec<f64>,
    /// Their value in cents; more than 32 bits hold.
    pub value: Vec<i64>,
    /// Where they go, padded with blanks.
    pub port: Vec<[u8; PORT]>,
}

impl Shipments {
    /// `rows` shipments, always the same ones for a seed.
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

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.id.len()
    }

    /// Reads CSV as [`Shipments::write`] writes it.
    ///
    /// # Errors
    /// A line that isn't a shipment, by its number and field.
    pub fn read(from: impl Read) -> Result<Shipments, String> {
        let mut read = Shipments::default();
        for line in csv::Reader::from_reader(from).records() {
            let line = line.map_err(|error| error.to_string())?;
            let number = line.position().map_or(0, csv::Position::line);
            let bad =
                |what: &str| format!("line {number}: {what} is not as it should be: {line:?}");
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
    /// What writing meets.
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
    fn csv_comes_back_as_it_went() {
        let made = Shipments::random(1000, 7);
        let mut text = Vec::new();
        made.write(&mut text).expect("a vector takes everything");
        assert_eq!(Shipments::read(text.as_slice()), Ok(made.clone()));
        let mut again = Vec::new();
        Shipments::random(1000, 7).write(&mut again).expect("a vector takes everything");
        assert_eq!(again, text);
        assert_ne!(Shipments::random(1000, 8), made);
    }

    #[test]
    fn a_bad_field_is_named_with_its_line() {
        let text = "id,containers,tonnes,value,port\n1,2,3.5,4,Gdynia\n2,70000,1,1,Busan\n";
        let error = Shipments::read(text.as_bytes()).expect_err("70000 is no i16");
        assert!(error.starts_with("line 3: containers"), "{error}");
    }
}
