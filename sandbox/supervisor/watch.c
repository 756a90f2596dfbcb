/* The limits that hold for all processes of a call together, and the heartbeat that tells the harness we live.
 *
 * Without a cgroup nothing in the kernel limits a sum, so this looks at /proc now and then: not at all during the
 * first milliseconds, then the more often the nearer memory is to its limit. With one (Docker), its counters say what
 * the kernel did. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FIRST_LOOK_US 20000
#define SHORTEST_US 5000
#define LONGEST_US 100000
#define GROWTH 4096 /* bytes a microsecond: faster than a machine fills memory */
#define INODE 1024  /* bytes of memory that an empty file costs */

static int oom_counter = -1, pid_counter = -1;
static const char *oom_key;
static long cores;

static int open_first(const char *const paths[], int count, int *which) {
    for (int i = 0; i < count; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            *which = i;
            return fd;
        }
    }
    return -1;
}

void watch_open(void) {
    static const char *const oom[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    static const char *const pids[] = {"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"};
    int which;
    oom_counter = open_first(oom, 2, &which);
    oom_key = "oom_kill ";
    pid_counter = open_first(pids, 2, &which);
    cores = sysconf(_SC_NPROCESSORS_ONLN);
}

/* The whole of a small file in /proc or a cgroup; false if it is gone. */
static bool contents(int fd, char *text, size_t size) {
    ssize_t got = pread(fd, text, size - 1, 0);
    if (got < 0) return false;
    text[got] = '\0';
    return true;
}

/* The number behind `key` at the start of a line; 0 if there is none. */
static uint64_t field(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (!strncmp(line, key, length)) return strtoull(line + length, NULL, 10);
    return 0;
}

static uint64_t counter(int fd, const char *key) {
    char text[1024];
    return fd >= 0 && contents(fd, text, sizeof text) ? field(text, key) : 0;
}

uint64_t tmpfs_use(void) {
    uint64_t use = 0;
    for (int i = 0; i < settings.tmpfs_count; i++) {
        struct statfs fs;
        if (statfs(settings.tmpfs[i], &fs)) continue;
        use += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize + (uint64_t)(fs.f_files - fs.f_ffree) * INODE;
    }
    return use;
}

struct sum {
    uint64_t memory, threads, cpu_us;
    bool exact; /* memory that processes share was divided between them, in all of them */
};

static bool process_file(const char *pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool good = contents(fd, text, size);
    close(fd);
    return good;
}

/* Microseconds that a process and the children it has waited for have run. */
static uint64_t cpu_of(const char *pid) {
    char text[1024];
    if (!process_file(pid, "stat", text, sizeof text)) return 0;
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    uint64_t ticks = 0;
    for (int number = 3; at && number <= 17; number++) {
        at = strchr(at + 1, ' ');
        if (at && number >= 14) ticks += strtoull(at + 1, NULL, 10);
    }
    return ticks * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Adds up what /proc says of every process but us. Memory shared between processes counts in each of them, unless
 * `exact`, which divides it but has to walk their page tables: for a program that can't be read nobody may do that. */
static struct sum look(bool exact, bool with_cpu) {
    struct sum sum = {.exact = exact};
    DIR *proc = opendir("/proc");
    if (!proc) return sum;
    for (struct dirent *entry; (entry = readdir(proc));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !strcmp(entry->d_name, "1")) continue;
        char text[4096];
        if (!process_file(entry->d_name, "status", text, sizeof text)) continue;
        sum.threads += field(text, "Threads:");
        uint64_t shared = field(text, "RssAnon:") + field(text, "RssShmem:") + field(text, "VmSwap:");
        uint64_t own = field(text, "VmPTE:") + field(text, "HugetlbPages:");
        if (exact) {
            if (process_file(entry->d_name, "smaps_rollup", text, sizeof text))
                shared = field(text, "Pss_Anon:") + field(text, "Pss_Shmem:") + field(text, "SwapPss:");
            else sum.exact = false;
        }
        sum.memory += (shared + own) * 1024u;
        if (with_cpu) sum.cpu_us += cpu_of(entry->d_name);
    }
    closedir(proc);
    sum.memory += tmpfs_use();
    return sum;
}

uint64_t watch_cpu(const struct watch *watch, const struct usage *usage) {
    uint64_t used = usage->cpu_us + look(false, true).cpu_us;
    return used > watch->cpu_before ? used - watch->cpu_before : 0;
}

void watch_start(struct watch *watch, uint64_t seq, const struct usage *session) {
    uint64_t now = now_us(), use = tmpfs_use();
    *watch = (struct watch){.seq = seq, .started = now, .next_look = now + FIRST_LOOK_US, .next_beat = now + BEAT_US};
    watch->memory = watch->peak = use;
    /* Files left by earlier calls alone never end a call: the agent must be able to delete them. */
    watch->allowed = use + (64u << 20) > settings.memory ? use + (64u << 20) : settings.memory;
    if (session) watch->cpu_before = session->cpu_us + look(false, true).cpu_us;
    watch->oom_events = counter(oom_counter, oom_key);
    watch->pid_events = counter(pid_counter, "max ");
}

static enum reason kernel_events(const struct watch *watch) {
    if (counter(oom_counter, oom_key) > watch->oom_events) return OOM;
    if (counter(pid_counter, "max ") > watch->pid_events) return PID_LIMIT;
    return NONE;
}

enum reason watch_look(struct watch *watch, const struct usage *usage) {
    uint64_t now = now_us();
    enum reason reason = NONE;
    if (now >= watch->next_look) {
        bool with_cpu = settings.cpu_us && (now - watch->started) * (uint64_t)cores >= settings.cpu_us;
        struct sum sum = look(false, with_cpu);
        bool over = settings.memory && sum.memory > watch->allowed;
        if (over) {
            sum = look(true, with_cpu);
            /* Where the kernel holds the limit it is left to the kernel, unless we know. */
            over = sum.memory > watch->allowed && (sum.exact || oom_counter < 0);
        }
        watch->memory = sum.memory;
        if (sum.memory > watch->peak) watch->peak = sum.memory;
        reason = kernel_events(watch);
        if (reason == NONE && over) reason = OOM;
        if (reason == NONE && settings.pids && sum.threads >= settings.pids) reason = PID_LIMIT;
        if (reason == NONE && with_cpu && usage->cpu_us + sum.cpu_us > settings.cpu_us + watch->cpu_before) reason = CPU_LIMIT;
        uint64_t interval = watch->allowed > sum.memory ? (watch->allowed - sum.memory) / GROWTH : 0;
        interval = interval < SHORTEST_US ? SHORTEST_US : interval > LONGEST_US ? LONGEST_US : interval;
        uint64_t after = now_us(), cost = after - now;
        watch->next_look = after + (interval > cost * 10 ? interval : cost * 10);
        now = after;
    }
    if (now >= watch->next_beat) {
        send_frame(NULL, 0, "beat %llu %llu", ULL(watch->seq), ULL(watch->memory));
        watch->next_beat = now + BEAT_US;
    }
    return reason;
}

enum reason watch_end(struct watch *watch, const struct usage *usage) {
    watch->memory = look(false, false).memory;
    if (watch->memory > watch->peak) watch->peak = watch->memory;
    uint64_t peak = usage->max_rss + tmpfs_use();
    if (peak > watch->peak) watch->peak = peak;
    return kernel_events(watch);
}
