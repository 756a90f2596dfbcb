/* What the supervisor gives up for good, before anything untrusted runs. Children inherit all of it. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define X32 0x40000000u /* this and above: the same machine's other ABI, with other numbers */
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define X32 0xffffffffu
#else
#error "no system call filter for this architecture"
#endif

static const int denied[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_migrate_pages, SYS_move_pages,
    438 /* pidfd_getfd */, 440 /* process_madvise */, 448 /* process_mrelease */,
    /* namespaces and mounts */
    SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, 428 /* open_tree */, 429 /* move_mount */,
    430 /* fsopen */, 431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */, 442 /* mount_setattr */,
    467 /* open_tree_attr */, SYS_quotactl, 443 /* quotactl_fd */, SYS_swapon, SYS_swapoff,
    /* kernel surface that a search through files has no use for */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, 425 /* io_uring_setup */, 426, 427, SYS_add_key, SYS_request_key,
    SYS_keyctl, SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_acct, SYS_reboot,
    SYS_fanotify_init, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_lookup_dcookie, SYS_vhangup, SYS_syslog,
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname,
#if defined(__x86_64__)
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs,
#endif
};

#define NAMESPACES \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define NEWTIME 0x80

static struct sock_filter filter[256];
static unsigned short filter_length;

static void add(unsigned short code, unsigned char jump_true, unsigned char jump_false, unsigned value) {
    if (filter_length == sizeof filter / sizeof *filter) fail("the system call filter is full");
    filter[filter_length++] = (struct sock_filter){code, jump_true, jump_false, value};
}

/* The low half of an argument: the kernel takes all those compared here as int. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the filter reads arguments as little-endian"
#endif
#define ARGUMENT(n) ((unsigned)offsetof(struct seccomp_data, args[n]))
static void load(unsigned offset) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }
static void give(unsigned action) { add(BPF_RET | BPF_K, 0, 0, action); }
#define ERROR(number) (SECCOMP_RET_ERRNO | (number))

/* Each rule begins with the system call's number loaded and, if it isn't this one's, ends so too. */
static void rule(int call, unsigned action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)call);
    give(action);
}

static void deny_flags(int call, unsigned flags) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (unsigned)call);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, flags);
    give(ERROR(EPERM));
    give(SECCOMP_RET_ALLOW);
}

/* Denied if the argument is PID 1, which is us: a same-user process may otherwise change another's. */
static void deny_on_us(int call, int argument) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (unsigned)call);
    load(ARGUMENT(argument));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 1);
    give(ERROR(EPERM));
    give(SECCOMP_RET_ALLOW);
}

/* setpriority and ioprio_set take (which, who): only `which` = a process, and not us. */
static void only_process(int call, unsigned process) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 6, (unsigned)call);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, process);
    load(ARGUMENT(1));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1);
    give(SECCOMP_RET_ALLOW);
    give(ERROR(EPERM));
}

/* Network namespaces don't hold AF_VSOCK (the hypervisor) or AF_ALG: a short list of families instead. */
static void only_families(int call) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 7, (unsigned)call);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, AF_UNIX);
    add(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, AF_INET);
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET6);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, AF_NETLINK);
    give(SECCOMP_RET_ALLOW);
    give(ERROR(EAFNOSUPPORT));
}

/* Address space randomisation stays on: only personality(0) and the query. */
static void only_plain_personality(void) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_personality);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0xffffffffu);
    give(SECCOMP_RET_ALLOW);
    give(ERROR(EPERM));
}

/* Memory that can be executed comes from files alone, and those can't be written to. */
static void only_code_from_files(void) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 7, SYS_mmap);
    load(ARGUMENT(2));
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 3, PROT_EXEC);
    add(BPF_JMP | BPF_JSET | BPF_K, 3, 0, PROT_WRITE);
    load(ARGUMENT(3));
    add(BPF_JMP | BPF_JSET | BPF_K, 1, 0, MAP_ANONYMOUS);
    give(SECCOMP_RET_ALLOW);
    give(ERROR(EPERM));
    static const int protecting[] = {SYS_mprotect, SYS_pkey_mprotect};
    for (size_t i = 0; i < sizeof protecting / sizeof *protecting; i++) {
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (unsigned)protecting[i]);
        load(ARGUMENT(2));
        add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC);
        give(ERROR(EPERM));
        give(SECCOMP_RET_ALLOW);
    }
}

