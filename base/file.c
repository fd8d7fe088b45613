#include "base/file.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct atomic_file {
    char *path, *temporary;
    int descriptor;
    bool failed;
};

/* Creates a temporary file next to `path` and locks it: the lock, which other hosts see too, says that its writer
 * lives. The name cannot be foreseen, and what lies under it already is neither opened nor followed. -1 with errno. */
static int open_temporary(struct atomic_file *file)
{
    struct stat target;
    if (lstat(file->path, &target) == 0 && !S_ISREG(target.st_mode) && !S_ISLNK(target.st_mode)) {
        errno = S_ISDIR(target.st_mode) ? EISDIR : EINVAL; /* renaming would replace a device */
        return -1;
    }
    for (int attempt = 0; attempt < 100; attempt++) {
        struct stat info;
        uint64_t number;
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) return -1;
        free(file->temporary);
        file->temporary = memory_format("%s.%016" PRIx64 ".tmp", file->path, number);
        if (!file->temporary) {
            errno = ENOMEM;
            return -1;
        }
        const int descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno == EEXIST) continue;
        if (descriptor < 0) return -1;
        (void)!flock(descriptor, LOCK_EX); /* some file systems have no locks: nothing is swept there */
        if (fstat(descriptor, &info) != 0 || info.st_nlink > 0) return descriptor;
        close(descriptor); /* swept by another process before it was locked */
    }
    errno = EEXIST;
    return -1;
}

/* Returns the folder of a file, freed by free(); NULL without memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? memory_copy_text(".") : memory_format("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* Whether `entry` is a temporary name that atomic_file_open() made for `name`. */
static bool is_temporary(const char *entry, const char *name)
{
    const size_t prefix = strlen(name);
    if (strncmp(entry, name, prefix) != 0 || entry[prefix] != '.') return false;
    const char *number = entry + prefix + 1;
    return strspn(number, "0123456789abcdef") == 16 && strcmp(number + 16, ".tmp") == 0;
}

/* Removes a temporary file that no living process has locked. */
static void remove_orphan(int folder, const char *entry)
{
    const int descriptor = openat(folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry, 0);
    close(descriptor);
}

void atomic_file_sweep(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = folder_of(path);
    DIR *directory = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (is_temporary(entry->d_name, slash ? slash + 1 : path)) remove_orphan(dirfd(directory), entry->d_name);
    if (directory) closedir(directory);
    free(folder);
}

tutti_status atomic_file_open(struct atomic_file **made, const char *path)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct atomic_file *file = memory_new(1, sizeof(*file));
    if (!file) return status;
    file->descriptor = -1;
    file->path = memory_copy_text(path);
    if (!file->path) goto done;
    atomic_file_sweep(path); /* those of writers that were killed may be large */
    file->descriptor = open_temporary(file);
    if (file->descriptor < 0) {
        const int error = errno;
        free(file->temporary); /* not ours */
        file->temporary = NULL;
        FAIL(TUTTI_FILE, "cannot write '%s': %s: choose a folder that exists and may be written to", path,
            strerror(error));
    }
    *made = file;
    return TUTTI_OK;
done:
    atomic_file_abandon(file);
    return status;
}

tutti_status atomic_file_write(struct atomic_file *file, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t written = write(file->descriptor, at, size < (1u << 30) ? size : 1u << 30);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            file->failed = true;
            return fail(TUTTI_FILE, "cannot write '%s': %s: the previous file is unchanged", file->path,
                written < 0 ? strerror(errno) : "nothing was written");
        }
        at += written;
        size -= (size_t)written;
    }
    return TUTTI_OK;
}

tutti_status atomic_file_flush(struct atomic_file *file)
{
    if (fsync(file->descriptor) == 0 || errno == EINVAL || errno == EROFS)
        return TUTTI_OK; /* e.g. a pipe has no disk */
    file->failed = true;
    return fail(TUTTI_FILE, "cannot write '%s' to the disk: %s", file->path, strerror(errno));
}

/* Flushes a file's folder: a rename is on the disk only once its folder is. Some file systems cannot flush folders;
 * the rename itself is done then. */
static void flush_folder(const char *path)
{
    char *folder = folder_of(path);
    int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        (void)!fsync(descriptor);
        close(descriptor);
    }
    free(folder);
}

tutti_status atomic_file_commit(struct atomic_file *file)
{
    tutti_status status;
    if (file->failed) FAIL(TUTTI_FILE, "'%s' was not written: an earlier write failed", file->path);
    TRY(atomic_file_flush(file));
    if (rename(file->temporary, file->path) != 0) /* before the lock goes with the descriptor */
        FAIL(TUTTI_FILE, "cannot rename '%s' to '%s': %s", file->temporary, file->path, strerror(errno));
    flush_folder(file->path);
    free(file->temporary);
    file->temporary = NULL;
done:
    atomic_file_abandon(file);
    return status;
}

void atomic_file_abandon(struct atomic_file *file)
{
    if (!file) return;
    if (file->temporary) unlink(file->temporary);
    if (file->descriptor >= 0) close(file->descriptor);
    free(file->temporary);
    free(file->path);
    free(file);
}

static tutti_status write_whole(const char *path, const void *data, size_t size, bool own)
{
    struct atomic_file *file = NULL;
    tutti_status status = atomic_file_open(&file, path);
    if (status == TUTTI_OK && own && fchmod(file->descriptor, 0600) != 0)
        status = fail(TUTTI_FILE, "cannot set the permissions of '%s': %s", path, strerror(errno));
    if (status == TUTTI_OK) status = atomic_file_write(file, data, size);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}

tutti_status file_write(const char *path, const void *data, size_t size)
{
    return write_whole(path, data, size, false);
}

