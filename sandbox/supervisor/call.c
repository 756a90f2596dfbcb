/* exec: one command in a fresh bash. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT 3  /* the descriptor through which bash finds the command */
#define CONTROL 4 /* and a session what it is told */

static volatile int start_error; /* written by the child of vfork, in our memory */

static void become_bash(const struct start *start) {
    char *const arguments[] = {"bash", "--noprofile", "--norc", (char *)settings.script, NULL};
    sigset_t nothing_blocked;
    sigemptyset(&nothing_blocked);
    sigprocmask(SIG_SETMASK, &nothing_blocked, NULL);
    setsid();
    if (dup2(settings.null, 0) < 0 || dup2(start->pipe, 1) < 0 || dup2(start->pipe, 2) < 0) return;
    if (start->script == SCRIPT ? fcntl(SCRIPT, F_SETFD, 0) : dup2(start->script, SCRIPT) < 0) return;
    if (start->control >= 0 && dup2(start->control, CONTROL) < 0) return;
    if (confine_child(start->control >= 0)) execve(settings.bash, arguments, settings.environment);
}

/* Starts bash, whose end is the call's end. vfork: no page table is copied, and we sleep until it has exec'ed. */
pid_t start_bash(const struct start *start) {
    start_error = 0;
    pid_t pid = vfork();
    if (!pid) {
        become_bash(start);
        start_error = errno;
        _exit(126);
    }
    if (pid < 0) start_error = errno;
    if (start_error) fail("can't start bash: %s", strerror(start_error));
    return pid;
}

static const char *termination(enum reason reason, int status, int *exit_code) {
    static const char *const names[] = {
        [TIMEOUT] = "timeout",     [OOM] = "oom", [PID_LIMIT] = "pid_limit",
        [CPU_LIMIT] = "cpu_limit", [OUTPUT_LIMIT] = "output_limit",
    };
    bool signalled = WIFSIGNALED(status);
    *exit_code = signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (reason != NONE) return names[reason];
    if (*exit_code == 128 + SIGXFSZ) return "file_limit";
    if (*exit_code == 128 + SIGXCPU) return "cpu_limit";
    return signalled ? "killed" : "exit";
}

/* `more` is appended to the frame's header. */
void send_result(uint64_t seq, enum reason reason, int status, bool ended_by_us, struct output *output,
                 const struct watch *watch, uint64_t cpu_us, const char *more) {
    unsigned name = output_name(output);
    if (reason == NONE && output->full) reason = OUTPUT_LIMIT;
    int exit_code;
    const char *how = termination(reason, status, &exit_code);
    struct bytes parts[3];
    int count = output_parts(output, parts);
    size_t tail = count == 3 ? parts[1].length + parts[2].length : 0;
    send_frame(parts, count, "done %llu %s %d %llu %llu %zu %zu %u %llu %llu %llu %llu %llu%s", ULL(seq), how,
               ended_by_us ? -1 : exit_code, ULL(output->total), ULL(output_lines(output)), parts[0].length, tail, name,
               ULL(output->spilled), ULL(now_us() - watch->started), ULL(cpu_us), ULL(watch->peak), ULL(watch->memory), more);
}

static void keep_beating(void *watch) {
    static const struct usage nothing;
    watch_look(watch, &nothing);
}

void op_exec(uint64_t seq, uint64_t timeout_us, uint64_t cap, uint64_t length) {
    if (cap > MAX_TRANSFER || length > MAX_TRANSFER) fail("exec: more than %u bytes", MAX_TRANSFER);
    int script = read_payload_memfd(length);
    fcntl(script, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC)) fail("pipe: %s", strerror(errno));
    fcntl(pipe[0], F_SETFL, O_NONBLOCK);
    fcntl(pipe[1], F_SETPIPE_SZ, 1 << 20);
    struct output output;
    output_start(&output, cap);
    fchmod(settings.scratch, 01777);
    struct watch watch;
    watch_start(&watch, seq, NULL);
    uint64_t deadline = watch.started + timeout_us;

    struct usage usage = {.leader = start_bash(&(struct start){script, pipe[1], -1})};
    close(pipe[1]);
    close(script);

    enum reason reason = NONE;
    bool open = true; /* somebody may still write to the pipe */
    for (;;) {
        reap(&usage);
        if (usage.leader_done) break;
        if (now_us() >= deadline) reason = TIMEOUT;
        if (reason == NONE) reason = watch_look(&watch, &usage);
        if (reason == NONE && output.full) reason = OUTPUT_LIMIT;
        if (reason != NONE) break;
        uint64_t until = deadline < watch.next_look ? deadline : watch.next_look;
        if (wait_for(open ? pipe[0] : -1, -1, until < watch.next_beat ? until : watch.next_beat).one)
            open = output_read(&output, pipe[0]);
    }
    bool ended_by_us = !usage.leader_done;
    end_everything(&usage, keep_beating, &watch);
    while (output_read(&output, pipe[0])) continue;
    close(pipe[0]);

    enum reason late = watch_end(&watch, &usage);
    if (reason == NONE) reason = late;
    send_result(seq, reason, usage.leader_status, ended_by_us, &output, &watch, usage.cpu_us, "");
    output_free(&output);
}
