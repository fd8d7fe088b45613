#include "formats/npz.h"

#include "base/half.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/zip.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct npz {
    bool texts; /* arrays of these may be read */
    struct npz_array *arrays;
    char **names;
    int count;
};

static const char suffix[] = ".npy";

static tutti_status make_room(struct npz *file, size_t count)
{
    if (count >= INT_MAX) return fail(TUTTI_FORMAT, "it has more arrays than can be read");
    file->arrays = memory_new(count + 1, sizeof *file->arrays);
    file->names = memory_new(count + 1, sizeof *file->names);
    return file->arrays && file->names ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Adds an array. It takes the name over, also on failure. */
static tutti_status add(struct npz *file, char *name, const unsigned char *bytes, size_t size)
{
    struct npz_array *array = &file->arrays[file->count];
    if (!name) return TUTTI_NO_MEMORY;
    array->name = file->names[file->count++] = name;
    tutti_status status = npy_decode(bytes, size, array);
    if (status == TUTTI_OK && array->text > 0 && !file->texts)
        status = fail(TUTTI_FORMAT, "its elements have type '%s%d', texts, but only numbers can be read here",
            array->type == NPZ_U32 ? "<U" : "|S", array->text);
    return status == TUTTI_OK ? status : status_context(status, "array \"%s\"", name);
}

static tutti_status read_members(struct npz *file, struct zip *zip)
{
    tutti_status status = TUTTI_OK;
    TRY(make_room(file, zip_count(zip)));
    for (size_t i = 0; i < zip_count(zip); i++) {
        const char *name = zip_name(zip, i);
        const unsigned char *bytes;
        size_t size;
        if (!text_ends_with(name, suffix))
            FAIL(TUTTI_FORMAT, "member \"%s\" is not an array: names of arrays end in .npy in a .npz file", name);
        TRY(zip_member(zip, i, &bytes, &size));
        TRY(add(file, memory_format("%.*s", (int)(strlen(name) + 1 - sizeof suffix), name), bytes, size));
    }
done:
    return status;
}

static tutti_status read_zip(struct npz *file, const char *path)
{
    struct zip *zip = NULL;
    tutti_status status = zip_open(path, &zip);
    if (status != TUTTI_OK) return status;
    status = read_members(file, zip);
    zip_close(zip);
    return status == TUTTI_OK ? status : status_context(status, "%s", path);
}

static tutti_status read_array(struct npz *file, const char *path)
{
    unsigned char *bytes = NULL;
    size_t size;
    tutti_status status = file_read(path, SIZE_MAX / 2, &bytes, &size);
    if (status != TUTTI_OK) return status;
    status = make_room(file, 1);
    if (status == TUTTI_OK) status = add(file, memory_copy_text(""), bytes, size);
    free(bytes);
    return status == TUTTI_OK ? status : status_context(status, "%s", path);
}

/* Tells whether the file begins as a .npy file does. A file that cannot be read does not; its reader then says
 * why. */
static bool is_one_array(const char *path)
{
    unsigned char begin[8];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const size_t size = fread(begin, 1, sizeof begin, file);
    (void)fclose(file);
    return npy_is(begin, size);
}

static tutti_status open_file(const char *path, bool texts, struct npz **opened)
{
    *opened = NULL;
    struct npz *file = memory_new(1, sizeof *file);
    if (!file) return TUTTI_NO_MEMORY;
    file->texts = texts;
    const tutti_status status = is_one_array(path) ? read_array(file, path) : read_zip(file, path);
    if (status == TUTTI_OK)
        *opened = file;
    else
        npz_close(file);
    return status;
}

tutti_status npz_open(const char *path, struct npz **opened)
{
    return open_file(path, false, opened);
}

tutti_status npz_open_with_texts(const char *path, struct npz **opened)
{
    return open_file(path, true, opened);
}

void npz_close(struct npz *file)
{
    if (!file) return;
    for (int i = 0; i < file->count; i++) {
        free(file->names[i]);
        free(file->arrays[i].data);
    }
    free(file->names);
    free(file->arrays);
    free(file);
}

int npz_count(const struct npz *file)
{
    return file->count;
}

const struct npz_array *npz_at(const struct npz *file, int position)
{
    return position >= 0 && position < file->count ? &file->arrays[position] : NULL;
}

const struct npz_array *npz_find(const struct npz *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->arrays[i].name, name)) return &file->arrays[i];
    return NULL;
}

/* --------------------------------------------------------------------------------------------------- write ---- */

static tutti_status write_array(struct atomic_file *file, const struct npz_array *array)
{
    tutti_status status = TUTTI_OK;
    unsigned char header[NPY_HEADER];
    size_t header_bytes, bytes;
    TRY(npy_header(array, header, &header_bytes, &bytes));
    TRY(atomic_file_write(file, header, header_bytes));
    if (bytes) TRY(atomic_file_write(file, array->data, bytes));
done:
    return status;
}

static tutti_status save_array(const char *path, const struct npz_array *array)
{
    struct atomic_file *file = NULL;
    tutti_status status = atomic_file_open(&file, path);
    if (status != TUTTI_OK) return status;
    status = write_array(file, array);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}

static tutti_status add_member(struct zip_writer *writer, const struct npz_array *array)
{
    tutti_status status = TUTTI_OK;
    unsigned char header[NPY_HEADER];
    size_t header_bytes, bytes;
    char *name = memory_format("%s%s", array->name, suffix);
    if (!name) return TUTTI_NO_MEMORY;
    TRY(npy_header(array, header, &header_bytes, &bytes));
    TRY(zip_add(writer, name, header, header_bytes, array->data, bytes));
done:
    free(name);
    return status;
}

tutti_status npz_save(const char *path, const struct npz_array *arrays, int count)
{
    struct zip_writer *writer = NULL;
    if (text_ends_with(path, suffix)) {
        if (count == 1) return save_array(path, arrays);
        return fail(TUTTI_INVALID, "%s would have %d arrays, but a .npy file has one: write a .npz file", path, count);
    }
    tutti_status status = zip_create(path, &writer);
    for (int i = 0; i < count && status == TUTTI_OK; i++) status = add_member(writer, &arrays[i]);
    if (status == TUTTI_OK) return zip_commit(writer);
    zip_abandon(writer);
    return status;
}

/* ------------------------------------------------------------------------------------------------- elements ---- */

int64_t npz_integer(const struct npz_array *array, size_t i)
{
    const void *data = array->data;
    switch (array->type) {
    case NPZ_I8: return ((const int8_t *)data)[i];
    case NPZ_I16: return ((const int16_t *)data)[i];
    case NPZ_U16: return ((const uint16_t *)data)[i];
    case NPZ_I32: return ((const int32_t *)data)[i];
    case NPZ_U32: return ((const uint32_t *)data)[i];
    case NPZ_I64: return ((const int64_t *)data)[i];
    case NPZ_U64: return ((const uint64_t *)data)[i] < INT64_MAX ? (int64_t)((const uint64_t *)data)[i] : INT64_MAX;
    default: return ((const uint8_t *)data)[i];
    }
}

double npz_number(const struct npz_array *array, size_t i)
{
    const void *data = array->data;
    switch (array->type) {
    case NPZ_F16: return (double)half_to_float(((const uint16_t *)data)[i]);
    case NPZ_F32: return (double)((const float *)data)[i];
    case NPZ_F64: return ((const double *)data)[i];
    case NPZ_U64: return (double)((const uint64_t *)data)[i];
    default: return (double)npz_integer(array, i);
    }
}
