//! The interface of libfabric in C, as far as this crate uses it: constants, structures, and the
//! calls that its headers define as inline functions.
//!
//! libfabric exports a handful of functions ([`Exports`]). All other calls go through tables of
//! pointers that its objects have.
//!
//! The declarations are those of versions 1.20 to 2.x, which keep the layout for programs that ask
//! for an older version of the interface. A structure that only libfabric allocates ends here with
//! the last member in use, and so does a table: newer versions append members. A test compares
//! sizes, offsets and values with the headers.
//!
//! # Safety
//! Each call requires what the manual page of the same name requires: open objects, and arguments
//! that outlive the call. None requires more.
#![allow(unsafe_code)]
#![allow(non_camel_case_types, reason = "the names of the headers")]
#![allow(clippy::missing_safety_doc, reason = "the module's documentation has it")]

#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// A function that this crate doesn't call, as a member of a table.
type Unused = Option<unsafe extern "C" fn()>;

pub(super) const FI_MSG: u64 = 1 << 1;
pub(super) const FI_RMA: u64 = 1 << 2;
pub(super) const FI_RECV: u64 = 1 << 10;
pub(super) const FI_SEND: u64 = 1 << 11;
pub(super) const FI_TRANSMIT: u64 = FI_SEND;
pub(super) const FI_REMOTE_READ: u64 = 1 << 12;
pub(super) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(super) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub(super) const FI_NUMERICHOST: u64 = 1 << 55;
pub(super) const FI_SOURCE: u64 = 1 << 57;

pub(super) const FI_ADDR_UNSPEC: fi_addr_t = u64::MAX;

/// Commands of `fi_control`.
pub(super) const FI_GETWAIT: c_int = 5;
pub(super) const FI_ENABLE: c_int = 6;

/// Error numbers that the system doesn't have.
pub(super) const FI_EAVAIL: c_int = 259;
pub(super) const FI_ENOKEY: c_int = 266;

/// Events of connections.
pub(super) const FI_CONNREQ: u32 = 1;
pub(super) const FI_CONNECTED: u32 = 2;
pub(super) const FI_SHUTDOWN: u32 = 3;

/// `enum fi_ep_type`.
pub(super) const FI_EP_MSG: c_int = 1;
pub(super) const FI_EP_RDM: c_int = 3;
/// `enum fi_threading`.
pub(super) const FI_THREAD_SAFE: c_int = 1;
/// `enum fi_wait_obj`.
pub(super) const FI_WAIT_FD: c_int = 3;
/// `enum fi_cq_format`.
pub(super) const FI_CQ_FORMAT_MSG: c_int = 2;

pub(super) type fi_addr_t = u64;

/// The functions that libfabric exports.
#[derive(Clone, Copy)]
pub(super) struct Exports {
    pub fi_getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const fi_info,
        *mut *mut fi_info,
    ) -> c_int,
    pub fi_freeinfo: unsafe extern "C" fn(*mut fi_info),
    pub fi_dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    pub fi_fabric:
        unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int,
    pub fi_strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    pub fi_version: unsafe extern "C" fn() -> u32,
}

