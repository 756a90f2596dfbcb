/* PID 1 of a sandbox: runs commands for the harness, which speaks to it over its standard input and output.
 *
 * It must hold against what it runs. A command runs as the same user, so the supervisor is not dumpable (nobody reads
 * its memory or reopens its descriptors through /proc/1), it is PID 1 of its own namespace (signals from inside don't
 * reach it), and a system call filter that every child inherits denies what could still touch it (its priority, its
 * limits) or make new namespaces. Nothing here opens a path that a command could have prepared, but in a forked child
 * or relative to a descriptor without following links.
 *
 * A command's output comes through a pipe that the supervisor reads, not through a file: `> /dev/stdout` truncates a
 * file even if that was opened to append. A background process that holds the pipe can't delay the call, since the
 * call ends when the shell ends: then everything left is killed and the pipe is drained.
 *
 * When standard input ends the harness is gone: the supervisor exits, and the kernel kills everything in its PID
 * namespace.
 */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct settings settings;

_Noreturn void fail(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct bytes part = {text, length < (int)sizeof text ? (size_t)length : sizeof text - 1};
    send_frame(&part, 1, "error %zu", part.length);
    _exit(70);
}

uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t number(const char *text) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end) fail("init: not a number: %.40s", text);
    return value;
}

static void put(const char **list, int *count, int most, const char *value) {
    if (*count == most) fail("init: more than %d of one kind", most);
    list[(*count)++] = value;
}

/* One `key=value` of init's payload. The strings live as long as the supervisor. */
static void setting(char *item) {
    char *value = strchr(item, '=');
    if (!value) fail("init: no '=' in: %.40s", item);
    *value++ = '\0';
    if (!strcmp(item, "env")) {
        static size_t count;
        settings.environment = realloc(settings.environment, (count + 2) * sizeof(char *));
        if (!settings.environment) fail("out of memory");
        settings.environment[count++] = value;
        settings.environment[count] = NULL;
    } else if (!strcmp(item, "tmpfs")) put(settings.tmpfs, &settings.tmpfs_count, MAX_TMPFS, value);
    else if (!strcmp(item, "writable")) put(settings.writable, &settings.writable_count, MAX_TMPFS, value);
    else if (!strcmp(item, "share")) put(settings.shared, &settings.shared_count, MAX_SHARED, value);
    else if (!strcmp(item, "adopt")) put(settings.adopted, &settings.adopted_count, MAX_SHARED, value);
    else if (!strcmp(item, "cwd")) settings.cwd = value;
    else if (!strcmp(item, "noexec")) settings.noexec = number(value);
    else if (!strcmp(item, "readonly_proc")) settings.readonly_proc = number(value);
    else if (!strcmp(item, "fixed_code")) settings.fixed_code = number(value);
    else if (!strcmp(item, "uid")) settings.uid = (uid_t)number(value);
    else if (!strcmp(item, "memory")) settings.memory = number(value);
    else if (!strcmp(item, "file_bytes")) settings.file_bytes = number(value);
    else if (!strcmp(item, "pids")) settings.pids = number(value);
    else if (!strcmp(item, "nproc")) settings.nproc = number(value);
    else if (!strcmp(item, "cpu_us")) settings.cpu_us = number(value);
    else fail("init: unknown key: %.40s", item);
}

static void on_signal(int number) { (void)number; }

/* Children must find every signal at its default and unblocked, whatever the harness's parent had set. */
static void reset_signals(void) {
    for (int number = 1; number < _NSIG; number++) signal(number, SIG_DFL);
    /* Handlers, unlike SIG_IGN, are gone after exec. */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    /* SIGCHLD only comes while wait_for() waits, so that none is missed; children start with nothing blocked. */
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static const char *find_bash(void) {
    static const char *const places[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!access(places[i], X_OK)) return places[i];
    fail("there is no bash in the sandbox");
}

static void init(size_t length) {
    if (length > 1 << 20) fail("init: too long");
    char *payload = malloc(length + 1);
    if (!payload) fail("out of memory");
    read_payload(payload, length);
    payload[length] = '\0';
    for (char *item = payload, *next; item < payload + length; item = next) {
        next = item + strlen(item) + 1;
        setting(item);
    }
    if (!settings.cwd || !settings.environment) fail("init: no cwd or no environment");
    watch_open();
    arrange_mounts();
    confine();
    settings.bash = find_bash();
    char target[16];
    settings.script = readlink("/sandbox/command", target, sizeof target) > 0 ? "/sandbox/command" : "/dev/fd/3";
    settings.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    settings.scratch = open(settings.cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (settings.null < 0 || settings.scratch < 0 || fchdir(settings.scratch)) fail("%s: %s", settings.cwd, strerror(errno));
    umask(022);
    send_ready(shared_mounts, settings.shared_count);
}

/* The numbers of a header `name 1 2 3`: true if it has this name and exactly so many. */
static bool header_is(const char *line, const char *name, uint64_t *numbers, int count) {
    size_t length = strlen(name);
    if (strncmp(line, name, length)) return false;
    line += length;
    for (int i = 0; i < count; i++) {
        char *end;
        if (*line++ != ' ' || *line < '0' || *line > '9') return false;
        numbers[i] = strtoull(line, &end, 10);
        line = end;
    }
    return !*line;
}

int main(void) {
    char line[256];
    uint64_t n[4];
    if (getpid() != 1) fail("not the first process of a PID namespace"); /* we kill all that we may */
    reset_signals();
    read_header(line, sizeof line);
    if (!header_is(line, "init", n, 1)) fail("the first frame is not init");
    init(n[0]);
    for (;;) {
        read_header(line, sizeof line);
        if (header_is(line, "ping", n, 1)) {
            send_frame(NULL, 0, "pong %llu %llu", ULL(n[0]), ULL(tmpfs_use()));
            continue;
        }
        if (header_is(line, "say", n, 4)) {
            op_say(n[0], n[1], n[2], n[3]);
            continue;
        }
        session_end();
        if (header_is(line, "exec", n, 4)) op_exec(n[0], n[1], n[2], n[3]);
        else if (header_is(line, "start", n, 2)) op_start(n[0], n[1]);
        else if (header_is(line, "read", n, 4)) op_read(n[0], n[1], n[2], n[3]);
        else if (header_is(line, "write", n, 3)) op_write(n[0], n[1], n[2]);
        else if (header_is(line, "shell", n, 3)) op_shell(n[0], (unsigned)n[1], (unsigned)n[2]);
        else fail("unknown frame: %.40s", line);
    }
}
