//! The current activity of a rank. The rank notes it in the segment, and the launcher reports it
//! when the rank ends or gets stuck.

macro_rules! activities {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The activity of a rank. In shared memory, it is a code and an argument.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Activity {
            $($(#[$doc])* $name = $code,)*
        }

        impl Activity {
            /// The activity with this code, if there is one.
            pub fn from_code(code: u32) -> Option<Activity> {
                match code {
                    $($code => Some(Activity::$name),)*
                    _ => None,
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(Activity::$name => $text,)*
                }
            }
        }
    };
}

// A code never changes its meaning, because ranks and launcher may be different builds.
activities! {
    /// Outside of calls: the program's own work.
    Computing = 0, "its own work";
    /// In `init`, waiting for the others.
    Init = 1, "init";
    /// In `finalize`, waiting for the others.
    Finalize = 2, "finalize";
    /// In a barrier of all ranks.
    Barrier = 3, "a barrier";
    /// In an allgather.
    Allgather = 4, "an allgather";
    /// Sending to rank *argument*.
    Send = 5, "a send to rank {}";
    /// Receiving from rank *argument*.
    Receive = 6, "a receive from rank {}";
    /// Creating a window.
    CreateWindow = 7, "the making of a window";
    /// Freeing window *argument*.
    FreeWindow = 8, "the freeing of window {}";
    /// In a fence of window *argument*.
    Fence = 9, "a fence of window {}";
    /// A put to rank *argument*.
    Put = 10, "a put to rank {}";
    /// A get from rank *argument*.
    Get = 11, "a get from rank {}";
    /// Creating a communicator.
    MakeCommunicator = 12, "the making of a communicator";
    /// Freeing a communicator.
    FreeCommunicator = 13, "the freeing of a communicator";
    /// Waiting for the window lock of rank *argument*.
    Lock = 14, "a lock of rank {}";
    /// Waiting for the completion of operations on rank *argument*.
    Flush = 15, "a flush to rank {}";
    /// In a start on window *argument*, waiting for the matching posts.
    Start = 16, "a start on window {}";
    /// In a wait on window *argument*, for the end of its exposure epoch.
    Wait = 17, "a wait on window {}";
    /// In a broadcast.
    Broadcast = 18, "a broadcast";
    /// In a gather.
    Gather = 19, "a gather";
    /// In a scatter.
    Scatter = 20, "a scatter";
    /// In an alltoall.
    Alltoall = 21, "an alltoall";
    /// In a reduce or an allreduce.
    Reduce = 22, "a reduction";
    /// In a scan or an exscan.
    Scan = 23, "a scan";
    /// In a probe for a message of rank *argument*.
    Probe = 24, "a probe for rank {}";
    /// An accumulate, get_accumulate, fetch_and_op or compare_and_swap on rank *argument*.
    Accumulate = 32, "an accumulate to rank {}";
    /// Waiting for the request of one operation on rank *argument*.
    Request = 33, "a wait for an operation on rank {}";
    /// In a detach from window *argument*, waiting for operations on the memory.
    Detach = 34, "a detach from window {}";
    /// Setting the info of window *argument*.
    SetInfo = 35, "the setting of infos of window {}";
    /// In a post, waiting for an unlock by rank *argument*.
    Post = 36, "a post, for an unlock by rank {}";
    /// Waiting for one or all of several requests.
    Requests = 37, "a wait for requests";
    /// Waiting for a notification in window *argument*.
    WaitNotify = 38, "a wait for a notification in window {}";
    /// Waiting for another rank to connect to a port.
    Accept = 39, "an accept";
    /// Connecting to a port.
    Connect = 40, "a connect";
    /// Starting processes, and waiting for their init.
    Spawn = 41, "a spawn";
    /// Disconnecting a communicator.
    Disconnect = 42, "a disconnect";
    /// In an agreement of a communicator's ranks.
    Agree = 48, "an agreement";
}

impl Activity {
    /// The code in shared memory.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Whether the argument is a window.
    #[doc(hidden)]
    pub fn is_on_window(self) -> bool {
        self.text().ends_with(" window {}")
    }

    /// The name of the call, such as `fence`.
    #[doc(hidden)]
    pub fn name(self) -> &'static str {
        let text = self.text();
        let text =
            text.split_once(' ').filter(|(article, _)| matches!(*article, "a" | "an" | "the"));
        let text = text.map_or(self.text(), |(_, text)| text);
        let mut ends =
            [" of window", " on window", " from window", " in window", ", for an unlock"]
                .into_iter()
                .chain([
                    " to rank",
                    " from rank",
                    " of rank",
                    " for rank",
                    " on rank",
                    " of infos",
                ]);
        ends.find_map(|end| Some(text.split_once(end)?.0)).unwrap_or(text)
    }

    /// A description with the argument. A negative rank, such as ANY_SOURCE, is any rank.
    pub fn describe(self, argument: u32) -> String {
        match argument as i32 {
            0.. => self.text().replace("{}", &argument.to_string()),
            _ => self.text().replace("rank {}", "any rank"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_arguments_show() {
        for code in (0..25).chain(32..43).chain([48]) {
            assert_eq!(Activity::from_code(code).map(Activity::code), Some(code));
        }
        assert_eq!(Activity::from_code(u32::MAX), None);
        assert!(Activity::Fence.is_on_window() && Activity::SetInfo.is_on_window());
        assert!(!Activity::Flush.is_on_window() && !Activity::CreateWindow.is_on_window());
        assert_eq!(Activity::Send.describe(3), "a send to rank 3");
        assert_eq!(Activity::Receive.describe(-2i32 as u32), "a receive from any rank");
        assert_eq!(Activity::Barrier.describe(3), "a barrier");
        let names = [Activity::Fence, Activity::Computing, Activity::Post, Activity::Allgather];
        let names = names.map(Activity::name);
        assert_eq!(names, ["fence", "its own work", "post", "allgather"]);
    }
}
