/* start and say: a command that outlives calls, and is told things, one at a time, through a socket.
 *
 * It gets its socket as descriptor 4. Each thing that it is told comes as a message, the call's number, with a descriptor
 * of what it is; it answers by a message of that number and an exit code. What it and its children print belongs to the
 * call in which it is read. Between calls all of them are stopped: then nobody watches them, and a call's time is its
 * own. They end with the first operation that is neither of these two. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_US 3000000u /* for an interrupted session to answer, before it is killed */

static struct usage session;
static int session_pipe = -1, session_control = -1;

static void nothing(void *argument) { (void)argument; }

void session_end(void) {
    if (session_control < 0) return;
    end_everything(&session, nothing, NULL);
    close(session_pipe);
    close(session_control);
    session_pipe = session_control = -1;
}

void op_start(uint64_t seq, uint64_t length) {
    if (length > MAX_TRANSFER) fail("start: more than %u bytes", MAX_TRANSFER);
    int script = read_payload_memfd(length), pipe[2], control[2];
    if (pipe2(pipe, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
        fail("start: %s", strerror(errno));
    int theirs = fcntl(control[1], F_DUPFD_CLOEXEC, 16); /* none that the child gives another meaning first */
    fcntl(pipe[0], F_SETFL, O_NONBLOCK);
    fcntl(pipe[1], F_SETPIPE_SZ, 1 << 20);
    fchmod(settings.scratch, 01777);
    session = (struct usage){.leader = start_bash(&(struct start){script, pipe[1], theirs})};
    kill(-1, SIGSTOP);
    close(script);
    close(pipe[1]);
    close(control[1]);
    close(theirs);
    session_pipe = pipe[0];
    session_control = control[0];
    send_frame(NULL, 0, "ok %llu", ULL(seq));
}

static void tell(uint64_t seq, int what) {
    char line[32], control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {line, (size_t)snprintf(line, sizeof line, "%llu", ULL(seq))};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &what, sizeof(int));
    (void)!sendmsg(session_control, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* who doesn't listen doesn't answer */
}

enum answer { SILENT, ANSWERED, GONE };

/* What has come from the session: its answer to this call, or an end of the socket. Anything else is passed over, a few
 * messages at a time, for its code can send what it likes. */
static enum answer hear(uint64_t seq, int *exit_code) {
    char text[64];
    for (int i = 0; i < 16; i++) {
        ssize_t got = recv(session_control, text, sizeof text - 1, MSG_DONTWAIT);
        if (got < 0) return SILENT;
        if (got == 0) return GONE;
        text[got] = '\0';
        unsigned long long number;
        unsigned code;
        if (sscanf(text, "%llu %u", &number, &code) == 2 && number == seq && code < 256) {
            *exit_code = (int)code;
            return ANSWERED;
        }
    }
    return SILENT;
}

static bool can_be_interrupted(enum reason reason) {
    return reason == TIMEOUT || reason == CPU_LIMIT || reason == OUTPUT_LIMIT;
}

void op_say(uint64_t seq, uint64_t timeout_us, uint64_t cap, uint64_t length) {
    if (cap > MAX_TRANSFER || length > MAX_TRANSFER) fail("say: more than %u bytes", MAX_TRANSFER);
    if (session_control < 0) fail("say: there is no session");
    int what = read_payload_memfd(length);
    fcntl(what, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    lseek(what, 0, SEEK_SET);
    struct output output;
    output_start(&output, cap);
    struct watch watch;
    watch_start(&watch, seq, &session);
    uint64_t deadline = watch.started + timeout_us;
    tell(seq, what);
    close(what);
    kill(-1, SIGCONT);

    enum reason reason = NONE;
    enum answer answer;
    bool interrupted = false, open = true;
    int exit_code = 0;
    for (;;) {
        reap(&session);
        answer = hear(seq, &exit_code);
        if (answer != SILENT || session.leader_done) break;
        enum reason seen = watch_look(&watch, &session);
        if (seen == NONE && output.full) seen = OUTPUT_LIMIT;
        if (seen == NONE && now_us() >= deadline) seen = TIMEOUT;
        if (reason == NONE) reason = seen;
        if (reason != NONE && !interrupted && can_be_interrupted(reason)) {
            kill(session.leader, SIGINT);
            deadline = now_us() + GRACE_US;
            interrupted = true;
        } else if (seen == OOM || seen == PID_LIMIT || (interrupted && now_us() >= deadline)) break;
        uint64_t until = deadline < watch.next_look ? deadline : watch.next_look;
        if (until > watch.next_beat) until = watch.next_beat;
        if (wait_for(open ? session_pipe : -1, session_control, until).one) open = output_read(&output, session_pipe);
    }
    bool alive = answer == ANSWERED && !session.leader_done;
    bool ended_by_us = reason != NONE && (alive || !session.leader_done);
    if (alive) kill(-1, SIGSTOP);
    else end_everything(&session, nothing, NULL);
    while (output_read(&output, session_pipe)) continue;
    enum reason late = watch_end(&watch, &session);
    if (reason == NONE) reason = late;
    int status = answer == ANSWERED ? exit_code << 8 : session.leader_status; /* as wait() has it */
    send_result(seq, reason, status, ended_by_us, &output, &watch, watch_cpu(&watch, &session), alive ? " 1" : " 0");
    output_free(&output);
    if (!alive) session_end();
}
