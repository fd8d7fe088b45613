#include "formats/standard_input.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int kept = -1; /* the file; -1: standard input has not been read */

static tutti_status write_all(int descriptor, const char *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t wrote = write(descriptor, bytes, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail(TUTTI_FILE, "cannot keep standard input in a temporary file: %s", strerror(errno));
        bytes += wrote;
        count -= (size_t)wrote;
    }
    return TUTTI_OK;
}

static tutti_status copy_input(int descriptor)
{
    tutti_status status = TUTTI_OK;
    char *bytes = memory_new(CHUNK, 1);
    if (!bytes) return TUTTI_NO_MEMORY;
    for (;;) {
        const ssize_t count = read(STDIN_FILENO, bytes, CHUNK);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) FAIL(TUTTI_FILE, "cannot read standard input: %s", strerror(errno));
        if (count == 0) break;
        TRY(write_all(descriptor, bytes, (size_t)count));
    }
done:
    free(bytes);
    return status;
}

/* A file that has no name, so that nothing is left of it however the process ends. */
static int make_file(void)
{
    const char *folder = getenv("TMPDIR");
    char *path = memory_format("%s/tutti-XXXXXX", folder && *folder ? folder : "/tmp");
    const int descriptor = path ? mkostemp(path, O_CLOEXEC) : -1;
    if (descriptor >= 0) (void)unlink(path);
    free(path);
    return descriptor;
}

static tutti_status keep_input(void)
{
    if (kept >= 0) return TUTTI_OK;
    const int descriptor = make_file();
    if (descriptor < 0)
        return fail(TUTTI_FILE, "no temporary file can be made for standard input: %s: set TMPDIR", strerror(errno));
    const tutti_status status = copy_input(descriptor);
    if (status == TUTTI_OK)
        kept = descriptor;
    else
        (void)close(descriptor);
    return status;
}

tutti_status standard_input_open(int *descriptor)
{
    char path[40];
    pthread_mutex_lock(&lock);
    const tutti_status status = keep_input();
    pthread_mutex_unlock(&lock);
    if (status != TUTTI_OK) return status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept);
    *descriptor = open(path, O_RDONLY | O_CLOEXEC); /* with a position of its own */
    return *descriptor >= 0 ? TUTTI_OK : fail(TUTTI_FILE, "cannot read standard input again: %s", strerror(errno));
}
