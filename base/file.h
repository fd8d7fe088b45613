/* Files that are never seen half-written, and whole files read into memory. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "tutti.h"

/* A file that appears under its name only when it is complete: written next to it under a temporary name that
 * cannot be foreseen, locked, flushed to the disk, renamed; the folder is flushed too. */
struct atomic_file;
tutti_status atomic_file_open(struct atomic_file **file, const char *path);
tutti_status atomic_file_write(struct atomic_file *file, const void *data, size_t size);
/* Flushes what was written to the disk, under the temporary name still. */
tutti_status atomic_file_flush(struct atomic_file *file);
/* Flushes, renames and frees; on failure the temporary file is removed and the older file stays whole. */
tutti_status atomic_file_commit(struct atomic_file *file);
void atomic_file_abandon(struct atomic_file *file); /* takes NULL */
/* Removes temporary files of this path that processes left which were killed; atomic_file_open() does it. */
void atomic_file_sweep(const char *path);

/* Writes a whole file at once by the functions above. */
tutti_status file_write(const char *path, const void *data, size_t size);
/* Reads a whole file, freed by free(). TUTTI_FORMAT if it is larger than limit. */
tutti_status file_read(const char *path, size_t limit, unsigned char **data, size_t *size);
/* Reads up to `size` bytes from a position on; *got is less at the file's end. path: for the message. */
tutti_status file_read_at(int descriptor, const char *path, uint64_t from, void *to, size_t size, size_t *got);
/* A lock that has one holder at a time: a file that exists meanwhile. It ends with its process. */
struct file_lock;
/* Waits until the present holder releases the lock; TUTTI_FILE after so many seconds. Where the file system has no
 * locks, all may hold it. */
tutti_status file_lock_take(struct file_lock **lock, const char *path, double seconds);
void file_lock_release(struct file_lock *lock); /* takes NULL */
/* Renames, replacing what is there, and flushes the folder. */
tutti_status file_rename(const char *from, const char *to);
/* Makes the folder and those above it, for this user alone. */
tutti_status folder_make(const char *path);

/* Reads a file as above if it belongs to this user or to root and nobody else may write to it. For caches, whose
 * content is trusted. */
tutti_status file_read_own(const char *path, size_t limit, unsigned char **data, size_t *size);
/* Writes a file as above that only this user may read and write. */
tutti_status file_write_own(const char *path, const void *data, size_t size);
/* TUTTI_FILE if the folder belongs to another user than this one and root, or others may write to it. */
tutti_status folder_check_own(const char *path);

#endif