tutti_status file_write_own(const char *path, const void *data, size_t size)
{
    return write_whole(path, data, size, true);
}

tutti_status file_read_at(int descriptor, const char *path, uint64_t from, void *to, size_t size, size_t *got)
{
    for (*got = 0; *got < size;) {
        const ssize_t part = pread(descriptor, (char *)to + *got, size - *got, (off_t)(from + *got));
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return fail(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
        if (part == 0) break;
        *got += (size_t)part;
    }
    return TUTTI_OK;
}

static tutti_status read_all(int descriptor, const char *path, size_t limit, unsigned char **data, size_t *size)
{
    tutti_status status = TUTTI_OK;
    struct stat info;
    unsigned char *bytes = NULL;
    size_t capacity = 0, filled = 0;
    if (fstat(descriptor, &info) != 0) FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) FAIL(TUTTI_FILE, "cannot read '%s': it is a folder", path);
    size_t expected = info.st_size > 0 && (uint64_t)info.st_size <= limit ? (size_t)info.st_size : 0;
    while (true) {
        /* One byte more than expected, so that the end of the file is seen without growing. */
        void *grown = bytes;
        status = memory_grow(&grown, &capacity, filled == 0 ? expected + 1 : filled + 1, 1);
        bytes = grown;
        if (status != TUTTI_OK) goto done;
        ssize_t got = read(descriptor, bytes + filled, capacity - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0) break;
        filled += (size_t)got;
        if (filled > limit)
            FAIL(TUTTI_FORMAT, "'%s' is larger than the limit of %zu bytes: check that it is the right file", path,
                limit);
    }
    *data = bytes;
    *size = filled;
    return TUTTI_OK;
done:
    free(bytes);
    return status;
}

static tutti_status check_own(int descriptor, const char *path)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return fail(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return fail(TUTTI_FILE, "'%s' belongs to another user: set TUTTI_CACHE_DIR to a folder of your own", path);
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return fail(TUTTI_FILE, "other users may write to '%s': run chmod go-w on it", path);
    return TUTTI_OK;
}

static tutti_status read_whole(const char *path, size_t limit, unsigned char **data, size_t *size, bool own)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    tutti_status status = own ? check_own(descriptor, path) : TUTTI_OK;
    if (status == TUTTI_OK) status = read_all(descriptor, path, limit, data, size);
    close(descriptor);
    return status;
}

tutti_status file_read(const char *path, size_t limit, unsigned char **data, size_t *size)
{
    return read_whole(path, limit, data, size, false);
}

tutti_status file_read_own(const char *path, size_t limit, unsigned char **data, size_t *size)
{
    return read_whole(path, limit, data, size, true);
}

tutti_status folder_check_own(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return fail(TUTTI_FILE, "cannot open the folder '%s': %s", path, strerror(errno));
    tutti_status status = check_own(descriptor, path);
    close(descriptor);
    return status;
}

struct file_lock {
    char *path;
    int descriptor;
};

/* Sets the descriptor, or leaves it at -1 where another holder has the lock. */
static tutti_status try_lock(struct file_lock *lock)
{
    struct stat info;
    lock->descriptor = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (lock->descriptor < 0)
        return fail(TUTTI_FILE, "cannot write '%s': %s: choose a folder that exists and may be written to", lock->path,
            strerror(errno));
    const bool held = flock(lock->descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR);
    if (!held && (fstat(lock->descriptor, &info) != 0 || info.st_nlink > 0)) return TUTTI_OK;
    close(lock->descriptor); /* or the holder before has removed the file since it was opened here */
    lock->descriptor = -1;
    return TUTTI_OK;
}

tutti_status file_lock_take(struct file_lock **made, const char *path, double seconds)
{
    enum { STEP_MS = 5 };
    tutti_status status = TUTTI_NO_MEMORY;
    struct file_lock *lock = memory_new(1, sizeof(*lock));
    if (!lock) return status;
    lock->descriptor = -1;
    lock->path = memory_copy_text(path);
    if (!lock->path) goto done;
    const double start = clock_seconds();
    while (true) {
        TRY(try_lock(lock));
        if (lock->descriptor >= 0) break;
        if (clock_seconds() - start > seconds)
            FAIL(TUTTI_FILE, "another process has held '%s' for %g seconds: let it end, or choose another name", path,
                seconds);
        poll(NULL, 0, STEP_MS);
    }
    *made = lock;
    return TUTTI_OK;
done:
    free(lock->path);
    free(lock);
    return status;
}

void file_lock_release(struct file_lock *lock)
{
    if (!lock) return;
    unlink(lock->path); /* while it is held: nobody else has locked this file */
    close(lock->descriptor);
    free(lock->path);
    free(lock);
}

tutti_status file_rename(const char *from, const char *to)
{
    if (rename(from, to) != 0) return fail(TUTTI_FILE, "cannot rename '%s' to '%s': %s", from, to, strerror(errno));
    flush_folder(to);
    return TUTTI_OK;
}

tutti_status folder_make(const char *path)
{
    tutti_status status = TUTTI_OK;
    char *part = memory_copy_text(path);
    if (!part) return TUTTI_NO_MEMORY;
    for (char *at = part + 1; part[0] && status == TUTTI_OK; at++) {
        if (*at != '/' && *at != '\0') continue;
        char kept = *at;
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            status = fail(TUTTI_FILE, "cannot create the folder '%s': %s", part, strerror(errno));
        *at = kept;
        if (kept == '\0') break;
    }
    struct stat info;
    if (status == TUTTI_OK && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        status = fail(TUTTI_FILE, "cannot create the folder '%s': a file of that name exists", path);
    free(part);
    return status;
}
