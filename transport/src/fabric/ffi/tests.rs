//! Compares the declarations with libfabric's headers, by a C compiler.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::{Command, Stdio};

use super::*;

/// Assertions in C about members of structures: their offsets and sizes.
macro_rules! members {
    ($out:ident: $($name:ident { $($member:ident $(= $c:ident)?,)* })*) => {$($({
        let c = members!(@ $member $($c)?);
        let (name, at) = (stringify!($name), offset_of!($name, $member));
        let size = size_of_member(|one: &$name| &raw const one.$member);
        writeln!($out, "_Static_assert(offsetof(struct {name}, {c}) == {at}, \"{name}.{c}\");").unwrap();
        writeln!($out, "_Static_assert(sizeof(((struct {name} *)0)->{c}) == {size}, \"size of {name}.{c}\");").unwrap();
    })*)*};
    (@ $member:ident) => { stringify!($member) };
    (@ $member:ident $c:ident) => { stringify!($c) };
}

/// The size of the member to which `_place` leads.
fn size_of_member<T, M>(_place: fn(&T) -> *const M) -> usize {
    size_of::<M>()
}

macro_rules! sizes {
    ($out:ident: $($name:ident)*) => {$(
        let (name, size) = (stringify!($name), size_of::<$name>());
        writeln!($out, "_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");").unwrap();
    )*};
}

macro_rules! values {
    ($out:ident: $($name:ident)*) => {$(
        let (name, value) = (stringify!($name), $name);
        let suffix = if u64::try_from(value).is_ok_and(|value| value > 1 << 31) { "ull" } else { "" };
        writeln!($out, "_Static_assert({name} == {value}{suffix}, \"{name}\");").unwrap();
    )*};
}

/// Declarations of all calls through tables, by the types that the headers give them. A wrong
/// number of arguments, or one of another size, is an error of the compiler.
fn assertions() -> String {
    let mut out = String::new();
    members! { out:
        fi_info {
            next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle,
            tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr,
        }
        fi_tx_attr {
            caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit,
            rma_iov_limit,
        }
        fi_ep_attr { type_ = type, }
        fi_domain_attr { domain, name, threading, }
        fi_fabric_attr { fabric, name, prov_name, }
        fid { fclass, context, ops, }
        fi_ops { size, close, bind, control, }
        fid_fabric { fid, ops, }
        fi_ops_fabric { size, domain, passive_ep, eq_open, wait_open, trywait, }
        fid_domain { fid, ops, mr, }
        fi_ops_domain { size, av_open, cq_open, endpoint, }
        fi_ops_mr { size, reg, }
        fid_mr { fid, mem_desc, key, }
        fid_av { fid, ops, }
        fi_ops_av { size, insert, }
        fid_eq { fid, ops, }
        fi_ops_eq { size, read, readerr, }
        fid_cq { fid, ops, }
        fi_ops_cq { size, read, readfrom, readerr, }
        fid_ep { fid, ops, cm, msg, rma, }
        fid_pep { fid, ops, cm, }
        fi_ops_cm { size, setname, getname, getpeer, connect, listen, accept, reject, }
        fi_ops_msg { size, recv, recvv, recvmsg, send, }
        fi_ops_rma { size, read, readv, readmsg, write, writev, writemsg, }
        fi_eq_attr { size, flags, wait_obj, signaling_vector, wait_set, }
        fi_cq_attr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set, }
        fi_av_attr { type_ = type, rx_ctx_bits, count, ep_per_node, name, map_addr, flags, }
        fi_eq_cm_entry { fid, info, }
        fi_eq_err_entry { fid, context, data, err, prov_errno, err_data, err_data_size, }
        fi_cq_msg_entry { op_context, flags, len, }
        fi_cq_err_entry {
            op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data,
            err_data_size, src_addr,
        }
        fi_msg_rma {
            msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data,
        }
        fi_rma_iov { addr, len, key, }
    }
    sizes! { out:
        fi_eq_attr fi_cq_attr fi_av_attr fi_eq_cm_entry fi_eq_err_entry fi_cq_msg_entry
        fi_cq_err_entry fi_msg_rma fi_rma_iov fid
    }
    values! { out:
        FI_MSG FI_RMA FI_RECV FI_SEND FI_TRANSMIT FI_REMOTE_READ FI_REMOTE_WRITE
        FI_DELIVERY_COMPLETE FI_NUMERICHOST FI_SOURCE FI_ADDR_UNSPEC FI_GETWAIT FI_ENABLE FI_EAVAIL
        FI_ENOKEY FI_CONNREQ FI_CONNECTED FI_SHUTDOWN FI_EP_MSG FI_EP_RDM FI_THREAD_SAFE FI_WAIT_FD
        FI_CQ_FORMAT_MSG
    }
    out
}

