/* shell: an interactive bash on a terminal of the sandbox's own, relayed to a person's. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void set_size(int terminal, unsigned rows, unsigned columns) {
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    ioctl(terminal, TIOCSWINSZ, &size);
}

static int open_terminal(char *name, size_t size) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || unlockpt(terminal) || ptsname_r(terminal, name, size)) fail("no terminal: %s", strerror(errno));
    return terminal;
}

static pid_t start(const char *name) {
    char *const arguments[] = {"bash", "--noprofile", "--norc", "-i", NULL};
    pid_t pid = fork();
    if (pid) return pid;
    sigset_t nothing_blocked;
    sigemptyset(&nothing_blocked);
    sigprocmask(SIG_SETMASK, &nothing_blocked, NULL);
    setsid();
    int fd = open(name, O_RDWR);
    if (fd < 0 || ioctl(fd, TIOCSCTTY, 0)) _exit(126);
    for (int i = 0; i < 3; i++)
        if (dup2(fd, i) < 0) _exit(126);
    if (fd > 2) close(fd);
    if (!confine_child(false)) _exit(126);
    execve(settings.bash, arguments, settings.environment);
    _exit(126);
}

/* Keys and window sizes, as far as whole frames are here. */
static void from_person(int terminal) {
    while (input_pending()) {
        char line[256], keys[1 << 15];
        unsigned long long a, b;
        read_header(line, sizeof line);
        if (sscanf(line, "size %llu %llu", &a, &b) == 2) set_size(terminal, (unsigned)a, (unsigned)b);
        else if (sscanf(line, "keys %llu", &a) == 1 && a <= sizeof keys) {
            read_payload(keys, a);
            for (size_t at = 0; at < a;) {
                ssize_t put = write(terminal, keys + at, a - at);
                if (put <= 0) break;
                at += (size_t)put;
            }
        } else fail("shell: unknown frame: %.40s", line);
    }
}

static bool to_person(int terminal) {
    char text[1 << 16];
    ssize_t got = read(terminal, text, sizeof text);
    if (got <= 0) return false;
    struct bytes part = {text, (size_t)got};
    send_frame(&part, 1, "text %zu", part.length);
    return true;
}

static void no_meanwhile(void *argument) { (void)argument; }

void op_shell(uint64_t seq, unsigned rows, unsigned columns) {
    char name[64];
    int terminal = open_terminal(name, sizeof name);
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    set_size(terminal, rows, columns);
    struct watch watch;
    watch_start(&watch, seq, NULL);
    struct usage usage = {.leader = start(name)};
    if (usage.leader < 0) fail("can't start bash: %s", strerror(errno));
    enum reason reason = NONE;
    for (;;) {
        reap(&usage);
        if (usage.leader_done) break;
        from_person(terminal);
        reason = watch_look(&watch, &usage);
        if (reason != NONE) break;
        uint64_t until = watch.next_look < watch.next_beat ? watch.next_look : watch.next_beat;
        bool readable = wait_for(terminal, -1, until).one;
        if (readable && !to_person(terminal)) wait_for(-1, -1, now_us() + 10000); /* nobody has the other end open */
    }
    bool ended_by_us = !usage.leader_done;
    end_everything(&usage, no_meanwhile, NULL);
    while (to_person(terminal)) continue;
    close(terminal);
    int code = WIFSIGNALED(usage.leader_status) ? 128 + WTERMSIG(usage.leader_status) : WEXITSTATUS(usage.leader_status);
    send_frame(NULL, 0, "end %llu %d %d", ULL(seq), ended_by_us ? (int)reason : 0, ended_by_us ? -1 : code);
}
