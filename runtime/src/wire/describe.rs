//! Descriptions of frames in words, for the demo, traces and bug reports.

use std::fmt;
use std::ops::Range;

use shipable::Form;
use shipable::form::Limits;
use shipable::reduce::Op;

use super::{Brief, CONTROL_LIMIT, Frame, Header, Hello, Kind, Refusal, split_names};

/// A frame, described for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The frame's kind.
    pub kind: Kind,
    /// The window, if the frame belongs to one.
    pub window: Option<u32>,
    /// The number of the operation or message.
    pub operation: Option<u64>,
    /// The id of the form that the frame defines, retires or names.
    pub form: Option<u64>,
    /// The bytes of the frame that name the form of an operation: its id, little-endian.
    pub form_at: Option<Range<usize>>,
    /// The tag of the form that the frame defines: `portable` or `locale-specific`.
    pub tag: Option<&'static str>,
    /// The text of the form or control message that the frame carries.
    pub text: Option<String>,
    /// The displacement, and the count of the target type.
    pub target: Option<(i64, u64)>,
    /// Bytes of the header.
    pub header: usize,
    /// Bytes after the header.
    pub payload: usize,
    /// Bytes of the stream that the frame opens.
    pub stream: Option<u64>,
}

/// Describes a frame; `None` for bytes that are no frame. Never panics.
///
/// ```
/// let mut frame = vec![0; 64];
/// frame[0] = 4;
/// let put = longshore::wire::describe(&frame).unwrap();
/// assert_eq!(put.kind, longshore::wire::Kind::Put);
/// assert_eq!(longshore::wire::describe(b"no frame"), None);
/// ```
pub fn describe(bytes: &[u8]) -> Option<Description> {
    let frame = Frame::decode(bytes)?;
    let (Frame::Long(Header { kind, .. }, _) | Frame::Short(Brief { kind, .. }, _)) = frame;
    let mut description = Description {
        kind,
        window: None,
        operation: None,
        form: None,
        form_at: None,
        tag: None,
        text: None,
        target: None,
        header: 0,
        payload: 0,
        stream: None,
    };
    match frame {
        Frame::Long(header, data) => {
            description.header = bytes.len() - data.len();
            description.payload = data.len();
            description.long(&header, data);
        }
        Frame::Short(brief, data) => {
            description.header = bytes.len() - data.len();
            description.payload = data.len();
            match brief.kind {
                Kind::Ack => {
                    description.window = Some(brief.context);
                    description.text = Some(format!("{} done", brief.value));
                }
                Kind::Lock | Kind::Unlock | Kind::Post | Kind::Complete | Kind::Poison => {
                    description.window = Some(brief.context);
                }
                Kind::Meet => description.text = Some(format!("meeting {}", brief.value)),
                Kind::Revoke => {
                    description.text = Some(format!("communicator {}", brief.context));
                }
                Kind::Retire => description.form = Some(brief.operation),
                Kind::Clear => description.operation = Some(brief.operation),
                Kind::Done => {
                    description.window = Some(brief.context);
                    description.operation = Some(brief.operation);
                }
                Kind::More => description.text = Some(format!("from byte {}", brief.value)),
                Kind::Credit => description.text = Some(format!("{} bytes", brief.value)),
                _ => {}
            }
        }
    }
    Some(description)
}

impl Description {
    fn long(&mut self, header: &Header, data: &[u8]) {
        self.stream = Some(header.length);
        let notified = header.notify.map(|counter| format!("notifies counter {counter}"));
        match header.kind {
            Kind::Hello => {
                let hello = shipable::codec::decode::<Hello>(data, data.len());
                self.text = hello.ok().map(|hello| {
                    let ranks = hello.ranks.iter();
                    let ranks = ranks.map(|(run, rank)| format!("{run} of {}", rank.architecture));
                    format!("protocol {}, {}", hello.protocol, ranks.collect::<Vec<_>>().join(", "))
                });
            }
            Kind::Define => {
                self.form = Some(header.form);
                self.tag = match header.tag {
                    1 => Some("portable"),
                    2 => Some("locale-specific"),
                    _ => None,
                };
                let form = split_names(data, header.count)
                    .and_then(|(form, _)| Form::decode(form, &Limits::default()).ok());
                self.text = form.map(|form| form.to_string());
            }
            Kind::Accumulate | Kind::Fetch | Kind::Swap => {
                self.window = Some(header.context);
                self.operation = Some(header.operation);
                self.form = Some(header.form);
                self.form_at = Some(header.form_at());
                self.target = Some((header.displacement, header.count));
                let op = Op::from_wire(header.tag & 0x7f).map(|op| op.to_string());
                let texts: Vec<String> = op.into_iter().chain(notified).collect();
                self.text = (!texts.is_empty()).then(|| texts.join(", "));
            }
            Kind::Put | Kind::Get => {
                self.window = Some(header.context);
                self.operation = Some(header.operation);
                self.form = Some(header.form);
                self.form_at = Some(header.form_at());
                self.target = Some((header.displacement, header.count));
                self.text = notified;
            }
            Kind::Agree => {
                let (step, communicator) = (header.tag, header.context);
                self.operation = Some(header.operation);
                self.text = Some(format!("step {step} on communicator {communicator}"));
            }
            Kind::Reply => {
                self.window = Some(header.context);
                self.operation = Some(header.operation);
            }
            Kind::Refuse => {
                self.window = Some(header.context);
                self.operation = Some(header.operation);
                let refusal = shipable::codec::decode::<Refusal>(data, CONTROL_LIMIT);
                self.text = refusal.ok().map(|refusal| refusal.text);
            }
            _ => self.operation = Some(header.operation),
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        if let Some(window) = self.window {
            write!(f, " window {window}")?;
        }
        if let Some(operation) = self.operation {
            write!(f, " operation {operation}")?;
        }
        if let Some((displacement, count)) = self.target {
            write!(f, " displacement {displacement} count {count}")?;
        }
        if let Some(form) = self.form {
            write!(f, " form {form}")?;
        }
        if let Some(tag) = self.tag {
            write!(f, " {tag}")?;
        }
        if let Some(text) = &self.text {
            write!(f, ": {text}")?;
        }
        write!(f, " ({} + {} bytes)", self.header, self.payload)
    }
}
