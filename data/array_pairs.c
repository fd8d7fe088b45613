/* Arrays are known by their names: x and y, images_train, test/labels and their like. */
#include "data/arrays.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/listing.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const input_names[] = { "x", "input", "inputs", "image", "images", "data", "features" };
static const char *const target_names[] = { "y", "target", "targets", "label", "labels" };
static const struct part_name {
    const char *name;
    int slot;
} part_names[] = { { "train", 1 }, { "val", 2 }, { "valid", 2 }, { "validation", 2 }, { "test", 3 } };
#define COUNT(list) (sizeof(list) / sizeof *(list))

struct role {
    int slot;
    bool target;
};

static bool among(const char *const *names, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length)) return true;
    return false;
}

/* Finds what a name stands for, with a part before it or after it, or without one. */
static bool find_role(const char *name, struct role *role)
{
    char text[64];
    size_t begin = 0, length = strlen(name);
    if (length >= sizeof text) return false;
    for (size_t i = 0; i <= length; i++)
        text[i] = strchr("/-. ", name[i]) && name[i] ? '_' : (char)tolower((unsigned char)name[i]);
    role->slot = 0;
    for (size_t i = 0; i < COUNT(part_names) && !role->slot; i++) {
        const size_t part = strlen(part_names[i].name);
        if (length <= part + 1) continue;
        const bool front = !strncmp(text, part_names[i].name, part) && text[part] == '_';
        if (!front && (strcmp(text + length - part, part_names[i].name) != 0 || text[length - part - 1] != '_'))
            continue;
        role->slot = part_names[i].slot;
        begin = front ? part + 1 : 0;
        length -= part + 1;
    }
    role->target = among(target_names, COUNT(target_names), text + begin, length);
    return role->target || among(input_names, COUNT(input_names), text + begin, length);
}

/* Copies [pixels][channels] to [channels][pixels]. */
static void put_channels_first(const struct npz_array *array, const char *from, char *to)
{
    const size_t size = npz_type_size(array->type), channels = (size_t)array->sizes[array->rank - 1];
    const size_t pixels = array->bytes / (size_t)array->sizes[0] / size / channels;
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < channels; c++, from += size) memcpy(to + (c * pixels + i) * size, from, size);
}

static tutti_status read_channels_last(const struct array_rows *from, int64_t first, int64_t count, void *elements)
{
    const size_t row = from->array->bytes / (size_t)from->array->sizes[0];
    const struct array_rows plain = { from->name, from->rows, from->array, false };
    tutti_status status = TUTTI_OK;
    char *memory = memory_new(row, 1);
    if (!memory) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        status = array_rows_read(&plain, first + i, 1, memory);
        if (status == TUTTI_OK) put_channels_first(from->array, memory, (char *)elements + (size_t)i * row);
    }
    free(memory);
    return status;
}

tutti_status array_rows_read(const struct array_rows *from, int64_t first, int64_t count, void *elements)
{
    if (from->channels_last) return read_channels_last(from, first, count, elements);
    if (from->rows) return npy_rows_read(from->rows, first, count, elements);
    const size_t row = from->array->bytes / (size_t)from->array->sizes[0];
    memcpy(elements, (const char *)from->array->data + (size_t)first * row, (size_t)count * row);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------- finding ---- */

/* Takes a place of the pairs; NULL with a message if it is taken. */
static struct array_rows *place(struct array_pairs *pairs, const struct role *role, const char *name)
{
    struct array_rows *slot = role->target ? &pairs->targets[role->slot] : &pairs->inputs[role->slot];
    if (slot->name) {
        fail(TUTTI_FORMAT, "'%s' and '%s' may both be the %s: keep one of them", slot->name, name,
            role->target ? "targets" : "inputs");
        return NULL;
    }
    slot->name = memory_copy_text(name);
    return slot->name ? slot : NULL;
}

static tutti_status find_members(const char *path, struct array_pairs *pairs)
{
    char known[200] = "";
    tutti_status status = npz_open_with_texts(path, &pairs->npz);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < npz_count(pairs->npz); i++) {
        const struct npz_array *array = npz_at(pairs->npz, i);
        const size_t used = strlen(known);
        struct role role;
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", array->name);
        if (!find_role(array->name, &role)) continue;
        struct array_rows *slot = place(pairs, &role, array->name);
        if (!slot) return status_context(TUTTI_FORMAT, "%s", path);
        slot->array = array;
    }
    for (int i = 0; i < ARRAYS_SLOTS; i++)
        if (pairs->inputs[i].name) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s has no array x, inputs, images or data, perhaps with train_ and test_: it has %s",
        path, *known ? known : "none");
}

/* `part` is "train/" or its like, or "". */
static tutti_status add_file(const char *folder, const char *part, const char *file, struct array_pairs *pairs)
{
    struct role role;
    char name[300];
    const size_t length = strlen(file);
    if (!text_has_extension(file, ".npy") || length > 250) return TUTTI_OK;
    snprintf(name, sizeof name, "%s%.*s", part, (int)(length - 4), file);
    if (!find_role(name, &role)) return TUTTI_OK;
    struct array_rows *slot = place(pairs, &role, name);
    if (!slot) return status_context(TUTTI_FORMAT, "%s", folder);
    char *path = memory_format("%s/%s%s", folder, part, file);
    if (!path) return TUTTI_NO_MEMORY;
    const tutti_status status = npy_rows_open(path, &slot->rows);
    free(path);
    if (status == TUTTI_OK) slot->array = npy_rows_array(slot->rows);
    return status;
}

