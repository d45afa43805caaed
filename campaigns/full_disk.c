/* A disk that is full (or over its quota) after so many bytes below one folder, for campaigns/disks.py: LD_PRELOAD.
   FULL_FOLDER names the folder, FULL_BYTES how much it takes, FULL_ERRNO what is answered then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long left = -1;

static int watched(int fd) {
    const char *folder = getenv("FULL_FOLDER");
    char name[64], target[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = folder ? readlink(name, target, sizeof target - 1) : -1;
    if (n < 0) return 0;
    target[n] = 0;
    if (left < 0) left = atol(getenv("FULL_BYTES"));
    return strncmp(target, folder, strlen(folder)) == 0;
}

/* How much of a write gets through: what fits, as on a real disk; -1 with errno where nothing does. */
static ssize_t fits(int fd, size_t n) {
    if (!watched(fd)) return n;
    if (left == 0 && n > 0) {
        errno = atoi(getenv("FULL_ERRNO"));
        return -1;
    }
    return (size_t)left < n ? left : (ssize_t)n;
}

static ssize_t noted(int fd, ssize_t done) {
    if (done > 0 && watched(fd)) left -= done;
    return done;
}

ssize_t write(int fd, const void *data, size_t n) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    ssize_t some = fits(fd, n);
    return some < 0 ? -1 : noted(fd, real(fd, data, some));
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t some = fits(fd, n);
    return some < 0 ? -1 : noted(fd, real(fd, data, some, at));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }
