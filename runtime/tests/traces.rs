//! The log of a rank. It is one test, because a process has one subscriber.

use std::fmt::{Debug, Write};
use std::sync::Mutex;

use longshore::sim::{Options, run};
use longshore::{Architecture, Datatype, Info, Origin, Window};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Recorder;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        HEARD.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn windows_refusals_and_deaths_are_logged() {
    tracing::subscriber::set_global_default(Recorder).unwrap();
    let architectures = vec![Architecture::S390X, Architecture::I686];
    let options = Options { architectures, ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let long = rank.commit(&Datatype::long()).unwrap();
        let mut large = rank.buffer::<i64>(1).unwrap();
        large.set(0, 1 << 40).unwrap();
        let me = world.rank();
        let _ = window.fence(|epoch| match me {
            0 => epoch.put(Origin::typed(&large, 1, &long), 1, 0, 1, &long),
            _ => Ok(()),
        });
        if me == 1 {
            return; // without finalize: as if it had died
        }
        assert!(world.recv(&mut [0u8], 1, 0).is_err());
    })
    .unwrap();
    let heard = HEARD.lock().unwrap();
    let told =
        |words: &[&str]| heard.iter().any(|line| words.iter().all(|word| line.contains(word)));
    for words in [
        &["INFO", "initialized", "rank=1", "i686"][..],
        &["INFO", "window made", "rank=0", "window=1", "size: 80"],
        &["DEBUG", "target", "rank=0", "peer=1", "route=message"],
        &["WARN", "refused", "rank=1", "peer=0", "1099511627776"],
        &["WARN", "was refused", "rank=0", "peer=1", "1099511627776"],
        &["WARN", "lost a peer", "rank=0", "peer=1", "connection lost"],
    ] {
        assert!(told(words), "{words:?} in {heard:#?}");
    }
}
