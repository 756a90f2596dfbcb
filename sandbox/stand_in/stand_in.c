/* A python3 that is no interpreter: it asks the harness to run the program in a twin of this sandbox, and relays.
 *
 * The twin has the same /scratch and /tmp. The program's standard streams are named pipes in a folder that we make
 * there, so that they stream, and a reader that leaves is noticed, as if the program ran here. The harness is reached
 * through a Unix socket in a mount; ../one_program.py, at its other end, says which protocol this is. When we end,
 * however we end, that socket is closed and the program ends too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HARNESS "/attempt/python"
#define FOLDER "/tmp/.python-XXXXXX"

extern char **environ;

static char folder[] = FOLDER;
static bool folder_made;
static pid_t feeder; /* the child that feeds the program's standard input */

static const char *in_folder(const char *name) {
    static char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static _Noreturn void end(int code) {
    if (feeder > 0) kill(feeder, SIGKILL);
    if (folder_made) {
        unlink(in_folder("in"));
        unlink(in_folder("out"));
        unlink(in_folder("err"));
        rmdir(folder);
    }
    _exit(code);
}

static _Noreturn void fail(const char *what) {
    dprintf(2, "python3: %s: %s\n", what, strerror(errno));
    end(126);
}

static bool write_all(int fd, const char *data, size_t length) {
    while (length) {
        ssize_t put = write(fd, data, length);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        data += put;
        length -= (size_t)put;
    }
    return true;
}

static int ask(void) {
    int harness = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = HARNESS};
    if (harness < 0 || connect(harness, (struct sockaddr *)&address, sizeof address)) fail("no Python can be asked for");
    return harness;
}

/* Strings, each ended by a NUL. */
static size_t length_of(char **strings) {
    size_t length = 0;
    for (; *strings; strings++) length += strlen(*strings) + 1;
    return length;
}

static void send_strings(int harness, char **strings) {
    for (; *strings; strings++)
        if (!write_all(harness, *strings, strlen(*strings) + 1)) fail("the request can't be sent");
}

static bool one_file(int a, int b) {
    struct stat one, other;
    return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* `run MERGED CWD ARGUMENTS ENVIRONMENT`, the last three as lengths of what follows. */
static void send_request(int harness, char **arguments, bool merged) {
    char cwd[PATH_MAX], header[128];
    if (!getcwd(cwd, sizeof cwd)) fail("the current folder");
    char *place[] = {cwd, NULL};
    int length = snprintf(header, sizeof header, "run %d %zu %zu %zu\n", merged, length_of(place), length_of(arguments),
                          length_of(environ));
    if (!write_all(harness, header, (size_t)length)) fail("the request can't be sent");
    send_strings(harness, place);
    send_strings(harness, arguments);
    send_strings(harness, environ);
}

/* A line of the harness's; ends us when there is none. */
static void read_line(int harness, char *line, size_t size) {
    for (size_t at = 0; at + 1 < size; at++) {
        ssize_t got;
        do got = read(harness, line + at, 1);
        while (got < 0 && errno == EINTR);
        if (got <= 0) {
            dprintf(2, "python3: ended\n");
            end(128 + SIGKILL);
        }
        if (line[at] == '\n') {
            line[at] = '\0';
            return;
        }
    }
    end(126);
}

/* `exit CODE LENGTH` and a text for standard error. */
static _Noreturn void finish(int harness, const char *line) {
    int code;
    size_t length;
    if (sscanf(line, "exit %d %zu", &code, &length) != 2) end(126);
    char text[4096];
    while (length) {
        ssize_t got = read(harness, text, length < sizeof text ? length : sizeof text);
        if (got <= 0) break;
        write_all(2, text, (size_t)got);
        length -= (size_t)got;
    }
    end(code);
}

static void make_pipes(bool merged) {
    if (!mkdtemp(folder)) fail("/tmp");
    folder_made = true;
    if (mkfifo(in_folder("in"), 0600) || mkfifo(in_folder("out"), 0600) || (!merged && mkfifo(in_folder("err"), 0600)))
        fail("/tmp");
}

static void feed(void) {
    feeder = fork();
    if (feeder < 0) fail("fork");
    if (feeder) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    for (int fd = 1; fd < 16; fd++) close(fd); /* who waits for one of these to be closed waits for our parent alone */
    int program = open(in_folder("in"), O_WRONLY); /* waits for the program to open it too */
    char data[1 << 16];
    ssize_t got;
    while (program >= 0 && ((got = read(0, data, sizeof data)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0 && !write_all(program, data, (size_t)got)) break; /* or SIGPIPE: it doesn't read any more */
    _exit(0);
}

/* Some of what the program wrote, to where it belongs; false at its end, or when nobody reads it here any more. */
static bool relay(int program, int to) {
    char data[1 << 16];
    ssize_t got = read(program, data, sizeof data);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    return got > 0 && write_all(to, data, (size_t)got);
}

int main(int count, char **arguments) {
    (void)count;
    prctl(PR_SET_DUMPABLE, 0); /* our memory is nobody's */
    signal(SIGPIPE, SIG_IGN);
    bool merged = one_file(1, 2);
    int harness = ask();
    send_request(harness, arguments + 1, merged);
    char line[64];
    read_line(harness, line, sizeof line);
    if (strcmp(line, "make")) finish(harness, line);

    make_pipes(merged);
    struct pollfd watched[3] = {
        {.fd = open(in_folder("out"), O_RDONLY | O_NONBLOCK | O_CLOEXEC), .events = POLLIN},
        {.fd = merged ? -1 : open(in_folder("err"), O_RDONLY | O_NONBLOCK | O_CLOEXEC), .events = POLLIN},
        {.fd = harness, .events = POLLIN},
    };
    if (watched[0].fd < 0 || (!merged && watched[1].fd < 0)) fail("/tmp");
    feed();
    if (dprintf(harness, "made %s\n", folder) < 0) fail("the request can't be sent");
    bool over = false; /* the harness has said how it ended: what is left in the pipes is all */
    while (!over || watched[0].fd >= 0 || watched[1].fd >= 0) {
        if (poll(watched, over ? 2 : 3, over ? 0 : -1) < 0 && errno != EINTR) fail("poll");
        for (int i = 0; i < 2; i++) {
            if (watched[i].fd < 0 || (!watched[i].revents && !over)) continue;
            if (relay(watched[i].fd, i + 1) && !(over && !watched[i].revents)) continue;
            close(watched[i].fd);
            watched[i].fd = -1;
        }
        if (!over && watched[2].revents) {
            read_line(harness, line, sizeof line);
            over = true;
        }
    }
    finish(harness, line);
}
