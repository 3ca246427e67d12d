/* Preloaded into a process: fails chosen system calls on paths below one folder, fills its disk, and moves its clock.

   LAB_FOLDER  the folder; calls on other paths are left alone
   LAB_FAULTS  "call:first:times:errno,…": from the first-th such call on, so many times; errno -1 does half of it (a short write or read)
   LAB_BYTES   so many bytes may be written in all; then ENOSPC, until the file LAB_ROOM exists
   LAB_CLOCK   a file of one signed 64-bit number: microseconds added to the time of day
   LAB_REPORT  a file to which each injected fault is appended, as "call errno path"
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, FSYNC, FDATASYNC, RENAME, UNLINK, FTRUNCATE, MMAP, MKDIR, CALLS };
static const char *NAMES[CALLS] = {"open", "read", "write", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "mmap", "mkdir"};

#define MOST_RULES 32
struct rule { int call; long first, times; int error; };
static struct rule rules[MOST_RULES];
static int rule_count;
static atomic_long counts[CALLS];
static char folder[PATH_MAX];
static size_t folder_length;
static const char *room;
static atomic_long bytes_left = -1;
static int has_limit, report = -1;
static volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    const char *said = getenv("LAB_FOLDER");
    if (said) { strncpy(folder, said, sizeof folder - 1); folder_length = strlen(folder); }
    if ((said = getenv("LAB_FAULTS"))) {
        char *copy = strdup(said), *rest = copy, *part;
        while ((part = strsep(&rest, ",")) && rule_count < MOST_RULES) {
            char name[32]; long first, times; int error;
            if (sscanf(part, "%31[a-z]:%ld:%ld:%d", name, &first, &times, &error) != 4) continue;
            for (int call = 0; call < CALLS; call++)
                if (!strcmp(name, NAMES[call])) rules[rule_count++] = (struct rule){call, first, times, error};
        }
        free(copy);
    }
    if ((said = getenv("LAB_BYTES"))) { has_limit = 1; bytes_left = atol(said); }
    room = getenv("LAB_ROOM");
    if ((said = getenv("LAB_REPORT"))) report = syscall(SYS_openat, AT_FDCWD, said, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if ((said = getenv("LAB_CLOCK"))) {
        int fd = syscall(SYS_openat, AT_FDCWD, said, O_RDONLY | O_CLOEXEC, 0);
        if (fd >= 0) {
            void *at = (void *)syscall(SYS_mmap, NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
            if (at != MAP_FAILED) shift = at;
            syscall(SYS_close, fd);
        }
    }
}

static int below(const char *path) {
    return folder_length && path && !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static const char *name_of(int fd, char *buffer) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
    if (length <= 0) return NULL;
    buffer[length] = 0;
    return buffer;
}

static const char *name_at(int dir, const char *path, char *buffer) {
    if (!path || path[0] == '/' || dir == AT_FDCWD) return path;
    if (!name_of(dir, buffer)) return NULL;
    size_t length = strlen(buffer);
    snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    return buffer;
}

static void tell(int call, int error, const char *path) {
    if (report < 0) return;
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s %d %s\n", NAMES[call], error, path);
    syscall(SYS_write, report, line, length);
}

/* 0, the errno to fail with, or -1 for half of it. Counts the call. */
static int verdict(int call, const char *path) {
    if (!below(path)) return 0;
    long number = atomic_fetch_add(&counts[call], 1) + 1;
    for (int i = 0; i < rule_count; i++)
        if (rules[i].call == call && number >= rules[i].first && number < rules[i].first + rules[i].times) {
            tell(call, rules[i].error, path);
            return rules[i].error;
        }
    return 0;
}

static int verdict_fd(int call, int fd) {
    if (!rule_count || fd < 0) return 0;
    int before = errno;
    char buffer[PATH_MAX];
    const char *path = name_of(fd, buffer);
    errno = before;
    return path ? verdict(call, path) : 0;
}

static int has_room(void) {
    int before = errno;
    int found = room && !syscall(SYS_faccessat, AT_FDCWD, room, F_OK);
    errno = before;
    return found;
}

/* How many of so many bytes the disk takes. */
static size_t taken(int fd, size_t size) {
    char buffer[PATH_MAX];
    if (!has_limit || !size || has_room() || !below(name_of(fd, buffer))) return size;
    long left = atomic_fetch_sub(&bytes_left, (long)size);
    if (left >= (long)size) return size;
    tell(WRITE, ENOSPC, buffer);
    return left > 0 ? (size_t)left : 0;
}

#define REAL(name) static typeof(name) *real; if (!real) real = (typeof(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL(error) do { errno = (error); return -1; } while (0)

