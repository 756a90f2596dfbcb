/* What the supervisor does with mounts, before it gives up the right to: bubblewrap can't do it, and Docker's sandboxes
 * don't need it.
 *
 * Root's supervisor has the right. An ordinary user's takes it in a user and a mount namespace of its own, in which
 * the mounts can be made narrower but not wider. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TREE 428
#define MOVE_MOUNT 429
#define CLONE_TREE 1      /* open_tree: a copy of the mount that is attached nowhere */
#define FROM_DESCRIPTOR 4 /* move_mount: the source is a descriptor, its path empty */

int shared_mounts[MAX_SHARED];

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) fail("mounts: %s: %s", path, strerror(errno));
    close(fd);
}

static void take_the_right(void) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) fail("mounts: no user namespace of its own: %s", strerror(errno));
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", users);
    write_file("/proc/self/gid_map", groups);
}

static void adopt(const char *item) {
    char *path;
    int mount = (int)strtol(item, &path, 10);
    if (*path++ != ':') fail("init: no descriptor and path: %.40s", item);
    if (syscall(MOVE_MOUNT, mount, "", AT_FDCWD, path, FROM_DESCRIPTOR)) fail("mounts: can't show %s: %s", path, strerror(errno));
    close(mount);
}

static int share(const char *path) {
    long mount = syscall(OPEN_TREE, AT_FDCWD, path, CLONE_TREE | O_CLOEXEC);
    if (mount < 0) fail("mounts: can't share %s: %s", path, strerror(errno));
    return (int)mount;
}

static unsigned long flags_of(const char *path) {
    struct statvfs fs;
    if (statvfs(path, &fs)) fail("mounts: %s: %s", path, strerror(errno));
    return fs.f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

static void narrow(const char *path, unsigned long more) {
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags_of(path) | more, NULL))
        fail("mounts: can't narrow %s: %s", path, strerror(errno));
}

static bool all_noexec(void) {
    for (int i = 0; i < settings.writable_count; i++)
        if (!(flags_of(settings.writable[i]) & MS_NOEXEC)) return false;
    return true;
}

void arrange_mounts(void) {
    int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    settings.proc = fcntl(proc, F_DUPFD_CLOEXEC, 16); /* none that a child gives another meaning before it execs */
    if (settings.proc < 0) fail("mounts: /proc: %s", strerror(errno));
    close(proc);
    bool narrowing = settings.noexec && !all_noexec();
    if (!settings.shared_count && !settings.adopted_count && !settings.readonly_proc && !narrowing) return;
    if (!settings.uid) take_the_right();
    for (int i = 0; i < settings.adopted_count; i++) adopt(settings.adopted[i]);
    for (int i = 0; i < settings.shared_count; i++) shared_mounts[i] = share(settings.shared[i]);
    for (int i = 0; settings.noexec && i < settings.writable_count; i++) narrow(settings.writable[i], MS_NOEXEC);
    if (settings.readonly_proc) {
        /* Over the one that can be written to, which only we can reach: through settings.proc. */
        if (mount("/proc", "/proc", NULL, MS_BIND | MS_REC, NULL)) fail("mounts: /proc: %s", strerror(errno));
        narrow("/proc", MS_RDONLY);
    }
}
