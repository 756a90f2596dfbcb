/* What a command prints: counted, the first and the last of it kept, and all of it spilled once it exceeds the cap.
 *
 * The spill is an unnamed file until the call is over and nothing of the agent's is alive: nobody can have it replaced
 * by a link, moved away or written to in the meantime. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "outputs"
#define LAST_NAME 99999

static char chunk[1 << 20];

void output_start(struct output *output, size_t cap) {
    *output = (struct output){.cap = cap, .head = cap, .spill = -1};
    output->kept = malloc(cap ? cap : 1);
    if (!output->kept) fail("out of memory for %zu bytes of output", cap);
}

void output_free(struct output *output) {
    free(output->kept);
    if (output->spill >= 0) close(output->spill);
}

/* Eight bytes at a time: a byte of `word` is a newline where the same byte of `word ^ newlines` is zero. */
static uint64_t count_newlines(const char *text, size_t length) {
    const uint64_t newlines = 0x0a0a0a0a0a0a0a0aULL, low = 0x7f7f7f7f7f7f7f7fULL;
    uint64_t count = 0;
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        word ^= newlines;
        uint64_t not_zero = (((word & low) + low) | word) & ~low;
        count += (uint64_t)(8 - __builtin_popcountll(not_zero));
    }
    for (; length; text++, length--) count += *text == '\n';
    return count;
}

static void spill(struct output *output, const char *text, size_t length) {
    while (length && !output->full) {
        ssize_t put = write(output->spill, text, length);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            output->full = true;
            return;
        }
        output->spilled += (uint64_t)put;
        text += put;
        length -= (size_t)put;
    }
}

static void ring_put(struct output *output, const char *text, size_t length) {
    size_t size = output->cap - output->head;
    if (length > size) { /* only the last of it stays */
        text += length - size;
        length = size;
    }
    char *ring = output->kept + output->head;
    while (length) {
        size_t part = size - output->ring_at < length ? size - output->ring_at : length;
        memcpy(ring + output->ring_at, text, part);
        output->ring_at = (output->ring_at + part) % size;
        text += part;
        length -= part;
    }
}

static void take(struct output *output, const char *text, size_t length) {
    output->newlines += count_newlines(text, length);
    output->last = text[length - 1];
    if (output->total < output->cap) {
        size_t room = output->cap - (size_t)output->total, part = room < length ? room : length;
        memcpy(output->kept + output->total, text, part);
        output->total += part;
        text += part;
        length -= part;
    }
    if (!length) return;
    if (output->total == output->cap) { /* the first byte too many: what lies behind the head becomes the ring */
        output->head = output->cap / 2;
        fchmod(settings.scratch, 01777); /* where it is the command's own, that may have closed it to itself and us */
        output->spill = openat(settings.scratch, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
        output->full = output->spill < 0;
        spill(output, output->kept, output->cap);
    }
    output->total += length;
    spill(output, text, length);
    ring_put(output, text, length);
}

bool output_read(struct output *output, int pipe) {
    ssize_t got;
    do got = read(pipe, chunk, sizeof chunk);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    take(output, chunk, (size_t)got);
    return true;
}

uint64_t output_lines(const struct output *output) {
    return output->newlines + (output->total && output->last != '\n');
}

int output_parts(const struct output *output, struct bytes parts[3]) {
    if (output->total <= output->cap) {
        parts[0] = (struct bytes){output->kept, (size_t)output->total};
        return 1;
    }
    const char *ring = output->kept + output->head;
    parts[0] = (struct bytes){output->kept, output->head};
    parts[1] = (struct bytes){ring + output->ring_at, output->cap - output->head - output->ring_at};
    parts[2] = (struct bytes){ring, output->ring_at};
    return 3;
}

/* The folder for spills as a descriptor: a real one, whatever the agent put in its place is moved aside. */
static int spill_folder(void) {
    for (unsigned aside = 0; aside < 1000; aside++) {
        int folder = openat(settings.scratch, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder >= 0) {
            fchmod(folder, 0755);
            return folder;
        }
        if (errno == ENOENT && !mkdirat(settings.scratch, FOLDER, 0755)) continue;
        if (errno == EACCES && !fchmodat(settings.scratch, FOLDER, 0755, 0)) continue;
        char name[32];
        snprintf(name, sizeof name, FOLDER ".%u", aside);
        struct stat taken;
        if (fstatat(settings.scratch, name, &taken, AT_SYMLINK_NOFOLLOW)) renameat(settings.scratch, FOLDER, settings.scratch, name);
    }
    return -1;
}

unsigned output_name(struct output *output) {
    static unsigned last;
    if (output->spill < 0) return 0;
    fchmod(settings.scratch, 01777);
    int folder = spill_folder();
    char from[32], name[32];
    snprintf(from, sizeof from, "/proc/self/fd/%d", output->spill);
    unsigned found = 0;
    for (unsigned number = last + 1; folder >= 0 && number <= LAST_NAME; number++) {
        snprintf(name, sizeof name, "%03u.txt", number);
        if (!linkat(AT_FDCWD, from, folder, name, AT_SYMLINK_FOLLOW)) {
            found = last = number;
            break;
        }
        if (errno != EEXIST) break;
    }
    if (folder >= 0) close(folder);
    if (!found) {
        output->full = true;
        output->spilled = 0;
    }
    return found;
}
