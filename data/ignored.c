#include "data/ignored.h"

#include "base/status.h"
#include "data/listing.h"
#include "data/pictures.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ".svg" of "Cat.SVG"; a name that ends in something long, or in strange characters, has no extension. */
static void find_extension(const char *name, char extension[12])
{
    const char *dot = strrchr(name, '.');
    size_t length = dot && dot != name ? strlen(dot) : 0;
    if (length > 10) length = 0;
    for (size_t i = 0; i < length; i++) {
        extension[i] = (char)tolower((unsigned char)dot[i]);
        if (i > 0 && !isalnum((unsigned char)dot[i])) length = 0;
    }
    extension[length > 1 ? length : 0] = '\0';
}

static void count_file(struct ignored *ignored, const char *name)
{
    char extension[12];
    int at = 0;
    find_extension(name, extension);
    while (at < ignored->kind_count && strcmp(ignored->kinds[at].extension, extension)) at++;
    if (at == IGNORED_KINDS) {
        ignored->others++;
        return;
    }
    memcpy(ignored->kinds[at].extension, extension, sizeof(extension));
    ignored->kinds[at].count++;
    if (at == ignored->kind_count) ignored->kind_count++;
}

void ignored_add(struct ignored *ignored, const char *parent, const char *name, bool is_folder)
{
    if (is_folder)
        ignored->folders++;
    else
        count_file(ignored, name);
    if (ignored->example_count == IGNORED_EXAMPLES) return;
    snprintf(ignored->examples[ignored->example_count++], sizeof(ignored->examples[0]), "%s%s%s", parent ? parent : "",
        parent ? "/" : "", name);
}

bool ignored_any(const struct ignored *ignored)
{
    return ignored->kind_count > 0 || ignored->folders > 0 || ignored->hidden > 0;
}

/* The most frequent kinds first. */
static int compare_kinds(const void *a, const void *b)
{
    const struct ignored_kind *first = a, *second = b;
    if (first->count != second->count) return first->count < second->count ? 1 : -1;
    return strcmp(first->extension, second->extension);
}

static void append(struct ignored_text *text, int64_t count, const char *before, const char *one, const char *many)
{
    const size_t used = strlen(text->text);
    if (count == 0) return;
    snprintf(text->text + used, sizeof(text->text) - used, "%s%" PRId64 " %s%s", used ? ", " : "", count, before,
        count == 1 ? one : many);
}

struct ignored_text ignored_list(const struct ignored *ignored)
{
    enum { MOST_LISTED = 8 };
    struct ignored sorted = *ignored;
    struct ignored_text text = { "" };
    int64_t others = ignored->others;
    qsort(sorted.kinds, (size_t)sorted.kind_count, sizeof(sorted.kinds[0]), compare_kinds);
    for (int i = 0; i < sorted.kind_count; i++) {
        const struct ignored_kind *kind = &sorted.kinds[i];
        if (i >= MOST_LISTED)
            others += kind->count;
        else if (kind->extension[0])
            append(&text, kind->count, kind->extension, " file", " files");
        else
            append(&text, kind->count, "", "file without an extension", "files without an extension");
    }
    append(&text, others, "", "other file", "other files");
    append(&text, ignored->folders, "", "folder", "folders");
    append(&text, ignored->hidden, "", "hidden file or folder", "hidden files and folders");
    return text;
}

tutti_status ignored_refuse(const char *folder, const char *what)
{
    struct listing listing;
    struct ignored ignored = { 0 };
    const tutti_status status = listing_read(&listing, folder);
    if (status != TUTTI_OK) return status;
    ignored.hidden = listing.hidden;
    for (size_t i = 0; i < listing.count; i++)
        ignored_add(&ignored, NULL, listing_name(&listing, i), listing.entries[i].folder);
    listing_free(&listing);
    const bool any = ignored_any(&ignored);
    return fail(TUTTI_FORMAT, "%s: a folder stands for a class, but this one has no %s in it%s%s: %s", folder, what,
        any ? ", only " : "", any ? ignored_list(&ignored).text : "",
        any ? "convert its files, or move it away" : "fill or remove it");
}

void ignored_note(const struct ignored *ignored, const tutti_data_options *options, struct ignored *kept)
{
    *kept = *ignored;
    if (!ignored_any(ignored)) return;
    data_note(options, "ignored: %s%s%s", ignored_list(ignored).text, ignored->example_count ? ", such as " : "",
        ignored->examples[0]);
}
