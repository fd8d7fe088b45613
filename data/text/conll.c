/* Texts in files with a word and its tag on each line. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/listing.h"
#include "formats/conll.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct reading {
    struct texts *texts;
    struct conll *conll;
    const struct text_file *file;
    int word, tag;    /* columns; tag -1: none is read */
    int64_t sentence; /* from 1 on */
};

static tutti_status add_file(struct texts *texts, const char *path, int part)
{
    char *copy = memory_copy_text(path);
    if (!copy) return TUTTI_NO_MEMORY;
    texts->files[texts->file_count++] = (struct text_file) { .path = copy, .part = part };
    return TUTTI_OK;
}

/* Universal Dependencies call their files en_ewt-ud-train.conllu and so on. */
static int part_of(const char *name)
{
    static const struct {
        const char *name;
        int part;
    } names[] = { { "train", TUTTI_DATA_TRAIN }, { "dev", TUTTI_DATA_VAL }, { "val", TUTTI_DATA_VAL },
        { "valid", TUTTI_DATA_VAL }, { "validation", TUTTI_DATA_VAL }, { "test", TUTTI_DATA_TEST } };
    const char *universal = strstr(name, "-ud-");
    const char *begin = universal ? universal + strlen("-ud-") : name;
    const size_t bytes = strcspn(begin, ".");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes == strlen(names[i].name) && !strncmp(begin, names[i].name, bytes)) return names[i].part;
    return PART_OPEN;
}

static tutti_status add_part(struct texts *texts, const char *folder, const char *name, int part)
{
    char *path = memory_format("%s/%s", folder, name);
    tutti_status status = path ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (int i = 0; i < texts->file_count && status == TUTTI_OK; i++)
        if (texts->files[i].part == part)
            status =
                fail(TUTTI_FORMAT, "%s and %s are both of one part: leave one of them", texts->files[i].path, path);
    if (status == TUTTI_OK) status = add_file(texts, path, part);
    free(path);
    return status;
}

/* Finds the files of the parts in a folder; none if there is none of the part train. */
static tutti_status find_parts(struct texts *texts, const char *folder)
{
    static const int parts[] = { TUTTI_DATA_TRAIN, TUTTI_DATA_VAL, TUTTI_DATA_TEST };
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    for (int p = 0; p < 3 && (p == 0 || texts->file_count > 0); p++)
        for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
            const char *name = listing_name(&listing, i);
            if (listing.entries[i].folder || !conll_has_name(name) || part_of(name) != parts[p]) continue;
            status = add_part(texts, folder, name, parts[p]);
        }
    if (texts->file_count == 1) texts->files[0].part = PART_OPEN; /* a part of it is held out */
    listing_free(&listing);
    return status;
}

tutti_status text_conll_find(struct texts *texts, const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) return find_parts(texts, path);
    return conll_has_name(path) ? add_file(texts, path, PART_OPEN) : TUTTI_OK;
}

bool text_conll_is(const struct texts *texts)
{
    return texts->file_count > 0 && conll_has_name(texts->files[0].path);
}

/* A network may predict files that have other columns than those of its training. */
static tutti_status find_columns(struct reading *reading)
{
    const struct texts *texts = reading->texts;
    const char *path = reading->file->path;
    const bool predicts = texts->described && texts->options->without_targets;
    reading->word = conll_column(reading->conll, texts->columns[0], false);
    reading->tag = predicts ? -1 : conll_column(reading->conll, texts->target, true);
    if (texts->described && reading->word < 0) reading->word = conll_column(reading->conll, NULL, false);
    if (texts->described && !predicts && reading->tag < 0) reading->tag = conll_column(reading->conll, NULL, true);
    if (reading->word < 0)
        return fail(TUTTI_INVALID, "%s: there is no column '%s' of words: columns count from 1", path,
            texts->columns[0] ? texts->columns[0] : "FORM");
    if (reading->tag < 0 && !predicts)
        return fail(TUTTI_INVALID, "%s: there is no column '%s' of tags: columns count from 1", path,
            texts->target ? texts->target : "2");
    if (reading->tag == reading->word)
        return fail(TUTTI_INVALID, "%s: column %d is named twice by --text and --target", path, reading->tag + 1);
    return TUTTI_OK;
}

static tutti_status end_sentence(struct reading *reading)
{
    const struct texts *texts = reading->texts;
    const int part = reading->tag >= 0 ? reading->file->part : TUTTI_DATA_TEST;
    if (texts->targets.tags.line.used == 0) return TUTTI_OK;
    return tags_end_sentence(reading->texts, part, ++reading->sentence, NULL);
}

static tutti_status use_row(struct reading *reading, const struct conll_row *row)
{
    struct texts *texts = reading->texts;
    const char *word = row->fields[reading->word], *tag = reading->tag >= 0 ? row->fields[reading->tag] : NULL;
    if (!*word)
        return fail(TUTTI_FORMAT, "%s, line %" PRId64 ": the word is empty: separate sentences by empty lines",
            reading->file->path, row->line);
    if (tag && (!*tag || (conll_is_universal(reading->conll) && !strcmp(tag, "_")))) {
        texts->counts.no_target++;
        tag = NULL;
    }
    texts->counts.broken += !text_is_utf8(word);
    return tags_add_word(texts, word, tag);
}

static tutti_status read_file(struct reading *reading)
{
    struct conll_row row;
    tutti_status status = conll_open(reading->file->path, &reading->conll);
    if (status != TUTTI_OK) return status;
    TRY(conll_next(reading->conll, &row));
    if (row.count == 0) FAIL(TUTTI_FORMAT, "%s: the file has no words: name one that has some", reading->file->path);
    TRY(find_columns(reading));
    while (row.count > 0) {
        if (row.begins) TRY(end_sentence(reading));
        TRY(use_row(reading, &row));
        TRY(conll_next(reading->conll, &row));
    }
    TRY(end_sentence(reading));
done:
    conll_close(reading->conll);
    return status;
}

tutti_status text_conll_read(struct texts *texts)
{
    tutti_status status = TUTTI_OK;
    texts->targets.tags.on = true;
    if (texts->pairs) return fail(TUTTI_INVALID, "--text names two columns, but words with tags are in one");
    for (int i = 0; i < texts->file_count && status == TUTTI_OK; i++) {
        struct reading reading = { .texts = texts, .file = &texts->files[i] };
        texts->files[i].begins = texts->collection.samples;
        status = read_file(&reading);
    }
    return status;
}
