#include "data/listing.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/collection.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static tutti_status add(struct listing *listing, DIR *folder, const struct dirent *entry)
{
    struct stat found;
    tutti_status status;
    if (entry->d_name[0] == '.') {
        listing->hidden += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
        return TUTTI_OK;
    }
    const bool is_folder =
        fstatat(dirfd(folder), entry->d_name, &found, 0) == 0 && S_ISDIR(found.st_mode); /* follows links */
    TRY(memory_grow((void **)&listing->entries, &listing->room, listing->count + 1, sizeof(*listing->entries)));
    struct listed *listed = &listing->entries[listing->count];
    listed->folder = is_folder;
    TRY(names_add(&listing->names, entry->d_name, NULL, &listed->name));
    listing->count++;
done:
    return status;
}

static int compare(const void *a, const void *b, void *names)
{
    const struct listed *first = a, *second = b;
    return strcmp(names_at(names, first->name), names_at(names, second->name));
}

tutti_status listing_read(struct listing *listing, const char *path)
{
    tutti_status status = TUTTI_OK;
    *listing = (struct listing) { .count = 0 };
    DIR *folder = opendir(path);
    if (!folder) return fail(TUTTI_FILE, "%s: this folder cannot be read: %s", path, strerror(errno));
    while (status == TUTTI_OK) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno) status = fail(TUTTI_FILE, "%s: this folder cannot be read: %s", path, strerror(errno));
        if (!entry) break;
        status = add(listing, folder, entry);
    }
    closedir(folder);
    if (listing->count > 0)
        qsort_r(listing->entries, listing->count, sizeof(*listing->entries), compare, &listing->names);
    if (status != TUTTI_OK) listing_free(listing);
    return status;
}

void listing_free(struct listing *listing)
{
    names_free(&listing->names);
    free(listing->entries);
    *listing = (struct listing) { .count = 0 };
}

bool listing_has_folder(const struct listing *listing, const char *name)
{
    for (size_t i = 0; i < listing->count; i++)
        if (listing->entries[i].folder && !strcmp(listing_name(listing, i), name)) return true;
    return false;
}

int listing_parts(const struct listing *listing, struct part_folder parts[5])
{
    static const struct part_folder known[] = { { "train", TUTTI_DATA_TRAIN }, { "val", TUTTI_DATA_VAL },
        { "valid", TUTTI_DATA_VAL }, { "validation", TUTTI_DATA_VAL }, { "test", TUTTI_DATA_TEST } };
    int count = 0;
    if (!listing_has_folder(listing, "train")) return 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (listing_has_folder(listing, known[i].name)) parts[count++] = known[i];
    if (count == 1) parts[0].part = PART_OPEN; /* a part of it is held out */
    return count;
}

tutti_status part_files_find(const char *folder, const char *const *ends, struct part_files *found)
{
    static const struct part_folder names[] = { { "train", TUTTI_DATA_TRAIN }, { "val", TUTTI_DATA_VAL },
        { "valid", TUTTI_DATA_VAL }, { "validation", TUTTI_DATA_VAL }, { "dev", TUTTI_DATA_VAL },
        { "test", TUTTI_DATA_TEST } };
    tutti_status status = TUTTI_OK;
    char *path = NULL;
    *found = (struct part_files) { .count = 0 };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (const char *const *end = ends; *end; end++) {
            struct stat info;
            const int last = found->count - 1;
            free(path);
            path = memory_format("%s/%s.%s", folder, names[i].name, *end);
            if (!path) FAIL(TUTTI_NO_MEMORY, "no memory for a path");
            if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
            if (last < 0 && names[i].part != TUTTI_DATA_TRAIN) goto done;
            if (last >= 0 && found->files[last].part == names[i].part)
                FAIL(TUTTI_FORMAT, "%s and %s are both tables of one part: leave one of them", found->files[last].path,
                    path);
            found->files[found->count].path = path;
            found->files[found->count++].part = names[i].part;
            path = NULL;
        }
    if (found->count == 1) found->files[0].part = PART_OPEN; /* a part of it is held out */
done:
    free(path);
    return status;
}

void part_files_free(struct part_files *found)
{
    for (int i = 0; i < found->count; i++) free(found->files[i].path);
    *found = (struct part_files) { .count = 0 };
}