/// Declares structures of C with public members.
macro_rules! structures {
    ($($(#[$attribute:meta])* struct $name:ident { $($member:ident: $kind:ty,)* })*) => {$(
        $(#[$attribute])*
        #[repr(C)]
        pub(super) struct $name { $(pub $member: $kind,)* }
    )*};
}

// What libfabric allocates, up to the last member in use.
structures! {
    struct fi_info {
        next: *mut fi_info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut fid,
        tx_attr: *mut fi_tx_attr,
        rx_attr: *mut c_void,
        ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr,
        fabric_attr: *mut fi_fabric_attr,
    }

    struct fi_tx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
    }

    struct fi_ep_attr {
        type_: c_int,
    }

    struct fi_domain_attr {
        domain: *mut fid_domain,
        name: *mut c_char,
        threading: c_int,
    }

    struct fi_fabric_attr {
        fabric: *mut fid_fabric,
        name: *mut c_char,
        prov_name: *mut c_char,
    }

    struct fid {
        fclass: usize,
        context: *mut c_void,
        ops: *const fi_ops,
    }

    struct fi_ops {
        size: usize,
        close: unsafe extern "C" fn(*mut fid) -> c_int,
        bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
    }

    struct fid_fabric {
        fid: fid,
        ops: *const fi_ops_fabric,
    }

    struct fi_ops_fabric {
        size: usize,
        domain: unsafe extern "C" fn(
            *mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void,
        ) -> c_int,
        passive_ep: unsafe extern "C" fn(
            *mut fid_fabric, *mut fi_info, *mut *mut fid_pep, *mut c_void,
        ) -> c_int,
        eq_open: unsafe extern "C" fn(
            *mut fid_fabric, *mut fi_eq_attr, *mut *mut fid_eq, *mut c_void,
        ) -> c_int,
        wait_open: Unused,
        trywait: unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int,
    }

    struct fid_domain {
        fid: fid,
        ops: *const fi_ops_domain,
        mr: *const fi_ops_mr,
    }

    struct fi_ops_domain {
        size: usize,
        av_open: unsafe extern "C" fn(
            *mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void,
        ) -> c_int,
        cq_open: unsafe extern "C" fn(
            *mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void,
        ) -> c_int,
        endpoint: unsafe extern "C" fn(
            *mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void,
        ) -> c_int,
    }

    struct fi_ops_mr {
        size: usize,
        reg: unsafe extern "C" fn(
            *mut fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut fid_mr, *mut c_void,
        ) -> c_int,
    }

    struct fid_mr {
        fid: fid,
        mem_desc: *mut c_void,
        key: u64,
    }

    struct fid_av {
        fid: fid,
        ops: *const fi_ops_av,
    }

    struct fi_ops_av {
        size: usize,
        insert: unsafe extern "C" fn(
            *mut fid_av, *const c_void, usize, *mut fi_addr_t, u64, *mut c_void,
        ) -> c_int,
    }

    struct fid_eq {
        fid: fid,
        ops: *const fi_ops_eq,
    }

    struct fi_ops_eq {
        size: usize,
        read: unsafe extern "C" fn(*mut fid_eq, *mut u32, *mut c_void, usize, u64) -> isize,
        readerr: unsafe extern "C" fn(*mut fid_eq, *mut fi_eq_err_entry, u64) -> isize,
    }

    struct fid_cq {
        fid: fid,
        ops: *const fi_ops_cq,
    }

    struct fi_ops_cq {
        size: usize,
        read: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize,
        readfrom: Unused,
        readerr: unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
    }

    struct fid_ep {
        fid: fid,
        ops: *const c_void,
        cm: *const fi_ops_cm,
        msg: *const fi_ops_msg,
        rma: *const fi_ops_rma,
    }

    struct fid_pep {
        fid: fid,
        ops: *const c_void,
        cm: *const fi_ops_cm,
    }

    struct fi_ops_cm {
        size: usize,
        setname: Unused,
        getname: Unused,
        getpeer: Unused,
        connect: unsafe extern "C" fn(*mut fid_ep, *const c_void, *const c_void, usize) -> c_int,
        listen: unsafe extern "C" fn(*mut fid_pep) -> c_int,
        accept: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize) -> c_int,
        reject: unsafe extern "C" fn(*mut fid_pep, *mut fid, *const c_void, usize) -> c_int,
    }

    struct fi_ops_msg {
        size: usize,
        recv: unsafe extern "C" fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, *mut c_void,
        ) -> isize,
        recvv: Unused,
        recvmsg: Unused,
        send: unsafe extern "C" fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, *mut c_void,
        ) -> isize,
    }

    struct fi_ops_rma {
        size: usize,
        read: Unused,
        readv: Unused,
        readmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
        write: Unused,
        writev: Unused,
        writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
    }
}

// What this crate allocates, complete.
structures! {
    struct fi_eq_attr {
        size: usize,
        flags: u64,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_set: *mut c_void,
    }

    struct fi_cq_attr {
        size: usize,
        flags: u64,
        format: c_int,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_cond: c_int,
        wait_set: *mut c_void,
    }

    struct fi_av_attr {
        type_: c_int,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }

    /// Connection data follow it.
    struct fi_eq_cm_entry {
        fid: *mut fid,
        info: *mut fi_info,
    }

    struct fi_eq_err_entry {
        fid: *mut fid,
        context: *mut c_void,
        data: u64,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }

    #[derive(Clone, Copy)]
    struct fi_cq_msg_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
    }

    struct fi_cq_err_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
        src_addr: fi_addr_t,
    }

    struct fi_msg_rma {
        msg_iov: *const libc::iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        rma_iov: *const fi_rma_iov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }

    #[derive(Clone, Copy, Default)]
    struct fi_rma_iov {
        addr: u64,
        len: usize,
        key: u64,
    }
}

/// Gives structures of numbers and nullable pointers their value of zeros.
macro_rules! zeroed {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> $name {
                // SAFETY: the members are numbers and raw pointers, which zero bytes are values of.
                unsafe { std::mem::zeroed() }
            }
        }
    )*};
}

zeroed!(fi_eq_attr fi_cq_attr fi_av_attr fi_eq_err_entry fi_cq_msg_entry fi_cq_err_entry);

/// Defines calls that go through a table of an object: `call(object, arguments) = table.function`.
macro_rules! calls {
    ($($call:ident($object:ident: $kind:ty $(, $argument:ident: $type:ty)*) -> $result:ty
        = $table:ident.$function:ident;)*) => {$(
        pub(super) unsafe fn $call($object: *mut $kind $(, $argument: $type)*) -> $result {
            // SAFETY: the caller passes an open object, whose table has this function in every
            // version of the library, and arguments that are valid for the call.
            unsafe { ((*(*$object).$table).$function)($object $(, $argument)*) }
        }
    )*};
}

calls! {
    fi_close(object: fid) -> c_int = ops.close;
    fi_control(object: fid, command: c_int, argument: *mut c_void) -> c_int = ops.control;
    fi_domain(
        fabric: fid_fabric, info: *mut fi_info, made: *mut *mut fid_domain, context: *mut c_void
    ) -> c_int = ops.domain;
    fi_passive_ep(
        fabric: fid_fabric, info: *mut fi_info, made: *mut *mut fid_pep, context: *mut c_void
    ) -> c_int = ops.passive_ep;
    fi_eq_open(
        fabric: fid_fabric, attributes: *mut fi_eq_attr, made: *mut *mut fid_eq, context: *mut c_void
    ) -> c_int = ops.eq_open;
    fi_trywait(fabric: fid_fabric, queues: *mut *mut fid, count: c_int) -> c_int = ops.trywait;
    fi_av_open(
        domain: fid_domain, attributes: *mut fi_av_attr, made: *mut *mut fid_av, context: *mut c_void
    ) -> c_int = ops.av_open;
    fi_cq_open(
        domain: fid_domain, attributes: *mut fi_cq_attr, made: *mut *mut fid_cq, context: *mut c_void
    ) -> c_int = ops.cq_open;
    fi_endpoint(
        domain: fid_domain, info: *mut fi_info, made: *mut *mut fid_ep, context: *mut c_void
    ) -> c_int = ops.endpoint;
    fi_av_insert(
        vector: fid_av, addresses: *const c_void, count: usize, made: *mut fi_addr_t, flags: u64,
        context: *mut c_void
    ) -> c_int = ops.insert;
    fi_eq_read(queue: fid_eq, event: *mut u32, entry: *mut c_void, len: usize, flags: u64)
        -> isize = ops.read;
    fi_eq_readerr(queue: fid_eq, entry: *mut fi_eq_err_entry, flags: u64) -> isize = ops.readerr;
    fi_cq_read(queue: fid_cq, entries: *mut c_void, count: usize) -> isize = ops.read;
    fi_cq_readerr(queue: fid_cq, entry: *mut fi_cq_err_entry, flags: u64) -> isize = ops.readerr;
    fi_listen(listener: fid_pep) -> c_int = cm.listen;
    fi_reject(listener: fid_pep, handle: *mut fid, data: *const c_void, len: usize)
        -> c_int = cm.reject;
    fi_connect(endpoint: fid_ep, address: *const c_void, data: *const c_void, len: usize)
        -> c_int = cm.connect;
    fi_accept(endpoint: fid_ep, data: *const c_void, len: usize) -> c_int = cm.accept;
    fi_recv(
        endpoint: fid_ep, memory: *mut c_void, len: usize, descriptor: *mut c_void,
        source: fi_addr_t, context: *mut c_void
    ) -> isize = msg.recv;
    fi_send(
        endpoint: fid_ep, memory: *const c_void, len: usize, descriptor: *mut c_void,
        target: fi_addr_t, context: *mut c_void
    ) -> isize = msg.send;
    fi_readmsg(endpoint: fid_ep, message: *const fi_msg_rma, flags: u64) -> isize = rma.readmsg;
    fi_writemsg(endpoint: fid_ep, message: *const fi_msg_rma, flags: u64) -> isize = rma.writemsg;
}

/// Binds an endpoint, passive or not, to a queue or an address vector.
pub(super) unsafe fn fi_bind(endpoint: *mut fid, to: *mut fid, flags: u64) -> c_int {
    // SAFETY: the caller passes open objects; every object's table has this function.
    unsafe { ((*(*endpoint).ops).bind)(endpoint, to, flags) }
}

pub(super) unsafe fn fi_enable(endpoint: *mut fid) -> c_int {
    // SAFETY: the caller passes an open endpoint. The command takes no argument.
    unsafe { fi_control(endpoint, FI_ENABLE, std::ptr::null_mut()) }
}

/// Registers memory of `len` bytes from `start` on.
pub(super) unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    (start, len): (*const c_void, usize),
    access: u64,
    key: u64,
    made: *mut *mut fid_mr,
) -> c_int {
    let context = std::ptr::null_mut();
    // SAFETY: the caller passes an open domain, whose table has this function, and memory that
    // stays valid while it is registered.
    unsafe {
        let object = domain.cast();
        ((*(*domain).mr).reg)(object, start, len, access, 0, key, 0, made, context)
    }
}

pub(super) unsafe fn fi_mr_key(region: *mut fid_mr) -> u64 {
    // SAFETY: the caller passes an open region.
    unsafe { (*region).key }
}

// An object begins with its `fid`, so that a pointer to it is one to its `fid`.
const _: () = {
    assert!(offset_of!(fid_fabric, fid) == 0 && offset_of!(fid_domain, fid) == 0);
    assert!(offset_of!(fid_eq, fid) == 0 && offset_of!(fid_cq, fid) == 0);
    assert!(offset_of!(fid_ep, fid) == 0 && offset_of!(fid_pep, fid) == 0);
    assert!(offset_of!(fid_av, fid) == 0 && offset_of!(fid_mr, fid) == 0);
};
