//! The engine's reactions to frames, those of a broken peer included.

use std::sync::Arc;

use longshore_transport::fault::{Faults, Faulty};
use longshore_transport::segment::mailbox::Outcome;
use longshore_transport::sim::{Cluster, SimLink};
use longshore_transport::{Cause, Link, PeerMemory, RankState, Segment};
use shipable::oracle::{Random, cases};
use shipable::reduce::Op;
use shipable::{Architecture, Class, Datatype, Form, Signature};

use super::{
    Engine, Exposure, Fetch, Landing, Ledger, Me, Message, OPERANDS, Opened, Operation, Outgoing,
    Pattern, Policy, Purpose, Sender, Source, Ticket, Venue,
};
use crate::control::Control;
use crate::group::Group;
use crate::job::ROOM;
use crate::memory::{Exposed, Keeper, Lease, Side, Span};
use crate::object::Names;
use crate::wire::{
    Brief, CONTROL_LIMIT, Frame, Header, Hello, Introduction, Kind, PROTOCOL, Refusal,
};

/// Rank 0 with a window of 80 bytes, and the link by which the test plays rank 1.
struct Pair {
    engine: Engine,
    peer: SimLink,
    cluster: Cluster,
}

const SECRET: &[u8] = b"of the job";

impl Pair {
    fn new() -> Pair {
        let mut pair = Pair::strangers();
        pair.send(&hello(Hello { ..greeting() }));
        assert!(pair.engine.state().representation(1).is_some());
        pair
    }

    fn strangers() -> Pair {
        Pair::strangers_by(|link| Box::new(link))
    }

    fn strangers_by(link: impl FnOnce(SimLink) -> Box<dyn Link>) -> Pair {
        let cluster = Cluster::new(2, 0).unwrap();
        let architecture = Architecture::X86_64;
        let survives = false;
        let (emulated, by_length, room) = (false, false, ROOM);
        let (size, first, count) = (2, 0, 2);
        let me =
            Me { rank: 0, size, first, count, architecture, emulated, by_length, room, survives };
        let link = link(cluster.link(0).unwrap());
        let mut engine =
            Engine::new(me, link, SECRET.to_vec().into(), Arc::new(Names::default()), None);
        let exposed = Arc::new(Exposed::created(vec![0u8; 80]).unwrap());
        let group = Group::of_world(0..2, 0);
        let control = control(&cluster.segment(0).unwrap(), &group);
        let exposure = Exposure {
            _registered: None,
            window: 1,
            opened: Opened::Whole(exposed),
            unit: 8,
            policy: Policy::Strict,
            same_op: false,
            is_shared: false,
            group,
            control,
        };
        engine.state().open_window(Arc::new(exposure), Arc::new(Ledger::new(2)));
        engine.state().start_hello().unwrap();
        Pair { engine, peer: cluster.link(1).unwrap(), cluster }
    }

    /// Sends a frame as rank 1, and lets rank 0 handle it.
    fn send(&mut self, bytes: &[u8]) {
        let mut frame = self.peer.reserve(0, bytes.len()).unwrap();
        frame.copy_from_slice(bytes);
        frame.commit();
        while self.engine.progress() {}
    }