static int failed_open(int dir, const char *path, int flags) {
    if (!folder_length) return 0;
    char buffer[PATH_MAX];
    const char *name = name_at(dir, path, buffer);
    int error = verdict(OPEN, name);
    if (!error && has_limit && (flags & O_CREAT) && below(name) && atomic_load(&bytes_left) <= 0 && !has_room()
        && syscall(SYS_faccessat, AT_FDCWD, name, F_OK)) {
        tell(OPEN, ENOSPC, name);
        error = ENOSPC;
    }
    return error > 0 ? error : 0;
}

#define OPENING(name, signature, dir, path, ...)                                                     \
    int name signature {                                                                             \
        mode_t mode = 0;                                                                             \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
        int error = failed_open(dir, path, flags);                                                   \
        if (error) FAIL(error);                                                                      \
        REAL(name);                                                                                  \
        return real(__VA_ARGS__, flags, mode);                                                       \
    }
OPENING(open, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPENING(open64, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPENING(openat, (int dir, const char *path, int flags, ...), dir, path, dir, path)
OPENING(openat64, (int dir, const char *path, int flags, ...), dir, path, dir, path)

#define READING(name, signature, ...)                        \
    ssize_t name signature {                                 \
        REAL(name);                                          \
        int error = verdict_fd(READ, fd);                    \
        if (error > 0) FAIL(error);                          \
        if (error < 0 && size > 1) size /= 2;                \
        return real(__VA_ARGS__);                            \
    }
READING(read, (int fd, void *data, size_t size), fd, data, size)
READING(pread, (int fd, void *data, size_t size, off_t at), fd, data, size, at)
READING(pread64, (int fd, void *data, size_t size, off64_t at), fd, data, size, at)

#define WRITING(name, signature, ...)                        \
    ssize_t name signature {                                 \
        REAL(name);                                          \
        int error = verdict_fd(WRITE, fd);                   \
        if (error > 0) FAIL(error);                          \
        if (error < 0 && size > 1) size /= 2;                \
        size_t some = taken(fd, size);                       \
        if (size && !some) FAIL(ENOSPC);                     \
        size = some;                                         \
        return real(__VA_ARGS__);                            \
    }
WRITING(write, (int fd, const void *data, size_t size), fd, data, size)
WRITING(pwrite, (int fd, const void *data, size_t size, off_t at), fd, data, size, at)
WRITING(pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, data, size, at)

#define BY_FD(call, name, signature, ...)                    \
    int name signature {                                     \
        REAL(name);                                          \
        int error = verdict_fd(call, fd);                    \
        if (error > 0) FAIL(error);                          \
        return real(__VA_ARGS__);                            \
    }
BY_FD(FSYNC, fsync, (int fd), fd)
BY_FD(FDATASYNC, fdatasync, (int fd), fd)
BY_FD(FTRUNCATE, ftruncate, (int fd, off_t size), fd, size)
BY_FD(FTRUNCATE, ftruncate64, (int fd, off64_t size), fd, size)

#define BY_PATH(call, name, signature, dir, path, ...)       \
    int name signature {                                     \
        REAL(name);                                          \
        char buffer[PATH_MAX];                               \
        int error = folder_length ? verdict(call, name_at(dir, path, buffer)) : 0; \
        if (error > 0) FAIL(error);                          \
        return real(__VA_ARGS__);                            \
    }
BY_PATH(RENAME, rename, (const char *old, const char *new), AT_FDCWD, old, old, new)
BY_PATH(RENAME, renameat, (int dir, const char *old, int to, const char *new), dir, old, dir, old, to, new)
BY_PATH(UNLINK, unlink, (const char *path), AT_FDCWD, path, path)
BY_PATH(UNLINK, unlinkat, (int dir, const char *path, int flags), dir, path, dir, path, flags)
BY_PATH(FTRUNCATE, truncate, (const char *path, off_t size), AT_FDCWD, path, path, size)
BY_PATH(FTRUNCATE, truncate64, (const char *path, off64_t size), AT_FDCWD, path, path, size)
BY_PATH(MKDIR, mkdir, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)

#define MAPPING(name, offset_type)                                                                   \
    void *name(void *at, size_t size, int protection, int flags, int fd, offset_type offset) {       \
        int error = (flags & MAP_ANONYMOUS) ? 0 : verdict_fd(MMAP, fd);                              \
        if (error > 0) { errno = error; return MAP_FAILED; }                                         \
        return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);                   \
    }
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

int clock_gettime(clockid_t which, struct timespec *now) {
    REAL(clock_gettime);
    int found = real(which, now);
    if (!found && shift && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t micros = *shift, whole = micros / 1000000, rest = micros % 1000000;
        now->tv_sec += whole;
        now->tv_nsec += rest * 1000;
        if (now->tv_nsec >= 1000000000) { now->tv_nsec -= 1000000000; now->tv_sec++; }
        if (now->tv_nsec < 0) { now->tv_nsec += 1000000000; now->tv_sec--; }
    }
    return found;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}
