/* Waiting for processes and ending them. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

void reap(struct usage *usage) {
    int status;
    struct rusage used;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        usage->cpu_us += (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
                         (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        uint64_t rss = (uint64_t)used.ru_maxrss * 1024u;
        if (rss > usage->max_rss) usage->max_rss = rss;
        if (pid == usage->leader) {
            usage->leader_done = true;
            usage->leader_status = status;
        }
    }
    usage->none_left = pid < 0 && errno == ECHILD;
}

struct readable wait_for(int one, int other, uint64_t until_us) {
    struct pollfd watched[] = {{.fd = 0, .events = POLLIN}, {.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    uint64_t now = now_us();
    uint64_t left = until_us > now ? until_us - now : 0;
    struct timespec timeout = {(time_t)(left / 1000000u), (long)(left % 1000000u) * 1000};
    sigset_t nothing_blocked;
    sigemptyset(&nothing_blocked);
    if (ppoll(watched, 3, &timeout, &nothing_blocked) <= 0) return (struct readable){false, false};
    if (watched[0].revents) harness_spoke();
    return (struct readable){watched[1].revents != 0, watched[2].revents != 0};
}

void end_everything(struct usage *usage, void (*meanwhile)(void *), void *argument) {
    for (reap(usage); !usage->none_left; reap(usage)) {
        kill(-1, SIGKILL);
        wait_for(-1, -1, now_us() + 50000);
        meanwhile(argument);
    }
}
