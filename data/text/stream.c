/* Plain text for language models: one stream of tokens in blocks; the targets of a block are the next tokens. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELD_OUT 0.1

static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Bytes of the character at the begin, as RFC 3629 has it; 0: it is damaged. */
static size_t character(const unsigned char *text, size_t bytes)
{
    const unsigned char first = text[0];
    const size_t size = first < 0x80 ? 1
        : first < 0xc2               ? 0
        : first < 0xe0               ? 2
        : first < 0xf0               ? 3
        : first < 0xf5               ? 4
                                     : 0;
    if (size < 2 || size > bytes) return size > bytes ? 0 : size;
    for (size_t i = 1; i < size; i++)
        if (!continues(text[i])) return 0;
    const bool too_long = (first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90);
    const bool outside = (first == 0xed && text[1] > 0x9f) || (first == 0xf4 && text[1] > 0x8f);
    return too_long || outside ? 0 : size;
}

static int64_t count_broken_lines(const unsigned char *text, size_t bytes)
{
    int64_t count = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t size = character(text + at, bytes - at);
        if (size > 0) {
            at += size;
            continue;
        }
        const unsigned char *end = memchr(text + at, '\n', bytes - at);
        count++;
        at = end ? (size_t)(end - text) + 1 : bytes;
    }
    return count;
}

/* Adds the tokens of a file, which is mapped: it may be larger than the memory. */
static tutti_status add_file(struct texts *texts, const char *path)
{
    struct stat found;
    const int32_t end = tutti_tokenizer_end(texts->tokenizer);
    tutti_status status = TUTTI_OK;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &found) != 0) {
        status = fail(TUTTI_FILE, "cannot open '%s': %s", path, strerror(errno));
    } else if (found.st_size > 0) {
        const size_t size = (size_t)found.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED) {
            status = fail(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
        } else {
            (void)madvise(bytes, size, MADV_SEQUENTIAL);
            texts->counts.broken += count_broken_lines(bytes, size);
            status = texts_stream(texts, bytes, size);
            munmap(bytes, size);
        }
        if (status == TUTTI_OK && end >= 0) status = token_store_add(&texts->tokens, &end, 1);
    }
    if (file >= 0) (void)close(file);
    return status;
}

/* Whether options, or weights, say that these are texts. */
static bool is_asked(const struct texts *texts)
{
    return texts->described || texts->options->tokenizer || texts->options->length;
}

/* Adds the blocks of the tokens from `begins` on, which end where the store does or at `ends`. */
static tutti_status add_blocks(struct texts *texts, int64_t begins, int64_t ends, int part, const char *what)
{
    struct collection *collection = &texts->collection;
    const int64_t tokens = ends - begins, blocks = tokens > 0 ? (tokens - 1) / texts->most : 0;
    if (blocks == 0)
        return fail(TUTTI_FORMAT, "%s has %lld tokens, but a block and the token after it are %lld: lower --length%s",
            what, (long long)tokens, (long long)texts->most + 1, part == TUTTI_DATA_VAL ? ", or raise --split" : "");
    const size_t samples = (size_t)(collection->samples + blocks);
    const tutti_status status =
        memory_grow((void **)&collection->parts, &texts->room.parts, samples, sizeof *collection->parts);
    if (status != TUTTI_OK) return status;
    memset(collection->parts + collection->samples, part, (size_t)blocks);
    texts->runs[texts->run_count++] = (struct text_run) { collection->samples, begins };
    collection->samples += blocks;
    return TUTTI_OK;
}

/* The end of the text is held out. A table may have been meant where nobody asked for tokens. */
static tutti_status divide(struct texts *texts, const char *path)
{
    const double split = texts->options->split > 0 ? texts->options->split : HELD_OUT;
    const int64_t all = (int64_t)texts->tokens.count, train = all - (int64_t)(split * (double)all + 0.5);
    if (split >= 1) return TUTTI_OK; /* refused later */
    tutti_status status = add_blocks(texts, 0, train, TUTTI_DATA_TRAIN, "the part that trains");
    if (status == TUTTI_OK) status = add_blocks(texts, train, all, TUTTI_DATA_VAL, "the part that is held out");
    if (status != TUTTI_FORMAT) return status;
    status_context(status, "%s", path);
    if (is_asked(texts)) return status;
    return fail(status, "%s; if it is a table, let its name end in .csv", status_message());
}

static int part_of(const char *name)
{
    static const struct {
        const char *name;
        int part;
    } names[] = { { "train.txt", TUTTI_DATA_TRAIN }, { "val.txt", TUTTI_DATA_VAL }, { "valid.txt", TUTTI_DATA_VAL },
        { "validation.txt", TUTTI_DATA_VAL }, { "dev.txt", TUTTI_DATA_VAL }, { "test.txt", TUTTI_DATA_TEST } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i].name)) return names[i].part;
    return PART_OPEN;
}

/* Whether all texts of a folder are train.txt, and val.txt or test.txt. */
static bool is_divided(const struct listing *listing)
{
    bool train = false, others = false;
    for (size_t i = 0; i < listing->count; i++) {
        const char *name = listing_name(listing, i);
        if (listing->entries[i].folder || !text_file_has_name(name)) continue;
        if (part_of(name) == PART_OPEN) return false;
        train |= part_of(name) == TUTTI_DATA_TRAIN;
        others |= part_of(name) != TUTTI_DATA_TRAIN;
    }
    return train && others;
}

static tutti_status add_listed(struct texts *texts, const char *folder, const char *name, bool divided)
{
    const int64_t before = (int64_t)texts->tokens.count;
    char *path = memory_format("%s/%s", folder, name);
    tutti_status status = path ? add_file(texts, path) : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK && divided)
        status = texts->run_count < TEXTS_FILES
            ? add_blocks(texts, before, (int64_t)texts->tokens.count, part_of(name), path)
            : fail(TUTTI_FORMAT, "%s: there are several files of the same part", path);
    free(path);
    return status;
}

/* Without options of texts, a folder with other files than texts is not taken as a text. */
static tutti_status read_folder(struct texts *texts, const char *path, bool *found)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, path);
    const bool divided = is_divided(&listing), asked = is_asked(texts);
    for (size_t i = 0; i < listing.count && !asked; i++)
        if (listing.entries[i].folder || !text_file_has_name(listing_name(&listing, i))) goto done;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !text_file_has_name(name)) continue;
        *found = true;
        status = add_listed(texts, path, name, divided);
    }
    if (status == TUTTI_OK && *found && !divided) status = divide(texts, path);
done:
    listing_free(&listing);
    return status;
}

int64_t text_stream_block(const struct texts *texts, int64_t index)
{
    int run = texts->run_count - 1;
    while (run > 0 && index < texts->runs[run].samples) run--;
    return texts->runs[run].tokens + (index - texts->runs[run].samples) * texts->most;
}

tutti_status text_stream_read(struct texts *texts, const char *path, bool *found)
{
    struct stat seen;
    *found = false;
    texts->stream = true;
    if (stat(path, &seen) == 0 && S_ISDIR(seen.st_mode)) return read_folder(texts, path, found);
    if (!text_file_has_name(path)) return TUTTI_OK;
    *found = true;
    const tutti_status status = add_file(texts, path);
    return status == TUTTI_OK ? divide(texts, path) : status;
}
