/* What tests/run loads before all programs (LD_PRELOAD): POCL's library of built-in functions is opened as the small
 * copy that builtins.py made of it, if there is one. And what POCL writes to its cache is not waited for until it lies
 * on the disk: the cache of the tests need not outlive a crash of the machine. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATH_LENGTH = 4096 };

typedef int (*open_function)(const char *path, int flags, ...);
typedef int (*sync_function)(int file);

static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static bool copy_of(const char *path, char *copy)
{
    const char *name = strrchr(path, '/');
    return name && strstr(path, "/share/pocl/kernel-") &&
        snprintf(copy, PATH_LENGTH, "%s%s", COPIES, name) < PATH_LENGTH;
}

static int open_by(open_function next, const char *path, int flags, mode_t mode)
{
    char copy[PATH_LENGTH];
    if ((flags & O_ACCMODE) == O_RDONLY && copy_of(path, copy)) {
        const int file = next(copy, flags);
        if (file >= 0) return file;
    }
    return next(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return open_by((open_function)next_of("open"), path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return open_by((open_function)next_of("open64"), path, flags, mode);
}

static bool in_cache(int file)
{
    const char *cache = getenv("POCL_CACHE_DIR");
    char link[64], path[PATH_LENGTH];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    const ssize_t length = cache && *cache ? readlink(link, path, sizeof(path)) : -1;
    return length >= (ssize_t)strlen(cache ? cache : "") && !strncmp(path, cache, strlen(cache));
}

int fsync(int file)
{
    return in_cache(file) ? 0 : ((sync_function)next_of("fsync"))(file);
}

int fdatasync(int file)
{
    return in_cache(file) ? 0 : ((sync_function)next_of("fdatasync"))(file);
}
