/* Lines of a text file, plain or packed by gzip, as files of JSON objects have them. */
#ifndef FORMATS_LINES_H
#define FORMATS_LINES_H

#include "tutti.h"

enum { LINES_MAX_BYTES = 1 << 24 };

/* Whether files of this name have a JSON object on each line: .jsonl and .ndjson, also with .gz after it. */
bool lines_has_json_name(const char *path);
struct lines;
/* Errors: TUTTI_FILE. */
tutti_status lines_open(const char *path, struct lines **lines);
/* The next line without its end, of so many bytes, with a NUL after it; valid until the next call. NULL: the file has
 * ended. Errors: TUTTI_FILE, TUTTI_FORMAT if the line has more than LINES_MAX_BYTES or the packed data are damaged. */
tutti_status lines_next(struct lines *lines, const char **line, size_t *bytes);
void lines_close(struct lines *lines); /* takes NULL */

#endif
