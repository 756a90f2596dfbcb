/* read and write: each in a forked child, so that a path planted by the agent (/proc/self/mem through a link) leads to
 * the child and never to us, and a file system that hangs ends with the child. Nothing of the agent's runs meanwhile. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_US 20000000u

/* What a child hands back. */
struct outcome {
    char error[256]; /* empty: it worked */
    uint64_t size;   /* read: of the whole file */
    uint64_t length; /* read: of the data in the memfd */
};

static _Noreturn void give_up(struct outcome *outcome, const char *text) {
    snprintf(outcome->error, sizeof outcome->error, "%s", text);
    _exit(1);
}

static void read_file(struct outcome *outcome, const char *path, int data, uint64_t offset, uint64_t limit) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) give_up(outcome, strerror(errno));
    struct stat file;
    if (fstat(fd, &file)) give_up(outcome, strerror(errno));
    if (S_ISDIR(file.st_mode)) give_up(outcome, "Is a directory");
    if (!S_ISREG(file.st_mode)) give_up(outcome, "Not a regular file");
    if (offset > INT64_MAX) offset = INT64_MAX;
    char buffer[1 << 16];
    while (outcome->length < limit) {
        size_t part = limit - outcome->length < sizeof buffer ? limit - outcome->length : sizeof buffer;
        ssize_t got = pread(fd, buffer, part, (off_t)(offset + outcome->length));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) give_up(outcome, strerror(errno));
        if (!got) break;
        if (write(data, buffer, (size_t)got) != got) give_up(outcome, strerror(errno));
        outcome->length += (uint64_t)got;
    }
    outcome->size = (uint64_t)file.st_size;
    if (outcome->length && outcome->size < offset + outcome->length) outcome->size = offset + outcome->length;
}

static void write_file(struct outcome *outcome, char *path, int data) {
    char *slash = strrchr(path, '/');
    for (char *at = path + 1; slash && at <= slash; at++) {
        if (*at != '/') continue;
        *at = '\0';
        if (mkdir(path, 0755) && errno != EEXIST) give_up(outcome, strerror(errno));
        *at = '/';
    }
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) give_up(outcome, "Is a directory");
    if (slash) {
        *slash = '\0';
        if (chdir(slash == path ? "/" : path)) give_up(outcome, strerror(errno));
    }
    struct stat old;
    if (!lstat(name, &old) && S_ISDIR(old.st_mode)) give_up(outcome, "Is a directory");
    const char *fresh = ".kgshell-write";
    unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) give_up(outcome, strerror(errno));
    char buffer[1 << 16];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(data, buffer, sizeof buffer, at)) > 0) {
        ssize_t put = write(fd, buffer, (size_t)got);
        if (put < 0) {
            int error = errno;
            unlink(fresh);
            give_up(outcome, strerror(error));
        }
        at += put;
    }
    if (rename(fresh, name)) {
        int error = errno;
        unlink(fresh);
        give_up(outcome, strerror(error));
    }
}

static void no_meanwhile(void *argument) { (void)argument; }

/* Waits for the child and says how it went: true if it worked, else the reason was sent. */
static bool worked(uint64_t seq, pid_t pid, struct outcome *outcome) {
    if (pid < 0) fail("fork: %s", strerror(errno));
    struct usage usage = {.leader = pid};
    uint64_t deadline = now_us() + DEADLINE_US;
    for (reap(&usage); !usage.leader_done && now_us() < deadline; reap(&usage)) wait_for(-1, -1, deadline);
    bool late = !usage.leader_done;
    end_everything(&usage, no_meanwhile, NULL);
    if (late) snprintf(outcome->error, sizeof outcome->error, "Timed out");
    else if (usage.leader_status && !outcome->error[0]) snprintf(outcome->error, sizeof outcome->error, "Killed");
    if (!outcome->error[0]) return true;
    struct bytes text = {outcome->error, strlen(outcome->error)};
    send_frame(&text, 1, "failed %llu %zu", ULL(seq), text.length);
    return false;
}

static struct outcome *shared(void) {
    static struct outcome *outcome;
    if (!outcome) {
        outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (outcome == MAP_FAILED) fail("mmap: %s", strerror(errno));
    }
    memset(outcome, 0, sizeof *outcome);
    return outcome;
}

static char *read_path(uint64_t length) {
    static char path[PATH_MAX];
    if (length >= sizeof path) fail("a path is too long");
    read_payload(path, length);
    path[length] = '\0';
    return path;
}

/* In the child: nothing of the protocol is left to reach through /proc/self/fd. */
static void drop_protocol(void) {
    dup2(settings.null, 0);
    dup2(settings.null, 1);
    dup2(settings.null, 2);
}

void op_read(uint64_t seq, uint64_t offset, uint64_t limit, uint64_t path_length) {
    if (limit > MAX_TRANSFER) fail("read: more than %u bytes", MAX_TRANSFER);
    const char *path = read_path(path_length);
    struct outcome *outcome = shared();
    int data = memfd_create("read", MFD_CLOEXEC);
    if (data < 0) fail("memfd_create: %s", strerror(errno));
    pid_t pid = fork();
    if (!pid) {
        drop_protocol();
        read_file(outcome, path, data, offset, limit);
        _exit(0);
    }
    if (worked(seq, pid, outcome)) {
        send_frame(NULL, 0, "data %llu %llu %llu", ULL(seq), ULL(outcome->size), ULL(outcome->length));
        send_memfd(data, 0, outcome->length);
    }
    close(data);
}

void op_write(uint64_t seq, uint64_t path_length, uint64_t length) {
    if (length > MAX_TRANSFER) fail("write: more than %u bytes", MAX_TRANSFER);
    char *path = read_path(path_length);
    int data = read_payload_memfd(length);
    struct outcome *outcome = shared();
    pid_t pid = fork();
    if (!pid) {
        drop_protocol();
        write_file(outcome, path, data);
        _exit(0);
    }
    if (worked(seq, pid, outcome)) send_frame(NULL, 0, "ok %llu", ULL(seq));
    close(data);
}
