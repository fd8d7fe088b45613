/* Tar archives (POSIX.1-2001 ustar, with GNU's long names and pax headers), as far as they have files: a pass over the
 * headers that reads no contents. Archives are hostile: each size is checked against the archive's. */
#ifndef FORMATS_TAR_H
#define FORMATS_TAR_H

#include "tutti.h"

#define TAR_NAME_BYTES 4096

struct tar_file {
    const char *name;      /* valid during the call */
    int64_t offset, bytes; /* of its content in the archive */
};

/* Calls visit() for each regular file, in order, until it fails. Errors: TUTTI_FILE if the archive cannot be read;
 * TUTTI_FORMAT, with its path, if it is damaged or is not a tar archive; visit()'s. */
tutti_status tar_visit(const char *path, tutti_status (*visit)(void *user, const struct tar_file *file), void *user);
/* Visits the files of an archive in memory likewise, for tests: `name` is for messages. */
tutti_status tar_visit_bytes(const void *bytes, size_t count, const char *name,
    tutti_status (*visit)(void *user, const struct tar_file *file), void *user);

#endif
