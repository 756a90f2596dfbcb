/* The supervisor: PID 1 of a sandbox. main.c says what it is, ../client.py which protocol it speaks. */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTOCOL_VERSION 2
#define MAX_TRANSFER (64u << 20) /* bytes: the largest command, output cap, read or write */
#define MAX_TMPFS 8
#define MAX_SHARED 8
#define BEAT_US 500000
#define FOREVER UINT64_MAX
#define ULL(x) ((unsigned long long)(x))

/* What `init` said. Sizes in bytes, times in microseconds; 0 means no limit. */
struct settings {
    char **environment; /* complete: what children get */
    const char *cwd;
    const char *bash;
    const char *script; /* leads to descriptor 3, the command; bash's error messages begin with it */
    uid_t uid; /* to become; 0: stay who we are */
    uint64_t memory, file_bytes, pids, nproc, cpu_us;
    const char *tmpfs[MAX_TMPFS];    /* mounts whose content counts as memory */
    const char *writable[MAX_TMPFS]; /* mounts that can be written to, some perhaps counted by a twin */
    int tmpfs_count, writable_count;
    const char *shared[MAX_SHARED];  /* mounts to hand to the harness, which shows them to a twin */
    const char *adopted[MAX_SHARED]; /* DESCRIPTOR:PATH, mounts of a twin and where they belong */
    int shared_count, adopted_count;
    bool noexec;        /* nothing in the writable mounts can be executed */
    bool readonly_proc; /* nor can a process's memory be written to through /proc */
    bool fixed_code;    /* no memory becomes executable but a file's */
    int scratch; /* directory descriptor of cwd */
    int null;    /* /dev/null */
    int proc;    /* directory descriptor of a /proc that can be written to */
};
extern struct settings settings;

/* main.c */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_us(void);

/* wire.c. Every function ends the supervisor when the harness is gone. */
struct bytes {
    const void *at;
    size_t length;
};
void read_header(char *line, size_t size);
void read_payload(void *to, size_t length);
int read_payload_memfd(size_t length); /* a new memfd that holds it */
void send_frame(const struct bytes *payload, int count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void send_memfd(int fd, off_t offset, size_t length); /* payload of a header that was sent */
void harness_spoke(void);                             /* input is readable: takes what came */
size_t input_pending(void);

void send_ready(const int *descriptors, int count);

/* mounts.c: what the supervisor does with mounts while it may, before it gives that up */
void arrange_mounts(void); /* sets settings.proc; afterwards send_ready() with: */
extern int shared_mounts[MAX_SHARED];

/* confine.c: what the supervisor gives up, for itself and for everything it starts */
void confine(void);
/* Between vfork and exec: rlimits, OOM score, what only children may not do. `lasting`: it outlives calls, whose CPU
 * time no rlimit can tell. */
bool confine_child(bool lasting);

/* processes.c */
struct usage {          /* of what one call started */
    pid_t leader;       /* the process whose end is the call's end */
    bool leader_done;   /* it has ended, with */
    int leader_status;  /* this wait status */
    bool none_left;     /* no process is alive but us */
    uint64_t cpu_us;    /* of those that are gone, together */
    uint64_t max_rss;   /* of the largest of them, bytes */
};
void reap(struct usage *usage);
struct readable {
    bool one, other;
};
/* Waits for a child's end, the harness, or one of two inputs (-1: none), and says which can be read. */
struct readable wait_for(int one, int other, uint64_t until_us);
void end_everything(struct usage *usage, void (*meanwhile)(void *), void *argument);

/* watch.c: the limits on all processes together, and the heartbeat */
enum reason { NONE, TIMEOUT, OOM, PID_LIMIT, CPU_LIMIT, OUTPUT_LIMIT };
struct watch {
    uint64_t seq, started, next_look, next_beat; /* microseconds on now_us()'s clock */
    uint64_t memory, peak;                       /* bytes in use: at the last look, and the highest seen */
    uint64_t allowed;                            /* bytes */
    uint64_t cpu_before;                         /* microseconds: what a session had used when the call began */
    uint64_t oom_events, pid_events;             /* the cgroup's counters when the call began */
};
void watch_open(void); /* once, before confine() */
void watch_start(struct watch *watch, uint64_t seq, const struct usage *session); /* NULL: nothing is alive yet */
enum reason watch_look(struct watch *watch, const struct usage *usage); /* if it is time to */
enum reason watch_end(struct watch *watch, const struct usage *usage);  /* looks once more */
uint64_t watch_cpu(const struct watch *watch, const struct usage *usage); /* of this call, microseconds */
uint64_t tmpfs_use(void);

/* output.c: what a call printed */
struct output {
    char *kept;                 /* the first `cap` bytes; once there are more, `head` and behind it a ring for the tail */
    size_t cap, head, ring_at;
    uint64_t total, newlines, spilled;
    int spill; /* an unnamed file in scratch; -1: none yet */
    bool full; /* the spill could not be written */
    char last;
};
void output_start(struct output *output, size_t cap);
bool output_read(struct output *output, int pipe); /* false: nothing more to read for now */
unsigned output_name(struct output *output);       /* NNN of outputs/NNN.txt; 0: nothing was spilled, or no name to be had */
uint64_t output_lines(const struct output *output);
int output_parts(const struct output *output, struct bytes parts[3]); /* [0] is the head, the rest the tail */
void output_free(struct output *output);

/* call.c: bash, and a call's result */
struct start {
    int script, pipe, control; /* descriptors: the command, where it prints, and 4 for a session; -1: none */
};
pid_t start_bash(const struct start *start);
void send_result(uint64_t seq, enum reason reason, int status, bool ended_by_us, struct output *output,
                 const struct watch *watch, uint64_t cpu_us, const char *more);

/* call.c, session.c, files.c, terminal.c: the operations */
void op_start(uint64_t seq, uint64_t length);
void op_say(uint64_t seq, uint64_t timeout_us, uint64_t cap, uint64_t length);
void session_end(void); /* before any other operation: nothing of the agent's is alive then */
void op_exec(uint64_t seq, uint64_t timeout_us, uint64_t cap, uint64_t length);
void op_read(uint64_t seq, uint64_t offset, uint64_t limit, uint64_t path_length);
void op_write(uint64_t seq, uint64_t path_length, uint64_t length);
void op_shell(uint64_t seq, unsigned rows, unsigned columns);

#endif
