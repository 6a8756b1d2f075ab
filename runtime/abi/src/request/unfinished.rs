//! Requests that a program starts twice, frees while they are active, or hasn't completed at
//! finalize: the reports of `--check`.

use std::any::Any;
use std::sync::{Arc, Weak};

use longshore::job::Topic;

use crate::edge::fault::Result;
use crate::edge::handle::{self, Handle, insert};
use crate::edge::{line, made, state};
use crate::request::{Operation, Plan, Request};

/// Gives a request a handle, and notes under `--check` where it was made.
pub fn inserted(request: Arc<Request>) -> Result<Handle> {
    if !made::is_checked() {
        return insert(request);
    }
    let memory: Weak<dyn Any + Send + Sync> = Arc::<Request>::downgrade(&request);
    if request.plan.is_none() {
        under_way(&Arc::downgrade(&request));
    }
    let handle = insert(request)?;
    if let Some(slot) = handle::number_of(handle) {
        made::note_memory(slot, Some(memory));
    }
    Ok(handle)
}

/// The plan of a persistent request, whose operations are under way once they have started.
pub fn watched(plan: Plan, request: Weak<Request>) -> Plan {
    if !made::is_checked() {
        return plan;
    }
    Box::new(move || {
        let operation = plan()?;
        under_way(&request);
        Ok(operation)
    })
}

/// The operations of the current call are under way until this request is complete.
fn under_way(request: &Weak<Request>) {
    let Some(state) = state::get() else { return };
    let (key, request) = (request.as_ptr().addr(), request.clone());
    let is_active = move || {
        let Some(request) = request.upgrade() else { return false };
        // A request that is being started or waited for isn't compared.
        request.operation.try_lock().is_ok_and(|operation| {
            !matches!(*operation, Operation::Inactive | Operation::Complete(_))
        })
    };
    state.rank().under_way(key, is_active);
}

impl Request {
    /// What is wrong with a request that exists at finalize, and what to do about it.
    pub fn unfinished(&self) -> (&'static str, &'static str) {
        let is_active = !self.is_inactive().unwrap_or(false);
        match (is_active, self.plan.is_some()) {
            (true, true) => (
                "a persistent request was started and never completed",
                "wait for it, or test it until it is complete, and free it by MPI_Request_free",
            ),
            (true, false) => (
                "a request was never completed",
                "wait for it, or test it until it is complete, before MPI_Finalize",
            ),
            (false, _) => (
                "a persistent request was never freed",
                "call MPI_Request_free before MPI_Finalize",
            ),
        }
    }

    /// Reports a start of a request that is active.
    #[cold]
    pub(super) fn report_start(&self) {
        let Some(state) = state::get().filter(|state| state.rank().is_checked()) else { return };
        let site = site(line::of_call(true));
        state.rank().report(Topic::Requests, &format!("start {site}"), || {
            let made = handle::line_of(self).flatten();
            Some(format!(
                "check: requests: rank {} starts a persistent request that is active\n\
                 check:   started again at {site}\ncheck:   made at {}\n\
                 check:   complete it before it is started again; the call returns an error\n",
                state.rank().world().rank(),
                self::site(made),
            ))
        });
    }
}

/// Notes that a request is freed whose operation is under way.
#[cold]
pub fn note_free(operation: &Operation) {
    let Some(state) = state::get().filter(|state| state.rank().is_checked()) else { return };
    let site = site(line::of_call(true));
    let what = match operation {
        Operation::Receive(..) => "a receive",
        _ => "an operation",
    };
    state.rank().report(Topic::Notes, &format!("free {site}"), || {
        Some(format!(
            "check: note: rank {} frees the request of {what} that is under way\n\
             check:   freed at {site}\n\
             check:   no call tells when its buffer may be used again\n",
            state.rank().world().rank(),
        ))
    });
}

/// A line as text.
pub fn site(line: Option<&'static longshore::SourceLine>) -> String {
    line.map_or_else(|| "an unknown place".to_owned(), ToString::to_string)
}
