/* What is in a folder, sorted by name, so that the order does not depend on the file system. */
#ifndef DATA_LISTING_H
#define DATA_LISTING_H

#include "data/names.h"

struct listing {
    struct names names;
    struct listed {
        size_t name;
        bool folder;
    } * entries;
    size_t count, room;
    int64_t hidden; /* names that begin with a dot are left out */
};

/* TUTTI_FILE if it cannot be read. */
tutti_status listing_read(struct listing *listing, const char *folder);
void listing_free(struct listing *listing);
static inline const char *listing_name(const struct listing *listing, size_t position)
{
    return names_at(&listing->names, listing->entries[position].name);
}
/* Whether there is such a folder in it. */
bool listing_has_folder(const struct listing *listing, const char *name);

/* The parts of folders that are divided already: train/, val/ (valid/, validation/), test/. */
struct part_folder {
    const char *name;
    int part; /* a tutti_data_part, or PART_OPEN */
};
/* Fills in the parts that are in the listing, with train/ first, and returns how many there are; 0: it is not
 * divided. */
int listing_parts(const struct listing *listing, struct part_folder parts[5]);

/* The tables of the parts in a folder: train.csv, val.csv (valid, validation, dev) and test.csv, say. */
enum { PART_FILES = 3 };
struct part_files {
    struct {
        char *path;
        int part; /* a tutti_data_part; PART_OPEN if there is only one file */
    } files[PART_FILES];
    int count; /* 0: there is no table of the part train */
};
/* Files may have each of these ends, up to NULL. Free it also after a failure. Errors: TUTTI_FORMAT if two are of one
 * part. */
tutti_status part_files_find(const char *folder, const char *const *ends, struct part_files *found);
void part_files_free(struct part_files *found);

#endif
