//! The hosts of a job: as words of the command line, and as lines of a file.

use std::net::Ipv6Addr;
use std::path::Path;

use longshore_launcher::Host;

/// Parses `NAME`, `NAME:N`, an IPv6 address, or `[ADDRESS]:N`; `USER@` may precede any of them.
pub fn host(text: &str) -> Result<Host, String> {
    let expected = || {
        "expected NAME or NAME:N, where N is a number of ranks above 0; for an IPv6 address, ADDRESS or [ADDRESS]:N"
            .to_owned()
    };
    let (user, host) = text.split_at(text.rfind('@').map_or(0, |at| at + 1));
    let (name, count) = if is_address(host) {
        (host, None)
    } else if let Some(bracketed) = host.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']').ok_or_else(expected)?;
        let count = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or_else(expected)?),
        };
        (Some(address).filter(|address| is_address(address)).ok_or_else(expected)?, count)
    } else {
        host.split_once(':').map_or((host, None), |(name, count)| (name, Some(count)))
    };
    let ranks = count.map_or(Some(1), |count| count.parse().ok().filter(|&count| count > 0));
    // The start command would take a name with a leading '-' for an option.
    let ranks = ranks.filter(|_| !name.is_empty() && !text.starts_with('-'));
    let ranks = ranks.ok_or_else(expected)?;
    // ssh expects an IPv6 address without brackets.
    Ok(Host { name: format!("{user}{name}").into(), ranks })
}

/// Whether `text` is an IPv6 address, with or without a zone: `fe80::1%eth0`.
fn is_address(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "-"));
    address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty()
}

/// What a file of hosts says.
#[derive(Debug, PartialEq, Eq)]
pub struct HostFile {
    /// The hosts, in the order of their first lines.
    pub hosts: Vec<Host>,
    /// Whether a line has the word `encrypt`: all that ranks send to other hosts is encrypted.
    pub encrypt: bool,
}

/// Reads a file of hosts, in the formats of MPICH and of Open MPI: a line for each host, NAME,
/// NAME:N or NAME slots=N, and comments after `#`. Further lines of a host add to its ranks. The
/// word `encrypt` may follow in any line, and is for the whole job: its hosts share one network.
///
/// # Errors
/// The file can't be read, or a line is another one; the text names the line.
pub fn file(path: &Path) -> Result<HostFile, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("can't read the hosts in {}: {error}", path.display()))?;
    let read = parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
    match read.hosts.is_empty() {
        true => Err(format!("{} has no host: give each a line", path.display())),
        false => Ok(read),
    }
}

fn parse(text: &str) -> Result<HostFile, String> {
    let mut hosts: Vec<Host> = Vec::new();
    let mut encrypt = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = words.next() else { continue };
        let of_line = |why: String| format!("line {number}: {why}");
        let mut next = host(name).map_err(of_line)?;
        for word in words {
            if word == "encrypt" {
                encrypt = true;
                continue;
            }
            let slots = word.strip_prefix("slots=").and_then(|slots| slots.parse().ok());
            let slots = slots.filter(|slots| *slots > 0 && *slots <= u32::MAX / 2);
            next.ranks = slots.ok_or_else(|| {
                of_line(format!(
                    "'{word}' after the host: expected slots=N, a number of ranks, or encrypt"
                ))
            })?;
        }
        match hosts.iter_mut().find(|known| known.name == next.name) {
            Some(known) => known.ranks = known.ranks.saturating_add(next.ranks),
            None => hosts.push(next),
        }
    }
    Ok(HostFile { hosts, encrypt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_names_or_addresses() {
        for (text, name, ranks) in [
            ("a", "a", 1),
            ("a:4", "a", 4),
            ("10.0.0.1:4", "10.0.0.1", 4),
            ("me@a:2", "me@a", 2),
            ("::1", "::1", 1),
            ("fd00::2:3", "fd00::2:3", 1),
            ("[::1]", "::1", 1),
            ("[::1]:4", "::1", 4),
            ("me@[fe80::1%eth0]:4", "me@fe80::1%eth0", 4),
            ("fe80::1%eth0", "fe80::1%eth0", 1),
        ] {
            let expected = Host { name: name.into(), ranks };
            assert_eq!(host(text), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            ":4",
            "a:",
            "a:0",
            "a:-1",
            "a:4:4",
            "-a",
            "-l@a",
            "me@",
            "me@:4",
            "[a]:4",
            "[::1",
            "[::1]4",
            "[::1]:",
            "[::1]:0",
            "[]:4",
            "::1::4",
            "fe80::1%",
            "1:2:3:4:5:6:7:8:9",
        ] {
            let error = host(wrong).unwrap_err();
            assert!(error.contains("[ADDRESS]:N"), "{wrong}: {error}");
        }
    }

    #[test]
    fn files_of_hosts_have_the_formats_of_other_launchers() {
        let text = "# two\na:2\n\nb slots=3 # more\nb\n[::1]:4\n";
        let hosts = [("a", 2), ("b", 4), ("::1", 4)];
        let hosts = hosts.map(|(name, ranks)| Host { name: name.into(), ranks }).to_vec();
        assert_eq!(parse(text), Ok(HostFile { hosts: hosts.clone(), encrypt: false }));
        let encrypted = text.replace("slots=3", "encrypt slots=3");
        assert_eq!(parse(&encrypted), Ok(HostFile { hosts, encrypt: true }));
        for (wrong, why) in [
            ("a\nb max_slots=4", "line 2: 'max_slots=4' after the host: expected slots=N"),
            ("a slots=0", "line 1: 'slots=0'"),
            (
                "a encrypt=on",
                "line 1: 'encrypt=on' after the host: expected slots=N, a number of \
                              ranks, or encrypt",
            ),
            ("a:0", "line 1: expected NAME or NAME:N"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
