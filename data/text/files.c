/* Folders of texts: one for each class, perhaps below train/, val/ and test/; or, for inference, files without
 * classes. */
#include "data/text/texts.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/ignored.h"
#include "data/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 1 << 26 };

struct walk {
    struct texts *texts;
    int part;
    struct ignored ignored;
    int64_t unlabelled; /* texts of a folder unsup/ */
};

static bool is_empty(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n\f\v", bytes[i]) || !bytes[i]) return false;
    return true;
}

/* Each line is a sentence, whose words are to get tags. */
static tutti_status add_sentences(struct texts *texts, int part, const char *name, const char *text)
{
    tutti_status status = TUTTI_OK;
    while (*text && status == TUTTI_OK) {
        const size_t bytes = strcspn(text, "\n");
        char *line = memory_format("%.*s", (int)bytes, text);
        status = line ? tags_add_text(texts, part, name, line) : TUTTI_NO_MEMORY;
        free(line);
        text += bytes + (text[bytes] == '\n');
    }
    return status;
}

/* `class_name` NULL: it has none. */
static tutti_status add_text(
    struct texts *texts, int part, const char *name, const char *class_name, const char *bytes, size_t size)
{
    tutti_status status = TUTTI_OK;
    if (is_empty(bytes, size)) {
        texts_leave_out(texts, name);
        return TUTTI_OK;
    }
    texts->counts.broken += memchr(bytes, '\0', size) || !text_is_utf8(bytes);
    if (texts->targets.tags.on) return add_sentences(texts, part, name, bytes);
    TRY(texts_add_sample(texts, part, 0, name));
    if (class_name) TRY(texts_set_target(texts, class_name));
    TRY(texts_queue(texts, bytes, size, NULL, 0));
done:
    return status;
}

/* file_read() gives no NUL after the bytes. */
static tutti_status add_file(struct texts *texts, int part, const char *path, const char *class_name)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    tutti_status status = file_read(path, FILE_MOST, &bytes, &size);
    char *copy = status == TUTTI_OK ? memory_new(size + 1, 1) : NULL;
    if (status == TUTTI_OK && !copy) status = TUTTI_NO_MEMORY;
    if (copy) memcpy(copy, bytes, size);
    if (copy) status = add_text(texts, part, path, class_name, copy, size);
    free(copy);
    free(bytes);
    return status;
}

/* Adds the texts of a folder, without those in folders below it. */
static tutti_status add_folder(struct walk *walk, const char *folder, const char *class_name)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    walk->ignored.hidden += listing.hidden;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !text_file_has_name(name)) {
            ignored_add(&walk->ignored, folder, name, listing.entries[i].folder);
            continue;
        }
        char *path = memory_format("%s/%s", folder, name);
        status = path ? add_file(walk->texts, walk->part, path, class_name) : TUTTI_NO_MEMORY;
        free(path);
    }
    listing_free(&listing);
    return status;
}

static tutti_status count_texts(const char *folder, int64_t *count)
{
    struct listing listing;
    const tutti_status status = listing_read(&listing, folder);
    *count = 0;
    for (size_t i = 0; i < listing.count; i++)
        *count += !listing.entries[i].folder && text_file_has_name(listing_name(&listing, i));
    listing_free(&listing);
    return status;
}

/* A folder with texts in it is a class; but "unsup" has those without one in aclImdb. */
static tutti_status add_class(struct walk *walk, const char *folder, const char *name)
{
    int64_t count = 0;
    const tutti_status status = count_texts(folder, &count);
    if (status != TUTTI_OK || count == 0) return status;
    if (strcmp(name, "unsup") != 0) return add_folder(walk, folder, name);
    walk->unlabelled += count;
    return TUTTI_OK;
}

static tutti_status walk_classes(struct walk *walk, const char *folder)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        if (!listing.entries[i].folder) continue;
        char *path = memory_format("%s/%s", folder, listing_name(&listing, i));
        status = path ? add_class(walk, path, listing_name(&listing, i)) : TUTTI_NO_MEMORY;
        free(path);
    }
    listing_free(&listing);
    return status;
}

static tutti_status walk_parts(struct walk *walk, const char *folder)
{
    struct listing listing;
    struct part_folder parts[5];
    tutti_status status = listing_read(&listing, folder);
    const int count = status == TUTTI_OK ? listing_parts(&listing, parts) : 0;
    walk->part = PART_OPEN;
    if (status == TUTTI_OK && count == 0) status = walk_classes(walk, folder);
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        char *path = memory_format("%s/%s", folder, parts[i].name);
        walk->part = parts[i].part;
        status = path ? walk_classes(walk, path) : TUTTI_NO_MEMORY;
        free(path);
    }
    listing_free(&listing);
    return status;
}

tutti_status text_files_read(struct texts *texts, const char *path, bool *found)
{
    struct walk walk = { .texts = texts, .part = TUTTI_DATA_TEST };
    struct stat seen;
    tutti_status status = TUTTI_OK;
    const bool folder = stat(path, &seen) == 0 && S_ISDIR(seen.st_mode);
    const bool may_be_unlabelled = texts->described && texts->options->without_targets;
    texts->targets.words = true; /* names of folders are classes, also if they are numbers */
    if (folder) TRY(walk_parts(&walk, path));
    walk.part = TUTTI_DATA_TEST;
    if (folder && texts->collection.samples == 0 && may_be_unlabelled) TRY(add_folder(&walk, path, NULL));
    if (!folder && may_be_unlabelled && text_file_has_name(path)) TRY(add_file(texts, TUTTI_DATA_TEST, path, NULL));
    *found = texts->collection.samples > 0;
    if (*found) ignored_note(&walk.ignored, texts->options, &texts->collection.ignored);
    if (*found && walk.unlabelled > 0)
        texts_note(
            texts, memory_format("left out: %lld texts in unsup/, which have no class", (long long)walk.unlabelled));
done:
    return status;
}

tutti_status text_files_read_given(struct texts *texts)
{
    const tutti_data_options *options = texts->options;
    tutti_status status = TUTTI_OK;
    if (texts->pairs)
        FAIL(TUTTI_MISMATCH, "the network was trained on pairs of texts: name a table with the columns '%s' and '%s'",
            texts->columns[0], texts->columns[1]);
    for (int64_t i = 0; i < options->file_count; i++) TRY(add_file(texts, TUTTI_DATA_TEST, options->files[i], NULL));
    for (int64_t i = 0; i < options->text_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "text %lld", (long long)i + 1);
        TRY(add_text(texts, TUTTI_DATA_TEST, name, NULL, options->texts[i], strlen(options->texts[i])));
    }
    if (texts->collection.samples == 0) FAIL(TUTTI_FORMAT, "all texts are empty");
done:
    return status;
}
