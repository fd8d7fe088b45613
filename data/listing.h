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

#endif