static tutti_status find_files(const char *folder, const char *part, struct array_pairs *pairs)
{
    struct listing listing;
    char *path = memory_format("%s/%s", folder, part);
    tutti_status status = path ? listing_read(&listing, path) : TUTTI_NO_MEMORY;
    free(path);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (!listing.entries[i].folder) status = add_file(folder, part, name, pairs);
        for (size_t k = 0; k < COUNT(part_names) && !*part && listing.entries[i].folder && status == TUTTI_OK; k++) {
            char below[20];
            snprintf(below, sizeof below, "%s/", part_names[k].name);
            if (!strcmp(name, part_names[k].name)) status = find_files(folder, below, pairs);
        }
    }
    listing_free(&listing);
    return status;
}

/* ------------------------------------------------------------------------------------------------ checking ---- */

static tutti_status check_pair(const char *path, const struct array_rows *inputs, const struct array_rows *targets)
{
    if (!inputs->name && !targets->name) return TUTTI_OK;
    if (!inputs->name || !targets->name)
        return fail(TUTTI_FORMAT, "%s has '%s', but no %s for it, such as %s", path,
            inputs->name ? inputs->name : targets->name, inputs->name ? "targets" : "inputs", inputs->name ? "y" : "x");
    const struct npz_array *x = inputs->array, *y = targets->array;
    if (x->rank < 1 || y->rank < 1 || x->sizes[0] != y->sizes[0])
        return fail(TUTTI_FORMAT, "%s: '%s' and '%s' have not equally many samples: %lld and %lld", path, inputs->name,
            targets->name, x->rank ? (long long)x->sizes[0] : 1LL, y->rank ? (long long)y->sizes[0] : 1LL);
    if (x->text > 0)
        return fail(TUTTI_FORMAT, "%s: '%s' has texts: inputs are numbers; texts may be targets, or columns of a table",
            path, inputs->name);
    if (x->bytes == 0 || y->bytes == 0)
        return fail(TUTTI_FORMAT, "%s: '%s' or its targets are empty", path, inputs->name);
    return TUTTI_OK;
}

static bool same_rows(const struct npz_array *a, const struct npz_array *b)
{
    bool same = a->type == b->type && a->rank == b->rank && (a->text > 0) == (b->text > 0);
    const int last = a->text > 0 && b->text > 0 ? a->rank - 1 : a->rank; /* texts may be longer */
    for (int i = 1; same && i < last; i++) same = a->sizes[i] == b->sizes[i];
    return same;
}

static tutti_status check_pairs(const char *path, const struct array_pairs *pairs)
{
    const struct array_rows *inputs = NULL, *targets = NULL;
    for (int i = 0; i < ARRAYS_SLOTS; i++) {
        const struct array_rows *x = &pairs->inputs[i], *y = &pairs->targets[i];
        const tutti_status status = check_pair(path, x, y);
        if (status != TUTTI_OK) return status;
        if (!x->name) continue;
        if (inputs && (!same_rows(x->array, inputs->array) || !same_rows(y->array, targets->array)))
            return fail(TUTTI_FORMAT, "%s: samples or targets of '%s' and '%s' differ in type or shape", path,
                inputs->name, x->name);
        inputs = x;
        targets = y;
    }
    if (pairs->inputs[0].name && (pairs->inputs[1].name || pairs->inputs[2].name || pairs->inputs[3].name))
        return fail(TUTTI_FORMAT, "%s: '%s' belongs to no part, but others do: call it train_%s", path,
            pairs->inputs[0].name, pairs->inputs[0].name);
    return TUTTI_OK;
}

/* Finds the arrays next to a .npy file, in the folder that it is in, if its name says what it is. */
static tutti_status find_siblings(const char *path, struct array_pairs *pairs)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char *name = memory_format("%.*s", (int)(strlen(file) - 4), file);
    struct role role;
    if (!name) return TUTTI_NO_MEMORY;
    const bool known = find_role(name, &role);
    free(name);
    if (!known)
        return fail(
            TUTTI_INVALID, "%s: a .npy file has one array: call it x.npy, with its targets in y.npy next to it", path);
    char *folder = slash ? memory_format("%.*s", (int)(slash - path + 1), path) : memory_copy_text(".");
    const tutti_status status = folder ? find_files(folder, "", pairs) : TUTTI_NO_MEMORY;
    free(folder);
    return status;
}

tutti_status array_pairs_open(const char *path, struct array_pairs *pairs, bool *found)
{
    struct stat info;
    tutti_status status = TUTTI_OK;
    *pairs = (struct array_pairs) { .npz = NULL };
    *found = false;
    if (stat(path, &info) != 0) return TUTTI_OK;
    if (S_ISDIR(info.st_mode))
        status = find_files(path, "", pairs);
    else if (text_has_extension(path, ".npz"))
        status = find_members(path, pairs);
    else if (text_has_extension(path, ".npy"))
        status = find_siblings(path, pairs);
    if (status == TUTTI_OK) status = check_pairs(path, pairs);
    for (int i = 0; i < ARRAYS_SLOTS; i++) *found = *found || pairs->inputs[i].name;
    if (status != TUTTI_OK) array_pairs_close(pairs);
    return status;
}

void array_pairs_close(struct array_pairs *pairs)
{
    for (int i = 0; i < ARRAYS_SLOTS; i++) {
        free(pairs->inputs[i].name);
        free(pairs->targets[i].name);
        npy_rows_close(pairs->inputs[i].rows);
        npy_rows_close(pairs->targets[i].rows);
    }
    npz_close(pairs->npz);
    *pairs = (struct array_pairs) { .npz = NULL };
}