    /// The frames that rank 0 has sent to rank 1 since the last call.
    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.peer.receive().unwrap() {
            frames.push(frame.to_vec());
        }
        frames
    }

    /// Sends a frame as rank 1, which ends before rank 0 handles it.
    fn send_last(&mut self, bytes: &[u8], end: RankState) {
        let mut frame = self.peer.reserve(0, bytes.len()).unwrap();
        frame.copy_from_slice(bytes);
        frame.commit();
        self.engine.handle_rank_states(&[RankState::Alive, end]);
    }

    fn define(&mut self, id: u64, tag: u8, builder: u32, form: &[u8]) {
        let header = Header {
            tag,
            context: builder,
            form: id,
            length: form.len() as u64,
            ..Header::new(Kind::Define)
        };
        self.send(&[&header.encode()[..], form].concat());
    }

    /// Puts one double by form 7. Returns the class and text of the refusal, if rank 0 refuses it.
    fn put(&mut self, change: impl FnOnce(&mut Header)) -> Option<(Class, String)> {
        let signature = Signature::of(&Datatype::double()).hash;
        let mut header = Header {
            context: 1,
            operation: 1,
            count: 1,
            form: 7,
            length: 8,
            signature,
            ..Header::new(Kind::Put)
        };
        change(&mut header);
        self.received();
        let mut bytes = vec![0; if header.small { header.whole_size() } else { Header::SIZE }];
        header.encode_whole(&mut bytes);
        self.send(&[&bytes[..], &1.5f64.to_le_bytes()].concat());
        let frames = self.received();
        let answer = frames.first().and_then(|frame| Frame::decode(frame));
        match answer {
            Some(Frame::Short(Brief { kind: Kind::Ack, context: 1, value: 1, .. }, _)) => None,
            Some(Frame::Long(Header { kind: Kind::Refuse, operation: 1, .. }, data)) => {
                let refusal: Refusal = shipable::codec::decode(data, CONTROL_LIMIT).unwrap();
                Some((Class::from_wire(refusal.class).unwrap(), refusal.text))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn control(segment: &Segment, group: &Group) -> Arc<Control> {
    let place = segment.allocate(Control::bytes(2, 2)).unwrap();
    Arc::new(Control::new(segment, place, group, 0, 2).unwrap().unwrap())
}

fn greeting() -> Hello {
    let introduction = Introduction {
        architecture: Architecture::X86_64.descriptor(),
        emulated: false,
        by_length: false,
        room: 1000,
        form_limit: 1000,
    };
    Hello {
        protocol: PROTOCOL,
        secret: SECRET.to_vec().into(),
        founding: None,
        ranks: vec![(1, introduction)],
    }
}

fn hello(hello: Hello) -> Vec<u8> {
    let bytes = shipable::codec::encode(&hello, CONTROL_LIMIT).unwrap();
    let header = Header { length: bytes.len() as u64, ..Header::new(Kind::Hello) };
    [&header.encode()[..], &bytes].concat()
}

fn double() -> Vec<u8> {
    Form::compile(&Datatype::double(), &Architecture::X86_64).unwrap().encode()
}

#[track_caller]
fn refused(outcome: Option<(Class, String)>, class: Class, word: &str) {
    let (found, text) = outcome.unwrap();
    assert!(found == class && text.contains(word), "{found:?}: {text}");
}

/// Posts an operation of rank 1 in rank 0's mailbox, and returns its answer if it is done.
fn ask(pair: &mut Pair, header: &Header, data: [u64; OPERANDS]) -> Option<u64> {
    let segment = pair.cluster.segment(1).unwrap();
    let mailbox = segment.mailbox(0).unwrap();
    assert!(mailbox.claim());
    let ([a, b, c, d, e], [first, second]) = (header.small_words(), data);
    let len = Header::SMALL_SIZE + header.length as usize;
    let number = mailbox.post(1, len, &[a, b, c, d, e, first, second]);
    pair.engine.progress();
    let answer = (mailbox.outcome(number)? == Outcome::Done).then(|| mailbox.read_answer(8)[0]);
    mailbox.release();
    answer
}

#[test]
fn a_mailbox_takes_what_is_like_one_of_the_last_operations() {
    let mut pair = Pair::new();
    pair.engine.open_mailbox(&pair.cluster.segment(0).unwrap());
    pair.define(7, 1, 1, &double());
    let signature = Signature::of(&Datatype::double()).hash;
    let operation = |kind: Kind, operands: u64| Header {
        context: 1,
        displacement: 3,
        count: 1,
        form: 7,
        length: 8 * operands,
        signature,
        ..Header::new(kind)
    };
    let (put, get) = (operation(Kind::Put, 1), operation(Kind::Get, 0));
    let bits = |value: f64| value.to_bits();
    // No operation of the type has come by a frame.
    assert_eq!(ask(&mut pair, &put, [bits(2.5), 0]), None);
    assert_eq!(pair.put(|put| put.small = true), None);
    assert!(ask(&mut pair, &put, [bits(2.5), 0]).is_some());
    assert_eq!(ask(&mut pair, &get, [0; OPERANDS]), Some(bits(2.5)));
    let sum = Header { tag: Op::Sum.wire(), ..operation(Kind::Fetch, 1) };
    assert_eq!(ask(&mut pair, &sum, [bits(0.25), 0]), Some(bits(2.5)));
    assert_eq!(ask(&mut pair, &get, [0; OPERANDS]), Some(bits(2.75)));
    // No frame is an answer, and what violates a rule is declined.
    assert_eq!(pair.received(), Vec::<Vec<u8>>::new());
    for refused in [
        Header { context: 2, ..put },
        Header { displacement: -1, ..put },
        Header { displacement: 10, ..put },
        Header { count: 2, ..put },
        Header { signature: signature ^ 1, ..put },
        Header { length: 0, ..put },
        Header { length: 16, ..put },
        Header { notify: Some(0), ..put },
        Header { count: 10, length: 0, ..get },
    ] {
        assert_eq!(ask(&mut pair, &refused, [bits(9.0), 0]), None, "{refused:?}");
    }
    assert_eq!(ask(&mut pair, &get, [0; OPERANDS]), Some(bits(2.75)));
    assert_eq!(pair.received(), Vec::<Vec<u8>>::new());
}

#[test]
fn the_target_refuses_operations_that_violate_rules() {
    let mut pair = Pair::new();
    refused(pair.put(|_| {}), Class::Type, "never defined");
    pair.define(7, 1, 1, &double());
    assert_eq!(pair.put(|_| {}), None);
    refused(pair.put(|put| put.context = 2), Class::Win, "freed");
    refused(pair.put(|put| put.displacement = -1), Class::Disp, "negative");
    refused(pair.put(|put| put.displacement = 10), Class::RmaRange, "80 to 88");
    refused(pair.put(|put| put.displacement = i64::MAX), Class::RmaRange, "pointers");
    refused(pair.put(|put| put.count = u64::MAX), Class::RmaRange, "outside");
    refused(pair.put(|put| put.count = 2), Class::Type, "signatures differ");
    refused(pair.put(|put| put.signature ^= 1), Class::Type, "signatures differ");
    assert_eq!(pair.put(|put| put.small = true), None);
    let other = |put: &mut Header| (put.small, put.signature) = (true, put.signature ^ 1);
    refused(pair.put(other), Class::Type, "signatures differ");
    refused(pair.put(|put| (put.small, put.count) = (true, 2)), Class::Type, "signatures differ");
    // Only the admitted puts have changed the window.
    let exposure = pair.engine.state().target.exposures().get(1).unwrap();
    let Opened::Whole(window) = &exposure.opened else { panic!() };
    let window = window.span();
    let mut bytes = [0; 80];
    assert!(window.read(0, &mut bytes));
    assert_eq!(bytes[..8], 1.5f64.to_le_bytes());
    assert_eq!(bytes[8..], [0; 72]);
    let retire = Brief { kind: Kind::Retire, context: 0, operation: 7, value: 0 };
    pair.send(&retire.encode());
    refused(pair.put(|_| {}), Class::Type, "never defined");
}

/// Rule 31, at a target that has two counters. The third put of a kind goes by the memo.
#[test]
fn only_operations_that_are_carried_out_raise_counters() {
    let mut pair = Pair::new();
    pair.define(7, 1, 1, &double());
    let counts = |pair: &mut Pair| {
        let exposure = pair.engine.state().target.exposures().get(1).unwrap().clone();
        [0, 1].map(|counter| exposure.control.notification(0, counter).read(0))
    };
    for (small, rounds) in [(false, 1), (true, 2), (true, 3)] {
        let notifying = |counter: u16| {
            move |header: &mut Header| {
                header.notify = Some(counter);
                header.small = small;
            }
        };
        assert_eq!(pair.put(notifying(1)), None);
        assert_eq!(counts(&mut pair), [0, rounds]);
        refused(pair.put(notifying(2)), Class::Arg, "no notification counter 2");
        let beyond = |header: &mut Header| {
            notifying(1)(header);
            header.displacement = 10;
        };
        refused(pair.put(beyond), Class::RmaRange, "");
        assert_eq!(pair.put(|header| header.small = small), None);
        assert_eq!(counts(&mut pair), [0, rounds]);
    }
}

#[test]
fn rule_t6_the_target_admits_a_form_by_its_tag() {
    let mut pair = Pair::new();
    pair.define(7, 3, 1, &double());
    refused(pair.put(|_| {}), Class::Type, "unknown tag 3");
    pair.define(7, 2, 0, &double());
    refused(pair.put(|_| {}), Class::Type, "tag says otherwise");
    let form = Form::compile(&Datatype::double(), &Architecture::X86_64).unwrap();
    let locale = form.to_locale(&Architecture::X86_64).unwrap().encode();
    pair.define(7, 2, 1, &locale);
    refused(pair.put(|_| {}), Class::Type, "built at process 1");
    pair.define(7, 2, 0, &locale);
    assert_eq!(pair.put(|_| {}), None);
    pair.define(7, 1, 0, b"no form");
    refused(pair.put(|_| {}), Class::Type, "can't be used");
}

#[test]
fn a_peer_without_a_valid_hello_is_lost() {
    let wrong: [fn(&mut Hello); 4] = [
        |hello| hello.protocol += 1,
        |hello| hello.secret[0] ^= 1,
        |hello| hello.ranks[0].0 = 2,
        |hello| hello.ranks[0].1.architecture = "e=x".to_owned(),
    ];
    for change in wrong {
        let mut pair = Pair::strangers();
        let mut greeting = greeting();
        change(&mut greeting);
        pair.send(&hello(greeting));
        assert!(pair.engine.state().representation(1).is_none());
        let error = pair.engine.state().take_hello().unwrap().unwrap_err();
        assert!(error.to_string().contains("rank 1 broke the protocol"), "{error}");
    }
    let mut early = Pair::strangers();
    early.send(&Header::new(Kind::Get).encode());
    assert!(early.engine.state().gone(1).unwrap().to_string().contains("before its hello"));
}

#[test]
fn frames_of_random_bytes_do_not_panic() {
    let mut random = Random::new(1, Default::default());
    for _ in 0..cases(300) {
        let mut pair = Pair::new();
        pair.define(7, 1, 1, &double());
        for _ in 0..20 {
            let length = 1 + random.index(120);
            let mut bytes = random.bytes(length);
            bytes[0] = random.below(27) as u8 | if random.chance(2) { 0 } else { 0x80 };
            if let Some(context) = bytes.get_mut(4) {
                *context = random.below(3) as u8;
            }
            crate::wire::describe(&bytes);
            pair.send(&bytes);
            pair.received();
        }
    }
}

/// A receive from rank 1, of whose message 8 of 16 bytes have arrived.
fn half_received() -> (Pair, u64) {
    let mut pair = Pair::new();
    let pattern = Pattern { context: 0, sender: Sender::One(1), tag: None };
    let number = pair.engine.state().start_receive(pattern, Landing::Bytes);
    let message = |kind| Header { operation: 5, length: 16, ..Header::new(kind) };
    pair.send(&message(Kind::Announce).encode());
    pair.send(&[&message(Kind::Bulk).encode()[..], &[0; 8]].concat());
    assert!(pair.engine.state().take_received(number).is_none());
    (pair, number)
}

fn killed() -> RankState {
    RankState::Dead(Cause::Signal(9))
}

fn class_of(received: Option<crate::Result<super::Delivery>>) -> Option<Class> {
    received.and_then(Result::err).map(|error| error.class())
}

#[test]
fn a_receive_fails_if_its_sender_dies() {
    let (mut pair, number) = half_received();
    pair.engine.state().handle_rank_state(1, killed());
    let received = pair.engine.state().take_received(number);
    assert_eq!(class_of(received), Some(Class::ProcAborted));
}

#[test]
fn a_receive_of_a_cut_message_reports_the_reason() {
    for (reason, class) in [(0, Class::Conversion), (1, Class::Other), (2, Class::ProcAborted)] {
        let (mut pair, number) = half_received();
        pair.send(&Brief { kind: Kind::Cut, context: reason, operation: 0, value: 8 }.encode());
        let received = pair.engine.state().take_received(number);
        assert_eq!(class_of(received), Some(class));
        assert_eq!(pair.engine.state().gone(1).is_some(), reason == 2);
    }
}

/// The data of a message of no bytes are whole even so. Those of another one are cut.
#[test]
fn an_abandoned_send_ends_when_it_is_cleared() {
    for length in [0, 900] {
        let mut pair = Pair::new();
        let bytes: Arc<[u8]> = vec![0; length].into();
        let message = |bytes: &Arc<[u8]>| Message {
            context: 0,
            tag: 0,
            length: bytes.len() as u64,
            signature: 0,
            source: Source::Bytes(bytes.clone()),
            synchronous: false,
        };
        let engine = &mut pair.engine;
        assert_eq!(engine.start_send(1, message(&vec![0; 900].into())).unwrap(), None);
        let operation = engine.start_send(1, message(&bytes)).unwrap().expect("no room for more");
        engine.state().abandon(operation);
        while pair.engine.progress() {}
        pair.received();
        pair.send(&Brief { kind: Kind::Clear, context: 0, operation, value: 0 }.encode());
        let kinds: Vec<_> = pair.received().iter().map(|frame| frame[0]).collect();
        let (bulk, cut) = (Kind::Bulk as u8, Kind::Cut as u8);
        assert_eq!(kinds, if length == 0 { vec![bulk] } else { vec![bulk, cut] });
        let state = pair.engine.state();
        assert!(!state.is_sent(operation), "no call takes its outcome");
        // A send that has ended leaves nothing either.
        state.forget_send(operation);
        state.abandon(operation);
        assert!(state.messages.remembers_no_send());
    }
}

/// The memory of the host's processes, as one of the ranks of a pair sees it.
fn memory(pair: &Pair, rank: u32) -> Arc<PeerMemory> {
    Arc::new(PeerMemory::new(&pair.cluster.segment(rank).unwrap()))
}

/// Under an emulator the system copies nothing, and all messages are sent.
#[test]
fn the_data_of_an_offer_are_copied_unless_it_was_taken_back() {
    let mut pair = Pair::new();
    let (memory, peer) = (memory(&pair, 0), memory(&pair, 1));
    pair.engine.state().set_peer_memory(memory.clone());
    let data: Vec<u8> = (0..9000).map(|at| at as u8).collect();
    let offer = peer.offer(data.as_ptr().addr() as u64);
    let copies = Span::with_bytes(&mut [0], |span| {
        Side { span, runs: &[(0, 1)] }.take(&memory, 1, &offer, 0)
    });
    for is_offered in [true, false] {
        let pattern = Pattern { context: 0, sender: Sender::One(1), tag: None };
        let number = pair.engine.state().start_receive(pattern, Landing::Bytes);
        let announce = Header {
            operation: 5,
            length: 9000,
            form: offer.address,
            count: offer.withdrawals.into(),
            ..Header::new(Kind::Announce)
        };
        pair.received();
        pair.send(&announce.encode());
        let is_copied = copies && is_offered;
        let value = is_copied.into();
        let clear = Brief { kind: Kind::Clear, context: 0, operation: 5, value };
        assert_eq!(pair.received(), [clear.encode()]);
        let received = pair.engine.state().take_received(number);
        assert_eq!(received.is_some(), is_copied);
        if let Some(received) = received {
            assert!(**received.unwrap().bytes.unwrap() == data[..]);
        } else {
            pair.engine.state().abandon(number);
        }
        peer.withdraw();
    }
}

#[test]
fn a_send_ends_without_data_if_the_receiver_has_copied_them() {
    let mut pair = Pair::new();
    let memory = memory(&pair, 0);
    pair.engine.state().set_peer_memory(memory);
    let bytes: Arc<[u8]> = vec![7; 9000].into();
    let announced = |pair: &mut Pair| {
        let (context, tag, signature, length) = (0, 0, 0, bytes.len() as u64);
        let source = Source::Bytes(bytes.clone());
        let message = Message { context, tag, length, signature, source, synchronous: false };
        let number = pair.engine.start_send(1, message).unwrap().expect("the message is long");
        while pair.engine.progress() {}
        let frames = pair.received();
        let Some(Frame::Long(header, _)) = Frame::decode(&frames[frames.len() - 1]) else {
            panic!("no announcement: {frames:?}")
        };
        assert_eq!((header.kind, header.form), (Kind::Announce, bytes.as_ptr().addr() as u64));
        (number, header.count)
    };
    let (number, withdrawals) = announced(&mut pair);
    pair.send(&Brief { kind: Kind::Clear, context: 0, operation: number, value: 1 }.encode());
    assert!(pair.received().is_empty());
    assert!(pair.engine.state().take_sent(number).unwrap().is_ok());
    // A send that is given up takes its offer back, and those of later sends say so.
    let (number, before) = announced(&mut pair);
    pair.engine.state().abandon(number);
    let (_, after) = announced(&mut pair);
    assert_eq!((before, after), (withdrawals, withdrawals + 1));
}

#[test]
fn a_receive_fails_if_its_sender_breaks_the_protocol() {
    for (value, data) in [(9, &[0; 7][..]), (8, &[0; 9])] {
        let (mut pair, number) = half_received();
        let more = Brief { kind: Kind::More, context: 0, operation: 0, value };
        pair.send(&[&more.encode()[..], data].concat());
        let received = pair.engine.state().take_received(number);
        assert_eq!(class_of(received), Some(Class::ProcAborted));
    }
}

#[test]
fn frames_sent_before_the_end_of_a_rank_are_taken_in() {
    for end in [RankState::Finalized, killed()] {
        let mut pair = Pair::new();
        let pattern = Pattern { context: 0, sender: Sender::One(1), tag: None };
        let number = pair.engine.state().start_receive(pattern, Landing::Bytes);
        let header = Header { length: 2, ..Header::new(Kind::Eager) };
        pair.send_last(&[&header.encode()[..], b"ab"].concat(), end);
        let received = pair.engine.state().take_received(number).unwrap().unwrap();
        assert_eq!(**received.bytes.unwrap(), *b"ab");
        assert!(pair.engine.state().gone(1).is_some());
    }
}

/// The end of a rank of another host may be known here before its last frame arrives. That frame
/// may be the one that lets others leave.
#[test]
fn late_frames_of_a_finalized_rank_are_taken_in() {
    let mut pair = Pair::new();
    let venue = Venue::Communicator(0);
    pair.engine.state().enter_meeting(venue, &Group::of_world(0..2, 0), 0);
    pair.engine.state().handle_rank_state(1, RankState::Finalized);
    assert_eq!(pair.engine.state().awaited_in_meeting(venue), Some(1));
    pair.send(&Brief { kind: Kind::Meet, context: 0, operation: 0, value: 1 }.encode());
    assert_eq!(pair.engine.state().awaited_in_meeting(venue), None);
    while pair.engine.progress() {}
    assert!(pair.engine.state().is_flushed());
}

/// A receive that waits for a late frame of a finalized rank goes on waiting.
#[test]
fn a_finalized_rank_is_gone_after_its_last_frame() {
    let faults = Faults { delay: 1000, ..Faults::default() };
    let mut pair = Pair::strangers_by(|link| Box::new(Faulty::new(link, faults)));
    let pattern = Pattern { context: 0, sender: Sender::One(1), tag: None };
    let number = pair.engine.state().start_receive(pattern, Landing::Bytes);
    let header = Header { length: 2, ..Header::new(Kind::Eager) };
    for frame in [hello(Hello { ..greeting() }), [&header.encode()[..], b"ab"].concat()] {
        pair.send(&frame);
    }
    pair.engine.handle_rank_states(&[RankState::Alive, RankState::Finalized]);
    assert!(pair.engine.state().gone(1).is_none());
    let received = loop {
        pair.engine.progress();
        if let Some(received) = pair.engine.state().take_received(number) {
            break received.unwrap();
        }
    };
    assert_eq!(**received.bytes.unwrap(), *b"ab");
    while pair.engine.state().gone(1).is_none() {
        pair.engine.progress();
    }
}

/// The announcement was sent before the death, but arrives after the death is known.
#[test]
fn a_receive_of_a_message_announced_by_a_dead_rank_fails() {
    let mut pair = Pair::new();
    pair.engine.state().handle_rank_state(1, killed());
    pair.send(&Header { operation: 5, length: 16, ..Header::new(Kind::Announce) }.encode());
    for sender in [Sender::One(1), Sender::Any(Group::of_world(0..2, 0))] {
        let pattern = Pattern { context: 0, sender, tag: None };
        let number = pair.engine.state().start_receive(pattern, Landing::Bytes);
        let received = pair.engine.state().take_received(number);
        assert_eq!(class_of(received), Some(Class::ProcAborted));
    }
}

/// A put without a request that is sent, and after it a put with a request that isn't.
#[test]
fn every_operation_on_a_dead_rank_fails() {
    let mut pair = Pair::new();
    let state = pair.engine.state();
    let ledger = state.operations.ledger(1);
    ledger.issue(1);
    let operation = Operation { target: 1, window: 1, number: ledger.issue(1) };
    let ticket = Arc::new(Ticket::default());
    state.ticket(operation, ticket.clone());
    let header = Header { context: 1, operation: operation.number, ..Header::new(Kind::Put) };
    let purpose = Purpose::Operation(Kind::Put, operation);
    state.push(1, Outgoing::new(header, Source::Empty, purpose));
    state.handle_rank_state(1, killed());
    assert!(ticket.is_done() && ledger.outstanding(1) == 0);
    for failure in [ticket.take_failure(), ledger.take_failure(Some(1))] {
        assert_eq!(failure.unwrap().class(), Class::ProcAborted);
    }
}

/// Begins to fetch one element, as a call that waits for it by itself does.
fn fetch(pair: &mut Pair, ticket: &Arc<Ticket>) -> u64 {
    let state = pair.engine.state();
    let operation = Operation { target: 1, window: 1, number: state.operations.ledger(1).issue(1) };
    let lease = Lease::new(ticket.room().span::<i64>().unwrap(), Keeper::owner(ticket));
    let waiter = Some(ticket.clone());
    let run = Some((0, 8));
    state.expect(operation, Fetch { origin: None, count: 1, run, lease, waiter, bytes: (0, 8) });
    operation.number
}

/// The answer to an operation that fetches, in one frame.
fn answer(operation: u64, bytes: &[u8]) -> Vec<u8> {
    let reply = Header { context: 1, operation, ..Header::new(Kind::Reply) };
    let mut frame = vec![0; Header::SMALL_SIZE];
    reply.encode_whole(&mut frame);
    frame.extend_from_slice(bytes);
    frame
}

#[test]
fn a_reply_settles_a_ticket_which_can_be_renewed() {
    let mut pair = Pair::new();
    let ticket = Arc::new(Ticket::default());
    for number in [3i64, 4] {
        let operation = fetch(&mut pair, &ticket);
        assert!(!ticket.is_done() && !Ticket::renew(&ticket), "the engine holds the ticket");
        pair.send(&answer(operation, &number.to_ne_bytes()));
        assert!(ticket.is_done() && ticket.take_failure().is_none());
        assert_eq!(ticket.room().span::<i64>().unwrap().peek(0), Some(number));
        assert!(Ticket::renew(&ticket) && !ticket.is_done());
    }
    // Several operations at a time, answered in another order.
    let others = [1, 2, 3].map(|_| Arc::new(Ticket::default()));
    let operations = others.each_ref().map(|ticket| fetch(&mut pair, ticket));
    for at in [1, 2, 0] {
        pair.send(&answer(operations[at], &(at as i64).to_ne_bytes()));
        assert!(others[at].is_done() && Arc::strong_count(&others[at]) == 1);
        assert_eq!(others[at].room().span::<i64>().unwrap().peek(0), Some(at as i64));
    }
    assert_eq!(pair.engine.state().operations.ledger(1).outstanding(1), 0);
}

#[test]
fn a_failure_goes_to_the_ticket_or_if_forsaken_to_the_ledger() {
    let refusal = Refusal { class: Class::RmaRange.wire(), text: "no".to_owned(), bytes: None };
    let refusal = shipable::codec::encode(&refusal, CONTROL_LIMIT).unwrap();
    type End<'a> = &'a dyn Fn(&mut Pair, u64);
    let refuse = |pair: &mut Pair, operation: u64| {
        let length = refusal.len() as u64;
        let (context, tag) = (1, Kind::Fetch as u8);
        let header = Header { context, operation, tag, length, ..Header::new(Kind::Refuse) };
        pair.send(&[&header.encode()[..], &refusal].concat());
    };
    let misfit = |pair: &mut Pair, operation: u64| pair.send(&answer(operation, &[0; 4]));
    let in_parts = |pair: &mut Pair, operation: u64| {
        let header = Header { context: 1, operation, length: 8, ..Header::new(Kind::Reply) };
        pair.send(&[&header.encode()[..], &[0; 4]].concat());
        let more = Brief { kind: Kind::More, context: 0, operation: 0, value: 4 };
        pair.send(&[&more.encode()[..], &[0; 4]].concat());
    };
    let die = |pair: &mut Pair, _: u64| pair.engine.state().handle_rank_state(1, killed());
    let ends: [(End<'_>, Class); 4] = [
        (&refuse, Class::RmaRange),
        (&misfit, Class::Intern),
        (&in_parts, Class::Intern),
        (&die, Class::ProcAborted),
    ];
    for (end, class) in ends {
        let (mut pair, ticket) = (Pair::new(), Arc::new(Ticket::default()));
        let ledger = pair.engine.state().operations.ledger(1);
        let operation = fetch(&mut pair, &ticket);
        end(&mut pair, operation);
        assert!(ticket.is_done() && ledger.outstanding(1) == 0);
        let failure = ticket.take_failure().unwrap();
        assert_eq!(failure.class(), class, "{failure}");
        assert!(Ticket::renew(&ticket) && ticket.take_failure().is_none());

        // A call forsakes the ticket before the failure arrives, and after.
        let (mut pair, ticket) = (Pair::new(), Arc::new(Ticket::default()));
        let ledger = pair.engine.state().operations.ledger(1);
        let operation = fetch(&mut pair, &ticket);
        assert!(ticket.forsake().is_none());
        end(&mut pair, operation);
        assert_eq!(ledger.take_failure(Some(1)).unwrap().class(), class);
        let (mut pair, ticket) = (Pair::new(), Arc::new(Ticket::default()));
        let operation = fetch(&mut pair, &ticket);
        end(&mut pair, operation);
        assert_eq!(ticket.forsake().unwrap().class(), class);
    }
}

#[test]
fn acknowledging_more_than_was_issued_breaks_the_protocol() {
    let answers = [
        Brief { kind: Kind::Ack, context: 1, operation: 0, value: 2 },
        Brief { kind: Kind::Done, context: 1, operation: 1, value: 0 },
    ];
    for (answer, asked) in answers.into_iter().zip([1, 0]) {
        let mut pair = Pair::new();
        let ledger = pair.engine.state().operations.ledger(1);
        (0..asked).for_each(|_| _ = ledger.issue(1));
        pair.send(&answer.encode());
        let gone = pair.engine.state().gone(1).unwrap().to_string();
        assert!(gone.contains("broke the protocol"), "{gone}");
    }
}

/// A lost peer must not lock a window for ever.
#[test]
fn frames_after_a_broken_protocol_are_ignored() {
    let mut pair = Pair::new();
    let greeting = hello(greeting());
    pair.send(&greeting);
    assert!(pair.engine.state().gone(1).unwrap().to_string().contains("hello twice"));
    let lock = Brief { kind: Kind::Lock, context: 1, operation: 1, value: 2 };
    pair.send(&lock.encode());
    assert_eq!(pair.engine.state().target.exposures().get(1).unwrap().control.locker(0), None);
}

/// Most peers of a large job end before this rank has sent them anything.
#[test]
fn a_peer_that_is_gone_before_it_has_a_queue_gets_nothing() {
    let mut pair = Pair::new();
    let state = pair.engine.state();
    state.handle_rank_state(1, RankState::Finalized);
    assert!(!state.outbox.is_idle(1));
    state.outbox.push_done(1, 1, 1);
    state.outbox.acknowledge(1, 1);
    assert!(state.is_flushed());
    assert!(state.gone(1).is_some_and(|gone| gone.to_string().contains("finalized")));
}
