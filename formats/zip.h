/* ZIP files, as far as numpy's .npz are such: members that are stored or deflated, Zip64 too when reading. The format:
 * PKWARE's APPNOTE.TXT, section 4.3. */
#ifndef FORMATS_ZIP_H
#define FORMATS_ZIP_H

#include "base/file.h"

/* Reads a whole file into memory and checks its directory: each member lies within the file, has a name of its own
 * without control characters, and members are not larger than deflated data can be. What all members take when they
 * are unpacked is limited to 1 GiB or a hundred times the file's size, whichever is more. Errors: TUTTI_FORMAT if the
 * file is damaged, encrypted, or packed in another way; TUTTI_FILE if it cannot be read. */
struct zip;
tutti_status zip_open(const char *path, struct zip **zip);
void zip_close(struct zip *zip); /* accepts NULL */
size_t zip_count(const struct zip *zip);
const char *zip_name(const struct zip *zip, size_t member); /* valid until zip_close() */
/* Unpacks a member, 0 to zip_count() - 1, and compares its checksum. The data are valid until the next call or
 * zip_close(), and may be unaligned. Errors: TUTTI_FORMAT if they are damaged. */
tutti_status zip_member(struct zip *zip, size_t member, const unsigned char **data, size_t *bytes);

/* Writes members as they are, without compression. Each of them, and the file, is smaller than 4 GiB. */
struct zip_writer;
tutti_status zip_create(const char *path, struct zip_writer **writer);
/* Adds a member that consists of two parts. */
tutti_status zip_add(struct zip_writer *writer, const char *name, const void *head, size_t head_bytes, const void *data,
    size_t data_bytes);
/* Writes the directory, commits the file and frees the writer, also on failure; the older file then stays. */
tutti_status zip_commit(struct zip_writer *writer);
void zip_abandon(struct zip_writer *writer); /* accepts NULL */

#endif
