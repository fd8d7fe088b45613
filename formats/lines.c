#include "formats/lines.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CHUNK = 1 << 18 };

struct lines {
    char *path, *buffer; /* with room for a NUL after what is filled */
    gzFile file;
    size_t at, filled, room;
    int64_t number;
    bool ended;
};

bool lines_has_json_name(const char *path)
{
    static const char *const ends[] = { ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_has_extension(path, ends[i])) return true;
    return false;
}

tutti_status lines_open(const char *path, struct lines **made)
{
    struct lines *lines = memory_new(1, sizeof *lines);
    *made = NULL;
    if (!lines) return TUTTI_NO_MEMORY;
    lines->path = memory_copy_text(path);
    errno = 0;
    lines->file = lines->path ? gzopen(path, "rb") : NULL;
    if (lines->file) {
        *made = lines;
        return TUTTI_OK;
    }
    const tutti_status status = lines->path
        ? fail(TUTTI_FILE, "cannot open '%s': %s", path, errno ? strerror(errno) : "no memory")
        : TUTTI_NO_MEMORY;
    lines_close(lines);
    return status;
}

/* Reads more bytes after those that are not used yet, which move to the buffer's begin. */
static tutti_status fill(struct lines *lines)
{
    const size_t rest = lines->filled - lines->at;
    void *buffer = lines->buffer;
    int code = Z_OK;
    if (rest > LINES_MAX_BYTES)
        return fail(TUTTI_FORMAT, "%s: line %" PRId64 " is longer than 16 MiB", lines->path, lines->number);
    if (rest > 0 && lines->at > 0) memmove(lines->buffer, lines->buffer + lines->at, rest);
    lines->at = 0;
    lines->filled = rest;
    const tutti_status status = memory_grow(&buffer, &lines->room, rest + CHUNK + 1, 1);
    lines->buffer = buffer;
    if (status != TUTTI_OK) return status;
    const int count = gzread(lines->file, lines->buffer + rest, CHUNK);
    const char *text = count > 0 ? NULL : gzerror(lines->file, &code);
    if (code == Z_ERRNO) return fail(TUTTI_FILE, "cannot read '%s': %s", lines->path, strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END)
        return fail(TUTTI_FORMAT, "%s: damaged gzip data: %s", lines->path,
            code == Z_BUF_ERROR ? "the file is truncated" : text);
    lines->ended = count == 0;
    lines->filled += (size_t)count;
    return TUTTI_OK;
}

tutti_status lines_next(struct lines *lines, const char **line, size_t *bytes)
{
    const char *end = NULL;
    size_t looked = 0;
    *line = NULL;
    *bytes = 0;
    lines->number++;
    for (;;) {
        const size_t rest = lines->filled - lines->at;
        if (rest > looked) end = memchr(lines->buffer + lines->at + looked, '\n', rest - looked);
        if (end || lines->ended) break;
        looked = rest;
        const tutti_status status = fill(lines);
        if (status != TUTTI_OK) return status;
    }
    if (lines->at == lines->filled) return TUTTI_OK;
    char *begin = lines->buffer + lines->at;
    size_t size = end ? (size_t)(end - begin) : lines->filled - lines->at;
    lines->at += size + (end != NULL);
    if (size > 0 && begin[size - 1] == '\r') size--;
    begin[size] = '\0';
    *line = begin;
    *bytes = size;
    return TUTTI_OK;
}

void lines_close(struct lines *lines)
{
    if (!lines) return;
    if (lines->file) gzclose(lines->file);
    free(lines->path);
    free(lines->buffer);
    free(lines);
}
