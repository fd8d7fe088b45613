/* The files of a table: one, those of the parts in a folder, or the only table in a folder. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/listing.h"
#include "formats/image.h"
#include "formats/sound.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static tutti_status add_file(struct table *table, const char *path, int part)
{
    char *copy = memory_copy_text(path);
    if (!copy) return TUTTI_NO_MEMORY;
    table->files[table->file_count++] = (struct table_file) { .path = copy, .part = part };
    return TUTTI_OK;
}

/* Finds train.csv, and val.csv and test.csv next to it. */
static tutti_status find_parts(struct table *table, const char *folder)
{
    static const char *const ends[] = { "csv", "tsv", "csv.gz", "tsv.gz", NULL };
    struct part_files found;
    tutti_status status = part_files_find(folder, ends, &found);
    for (int i = 0; i < found.count && status == TUTTI_OK; i++)
        status = add_file(table, found.files[i].path, found.files[i].part);
    part_files_free(&found);
    return status;
}

/* Whether a file is data of another kind. */
static bool is_other(const char *name)
{
    static const char *const ends[] = { ".npy", ".npz", ".tar", ".bin", "-ubyte" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_has_extension(name, ends[i])) return true;
    return image_has_name(name) || sound_has_name(name);
}

/* Finds the one table in a folder that has neither folders nor data of other kinds. */
static tutti_status find_only(struct table *table, const char *folder)
{
    struct listing listing = { 0 };
    const char *only = NULL;
    bool plain = true;
    tutti_status status = listing_read(&listing, folder);
    for (size_t i = 0; status == TUTTI_OK && i < listing.count && plain; i++) {
        const char *name = listing_name(&listing, i);
        const bool is_table = csv_has_name(name);
        plain = !listing.entries[i].folder && !is_other(name) && !(is_table && only);
        if (is_table) only = name;
    }
    char *path = plain && only ? memory_format("%s/%s", folder, only) : NULL;
    if (plain && only) status = path ? add_file(table, path, PART_OPEN) : TUTTI_NO_MEMORY;
    free(path);
    listing_free(&listing);
    return status;
}

tutti_status table_find_files(struct table *table, const char *path)
{
    struct stat found;
    if (!strcmp(path, "-")) return add_file(table, CSV_STANDARD_INPUT, PART_OPEN);
    if (stat(path, &found) != 0) return TUTTI_OK;
    if (!S_ISDIR(found.st_mode)) return csv_has_name(path) ? add_file(table, path, PART_OPEN) : TUTTI_OK;
    const tutti_status status = find_parts(table, path);
    return status == TUTTI_OK && table->file_count == 0 ? find_only(table, path) : status;
}
