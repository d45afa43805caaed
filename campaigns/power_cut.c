/* A record of everything that is written below one folder, for campaigns/power.py: LD_PRELOAD.
   POWER_FOLDER names the folder, POWER_LOG the file of the record. An entry: 32 bytes (kind, file, offset, length), then
   so many bytes. Kinds: w write, t cut to a length (offset), s fsync of a file, d fsync of a folder, c new name, r new
   name of a file that had another (the old one, a zero byte, the new one), u a name that goes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int log_file = -2;

static void put(char kind, uint64_t file, int64_t offset, const void *data, uint64_t length) {
    uint64_t head[4] = {(uint64_t)kind, file, (uint64_t)offset, length};
    struct iovec parts[2] = {{head, sizeof head}, {(void *)data, length}};
    if (log_file == -2) log_file = syscall(SYS_openat, AT_FDCWD, getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log_file >= 0) syscall(SYS_writev, log_file, parts, 2);
}

static int below(const char *path) {
    const char *folder = getenv("POWER_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

/* The path behind a descriptor, where it is below the folder. */
static const char *watched(int fd, char *target) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = getenv("POWER_FOLDER") ? syscall(SYS_readlinkat, AT_FDCWD, name, target, 4095) : -1;
    if (n < 0) return NULL;
    target[n] = 0;
    return below(target) ? target : NULL;
}

static uint64_t inode(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_ino;
}

static uint64_t inode_of(const char *path) {
    struct stat found;
    return lstat(path, &found) ? 0 : found.st_ino;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    int there = syscall(SYS_faccessat, folder, path, F_OK) == 0;
    int fd = syscall(SYS_openat, folder, path, flags, mode);
    char target[4096];
    if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) && watched(fd, target)) {
        if (!there) put('c', inode(fd), 0, target, strlen(target));
        else if (flags & O_TRUNC) put('t', inode(fd), 0, "", 0);
    }
    return fd;
}

#define OPEN(NAME)                                                                                                   \
    int NAME(const char *path, int flags, ...) {                                                                     \
        va_list rest;                                                                                                \
        va_start(rest, flags);                                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                \
        return opened(AT_FDCWD, path, flags, mode);                                                                  \
    }
#define OPENAT(NAME)                                                                                                 \
    int NAME(int folder, const char *path, int flags, ...) {                                                         \
        va_list rest;                                                                                                \
        va_start(rest, flags);                                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                \
        return opened(folder, path, flags, mode);                                                                    \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t n) {
    char target[4096];
    ssize_t done = syscall(SYS_write, fd, data, n);
    if (done > 0 && watched(fd, target)) put('w', inode(fd), lseek(fd, 0, SEEK_CUR) - done, data, done);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    char target[4096];
    ssize_t done = syscall(SYS_pwrite64, fd, data, n, at);
    if (done > 0 && watched(fd, target)) put('w', inode(fd), at, data, done);
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }

int ftruncate64(int fd, off64_t length) {
    char target[4096];
    int done = syscall(SYS_ftruncate, fd, length);
    if (!done && watched(fd, target)) put('t', inode(fd), length, "", 0);
    return done;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fsync(int fd) {
    char target[4096];
    struct stat found;
    int done = syscall(SYS_fsync, fd);
    if (!done && watched(fd, target) && !fstat(fd, &found))
        put(S_ISDIR(found.st_mode) ? 'd' : 's', found.st_ino, 0, target, strlen(target));
    return done;
}
int fdatasync(int fd) { return fsync(fd); }

int rename(const char *from, const char *to) {
    int done = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (!done && below(to)) {
        char both[8192];
        size_t n = strlen(from) + 1;
        memcpy(both, from, n);
        strcpy(both + n, to);
        put('r', inode_of(to), 0, both, n + strlen(to));
    }
    return done;
}

int unlink(const char *path) {
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!done && below(path)) put('u', 0, 0, path, strlen(path));
    return done;
}