/// The types of the functions that this crate calls, as C types, which the headers must agree with.
const FUNCTIONS: &str = "
int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **) = fi_getinfo;
void (*freeinfo)(struct fi_info *) = fi_freeinfo;
struct fi_info *(*dupinfo)(const struct fi_info *) = fi_dupinfo;
int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *) = fi_fabric;
const char *(*string)(int) = fi_strerror;
uint32_t (*version)(void) = fi_version;
#define SAME(table, function, ...) \\
    _Static_assert(_Generic(((struct table *)0)->function, __VA_ARGS__: 1, default: 0), #function)
SAME(fi_ops, close, int (*)(struct fid *));
SAME(fi_ops, bind, int (*)(struct fid *, struct fid *, uint64_t));
SAME(fi_ops, control, int (*)(struct fid *, int, void *));
SAME(fi_ops_fabric, domain, int (*)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *));
SAME(fi_ops_fabric, passive_ep, int (*)(struct fid_fabric *, struct fi_info *, struct fid_pep **, void *));
SAME(fi_ops_fabric, eq_open, int (*)(struct fid_fabric *, struct fi_eq_attr *, struct fid_eq **, void *));
SAME(fi_ops_fabric, trywait, int (*)(struct fid_fabric *, struct fid **, int));
SAME(fi_ops_domain, av_open, int (*)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *));
SAME(fi_ops_domain, cq_open, int (*)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *));
SAME(fi_ops_domain, endpoint, int (*)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *));
SAME(fi_ops_mr, reg, int (*)(struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, struct fid_mr **, void *));
SAME(fi_ops_av, insert, int (*)(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t, void *));
SAME(fi_ops_eq, read, ssize_t (*)(struct fid_eq *, uint32_t *, void *, size_t, uint64_t));
SAME(fi_ops_eq, readerr, ssize_t (*)(struct fid_eq *, struct fi_eq_err_entry *, uint64_t));
SAME(fi_ops_cq, read, ssize_t (*)(struct fid_cq *, void *, size_t));
SAME(fi_ops_cq, readerr, ssize_t (*)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t));
SAME(fi_ops_cm, connect, int (*)(struct fid_ep *, const void *, const void *, size_t));
SAME(fi_ops_cm, listen, int (*)(struct fid_pep *));
SAME(fi_ops_cm, accept, int (*)(struct fid_ep *, const void *, size_t));
SAME(fi_ops_cm, reject, int (*)(struct fid_pep *, fid_t, const void *, size_t));
SAME(fi_ops_msg, recv, ssize_t (*)(struct fid_ep *, void *, size_t, void *, fi_addr_t, void *));
SAME(fi_ops_msg, send, ssize_t (*)(struct fid_ep *, const void *, size_t, void *, fi_addr_t, void *));
SAME(fi_ops_rma, readmsg, ssize_t (*)(struct fid_ep *, const struct fi_msg_rma *, uint64_t));
SAME(fi_ops_rma, writemsg, ssize_t (*)(struct fid_ep *, const struct fi_msg_rma *, uint64_t));
";

#[test]
fn declarations_of_libfabric_are_those_of_its_headers() {
    let flags = Command::new("pkg-config").args(["--cflags", "libfabric"]).output();
    let Some(flags) = flags.ok().filter(|found| found.status.success()) else {
        eprintln!("skipped: pkg-config finds no headers of libfabric (ci/libfabric builds them)");
        return;
    };
    let headers = ["fabric", "fi_cm", "fi_domain", "fi_endpoint", "fi_eq", "fi_errno", "fi_rma"];
    let mut program = "#include <stddef.h>\n#include <sys/types.h>\n".to_owned();
    headers.iter().for_each(|name| writeln!(program, "#include <rdma/{name}.h>").unwrap());
    program += &assertions();
    program += FUNCTIONS;
    let name = if cfg!(target_arch = "x86") { "i686-linux-gnu-gcc" } else { "cc" };
    let mut compiler = Command::new(name);
    compiler.args(["-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-x", "c", "-"]);
    compiler.args(String::from_utf8(flags.stdout).unwrap().split_whitespace());
    let compiler = compiler.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut compiler) = compiler.spawn() else {
        eprintln!("skipped: no C compiler, {name}");
        return;
    };
    let mut to = compiler.stdin.take().unwrap();
    std::io::Write::write_all(&mut to, program.as_bytes()).unwrap();
    drop(to);
    let ended = compiler.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
