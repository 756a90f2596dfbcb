/* The protocol's bytes on descriptors 0 and 1. When the harness is gone there is nothing to live for. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char input[1 << 16];
static size_t input_start, input_end;

size_t input_pending(void) { return input_end - input_start; }

/* More bytes into the buffer; ends the supervisor when there are none to come. */
static void fill(void) {
    if (input_start) {
        memmove(input, input + input_start, input_pending());
        input_end -= input_start;
        input_start = 0;
    }
    if (input_end == sizeof input) fail("the harness sent more than it may");
    ssize_t got;
    do got = read(0, input + input_end, sizeof input - input_end);
    while (got < 0 && errno == EINTR);
    if (got <= 0) _exit(0);
    input_end += (size_t)got;
}

void harness_spoke(void) { fill(); }

void read_header(char *line, size_t size) {
    for (;;) {
        char *end = memchr(input + input_start, '\n', input_pending());
        if (end) {
            size_t length = (size_t)(end - (input + input_start));
            if (length >= size) fail("a header is too long");
            memcpy(line, input + input_start, length);
            line[length] = '\0';
            input_start += length + 1;
            return;
        }
        if (input_pending() >= size) fail("a header is too long");
        fill();
    }
}

void read_payload(void *to, size_t length) {
    while (length) {
        if (!input_pending()) fill();
        size_t part = input_pending() < length ? input_pending() : length;
        memcpy(to, input + input_start, part);
        input_start += part;
        to = (char *)to + part;
        length -= part;
    }
}

int read_payload_memfd(size_t length) {
    int fd = memfd_create("command", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) fail("memfd_create: %s", strerror(errno));
    while (length) {
        if (!input_pending()) fill();
        size_t part = input_pending() < length ? input_pending() : length;
        ssize_t put = write(fd, input + input_start, part);
        if (put <= 0) fail("memfd: %s", strerror(errno));
        input_start += (size_t)put;
        length -= (size_t)put;
    }
    return fd;
}

static void write_all(struct iovec *parts, int count) {
    while (count) {
        ssize_t put = writev(1, parts, count);
        if (put < 0) {
            if (errno == EINTR) continue;
            _exit(0);
        }
        for (; count && (size_t)put >= parts->iov_len; parts++, count--) put -= (ssize_t)parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + put;
            parts->iov_len -= (size_t)put;
        }
    }
}

void send_frame(const struct bytes *payload, int count, const char *format, ...) {
    char header[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(header, sizeof header - 1, format, arguments);
    va_end(arguments);
    header[length++] = '\n';
    struct iovec parts[4] = {{header, (size_t)length}};
    for (int i = 0; i < count; i++) parts[i + 1] = (struct iovec){(void *)payload[i].at, payload[i].length};
    write_all(parts, count + 1);
}

/* The first frame. The descriptors, if any, go with it: then the harness's end is a socket. Ours are closed. */
void send_ready(const int *descriptors, int count) {
    if (!count) {
        send_frame(NULL, 0, "ready %d", PROTOCOL_VERSION);
        return;
    }
    char line[32], control[CMSG_SPACE(MAX_SHARED * sizeof(int))] = {0};
    struct iovec part = {line, (size_t)snprintf(line, sizeof line, "ready %d\n", PROTOCOL_VERSION)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, (size_t)count * sizeof(int));
    if (sendmsg(1, &message, 0) != (ssize_t)part.iov_len) fail("can't hand over mounts: %s", strerror(errno));
    for (int i = 0; i < count; i++) close(descriptors[i]);
}

void send_memfd(int fd, off_t offset, size_t length) {
    char buffer[1 << 16];
    while (length) {
        ssize_t got = pread(fd, buffer, length < sizeof buffer ? length : sizeof buffer, offset);
        if (got <= 0) _exit(70); /* the header promised it: the frame can't be ended */
        struct iovec part = {buffer, (size_t)got};
        write_all(&part, 1);
        offset += got;
        length -= (size_t)got;
    }
}