static void filter_system_calls(void) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
    give(ERROR(ENOSYS));
    load(offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32);
    give(ERROR(ENOSYS));
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) rule(denied[i], ERROR(EPERM));
    /* Its flags lie in memory, out of a filter's reach: programs use clone where it isn't there. */
    rule(435 /* clone3 */, ERROR(ENOSYS));
    deny_flags(SYS_clone, NAMESPACES);
    deny_flags(SYS_unshare, NAMESPACES | NEWTIME);
    deny_on_us(SYS_prlimit64, 0);
    deny_on_us(SYS_sched_setaffinity, 0);
    deny_on_us(SYS_sched_setscheduler, 0);
    deny_on_us(SYS_sched_setparam, 0);
    deny_on_us(SYS_sched_setattr, 0);
    only_process(SYS_setpriority, PRIO_PROCESS);
    only_process(SYS_ioprio_set, 1);
    only_families(SYS_socket);
    only_families(SYS_socketpair);
    only_plain_personality();
    if (settings.fixed_code) only_code_from_files();
    give(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {filter_length, filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("no system call filter: %s", strerror(errno));
}

/* Memory that no process maps and no mount holds would escape the memory limit where there is no cgroup. Not part of
 * the filter above, since the supervisor itself uses memfd_create. */
static struct sock_filter child_filter[] = {
    {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
    {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_memfd_create},
    {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 447 /* memfd_secret */},
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_shmget},
    {BPF_RET | BPF_K, 0, 0, ERROR(ENOSYS)},
    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
};

void confine(void) {
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        prctl(PR_CAPBSET_DROP, capability);
    if (settings.uid) {
        gid_t gid = (gid_t)settings.uid;
        if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(settings.uid, settings.uid, settings.uid))
            fail("can't become user %u: %s", (unsigned)settings.uid, strerror(errno));
    }
    struct __user_cap_header_struct version = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {0};
    if (syscall(SYS_capset, &version, none)) fail("can't give up capabilities: %s", strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs: %s", strerror(errno));
    if (prctl(PR_SET_DUMPABLE, 0)) fail("not dumpable: %s", strerror(errno));
    filter_system_calls();
}

static void limit(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit value = {soft, hard};
    setrlimit(resource, &value);
}

bool confine_child(bool lasting) {
    if (settings.memory) {
        /* Above the limit proper, so that the watchdog sees a process that grows past it and can say so. */
        uint64_t data = settings.memory + settings.memory / 8 + (64u << 20);
        limit(RLIMIT_DATA, data, data);
    }
    if (settings.file_bytes) limit(RLIMIT_FSIZE, settings.file_bytes, settings.file_bytes);
    if (settings.nproc) limit(RLIMIT_NPROC, settings.nproc, settings.nproc);
    if (settings.cpu_us && !lasting) {
        uint64_t seconds = settings.cpu_us / 1000000u + 1;
        limit(RLIMIT_CPU, seconds, seconds + 1);
    }
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_NOFILE, 1024, 1024);
    limit(RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
    limit(RLIMIT_MSGQUEUE, 0, 0);
    /* First in line when the machine runs out of memory. The child of vfork shares our memory, and the file belongs to
     * root as long as that is not dumpable; nothing untrusted is alive now. */
    prctl(PR_SET_DUMPABLE, 1);
    int fd = openat(settings.proc, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    prctl(PR_SET_DUMPABLE, 0);
    struct sock_fprog program = {sizeof child_filter / sizeof *child_filter, child_filter};
    return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
