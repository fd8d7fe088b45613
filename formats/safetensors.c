#include "formats/safetensors.h"

#include "base/bf16.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/little_endian.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are written as they lie in memory, and the format is little endian"
#endif

#define METADATA "__metadata__"
#define LENGTH_BYTES 8
/* The limit of the format's own reader: beyond it a header is taken for an attack on memory. */
#define HEADER_LIMIT ((uint64_t)100 * 1000 * 1000)

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [SAFETENSORS_BOOL] = { "BOOL", 1 },
    [SAFETENSORS_U8] = { "U8", 1 },
    [SAFETENSORS_I8] = { "I8", 1 },
    [SAFETENSORS_U16] = { "U16", 2 },
    [SAFETENSORS_I16] = { "I16", 2 },
    [SAFETENSORS_F16] = { "F16", 2 },
    [SAFETENSORS_BF16] = { "BF16", 2 },
    [SAFETENSORS_U32] = { "U32", 4 },
    [SAFETENSORS_I32] = { "I32", 4 },
    [SAFETENSORS_F32] = { "F32", 4 },
    [SAFETENSORS_U64] = { "U64", 8 },
    [SAFETENSORS_I64] = { "I64", 8 },
    [SAFETENSORS_F64] = { "F64", 8 },
};
#define TYPE_COUNT ((int)(sizeof(types) / sizeof(types[0])))
_Static_assert(TYPE_COUNT == SAFETENSORS_OTHER, "each type has a name and a size");

struct safetensors {
    char *path;
    unsigned char *bytes;               /* the whole file */
    json_t *header;                     /* owns the names */
    struct safetensors_tensor *tensors; /* in the order of their data */
    const struct safetensors_tensor **by_name;
    size_t count;
};

size_t safetensors_type_size(enum safetensors_type type)
{
    return type == SAFETENSORS_OTHER ? 0 : types[type].size;
}

bool safetensors_has_floats(const struct safetensors_tensor *tensor)
{
    return tensor->type == SAFETENSORS_F64 || tensor->type == SAFETENSORS_F32 || tensor->type == SAFETENSORS_F16 ||
        tensor->type == SAFETENSORS_BF16;
}

static float float_at(enum safetensors_type type, const unsigned char *element)
{
    double wide;
    uint16_t bits;
    if (type == SAFETENSORS_F64) {
        memcpy(&wide, element, sizeof(wide));
        return (float)wide;
    }
    memcpy(&bits, element, sizeof(bits));
    return type == SAFETENSORS_F16 ? half_to_float(bits) : bf16_to_float(bits);
}

void safetensors_some_floats(const struct safetensors_tensor *tensor, size_t first, size_t count, float *values)
{
    const size_t size = types[tensor->type].size;
    const unsigned char *from = (const unsigned char *)tensor->data + first * size;
    if (tensor->type == SAFETENSORS_F32)
        memcpy(values, from, count * size);
    else
        for (size_t i = 0; i < count; i++) values[i] = float_at(tensor->type, from + i * size);
}

void safetensors_floats(const struct safetensors_tensor *tensor, float *values)
{
    safetensors_some_floats(tensor, 0, tensor->bytes / types[tensor->type].size, values);
}

const void *safetensors_data(const struct safetensors_tensor *tensor, void **memory)
{
    *memory = NULL;
    if (tensor->data || !tensor->make) return tensor->data;
    *memory = memory_new(tensor->bytes, 1);
    if (*memory) tensor->make(tensor, *memory);
    return *memory;
}

/* ------------------------------------------------------------------------------------------------- reading ---- */

static tutti_status read_type(
    const struct safetensors *file, const char *name, const json_t *entry, struct safetensors_tensor *tensor)
{
    tensor->dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!tensor->dtype)
        return fail(TUTTI_FORMAT, "%s: tensor '%s' has no dtype", file->path, text_printable(name).text);
    int type = 0;
    while (type < TYPE_COUNT && strcmp(types[type].name, tensor->dtype) != 0) type++;
    tensor->type = (enum safetensors_type)type; /* after the last: SAFETENSORS_OTHER */
    return TUTTI_OK;
}

static tutti_status read_sizes(
    const struct safetensors *file, const char *name, const json_t *entry, struct safetensors_tensor *tensor)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return fail(TUTTI_FORMAT, "%s: tensor '%s' has no shape", file->path, text_printable(name).text);
    size_t rank = json_array_size(shape);
    if (rank > SAFETENSORS_MAX_RANK)
        return fail(TUTTI_FORMAT, "%s: tensor '%s' has %zu dimensions: at most %d can be read", file->path,
            text_printable(name).text, rank, SAFETENSORS_MAX_RANK);
    tensor->rank = (int)rank;
    tensor->bytes = tensor->type == SAFETENSORS_OTHER ? 1 : types[tensor->type].size;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return fail(TUTTI_FORMAT, "%s: tensor '%s': the size of dimension %zu is not a whole number of at least 0",
                file->path, text_printable(name).text, i);
        tensor->sizes[i] = json_integer_value(size);
        if (!size_multiply(tensor->bytes, (size_t)tensor->sizes[i], &tensor->bytes))
            return fail(TUTTI_FORMAT, "%s: tensor '%s' has more elements than fit into memory", file->path,
                text_printable(name).text);
    }
    return TUTTI_OK;
}

static tutti_status read_offsets(const struct safetensors *file, const char *name, const json_t *entry,
    const unsigned char *data, size_t data_bytes, struct safetensors_tensor *tensor)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return fail(
            TUTTI_FORMAT, "%s: tensor '%s' has no data_offsets of two numbers", file->path, text_printable(name).text);
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes)
        return fail(TUTTI_FORMAT,
            "%s: tensor '%s' has bytes %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT
            " of %zu bytes of data: the file is truncated or damaged",
            file->path, text_printable(name).text, begin, end, data_bytes);
    if (tensor->type == SAFETENSORS_OTHER)
        tensor->bytes = (size_t)(end - begin); /* the sizes of elements are unknown */
    if ((uint64_t)(end - begin) != tensor->bytes)
        return fail(TUTTI_FORMAT, "%s: tensor '%s' has a shape of %zu bytes but data of %" JSON_INTEGER_FORMAT,
            file->path, text_printable(name).text, tensor->bytes, end - begin);
    tensor->data = data + begin;
    return TUTTI_OK;
}

static tutti_status read_tensor(const struct safetensors *file, const char *name, const json_t *entry,
    const unsigned char *data, size_t data_bytes, struct safetensors_tensor *tensor)
{
    tutti_status status = TUTTI_OK;
    if (!json_is_object(entry))
        FAIL(TUTTI_FORMAT, "%s: the entry of tensor '%s' is not an object", file->path, text_printable(name).text);
    tensor->name = name;
    TRY(read_type(file, name, entry, tensor));
    TRY(read_sizes(file, name, entry, tensor));
    TRY(read_offsets(file, name, entry, data, data_bytes, tensor));
done:
    return status;
}

static tutti_status check_metadata(const struct safetensors *file)
{
    json_t *metadata = json_object_get(file->header, METADATA), *value;
    const char *key;
    if (!metadata) return TUTTI_OK;
    if (!json_is_object(metadata)) return fail(TUTTI_FORMAT, "%s: %s is not an object", file->path, METADATA);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return fail(TUTTI_FORMAT, "%s: %s: the value of '%s' is not a string", file->path, METADATA,
                text_printable(key).text);
    }
    return TUTTI_OK;
}

static tutti_status parse_header(struct safetensors *file, size_t file_bytes, size_t *header_bytes)
{
    if (file_bytes < LENGTH_BYTES)
        return fail(TUTTI_FORMAT,
            "%s: %zu bytes are too few for a safetensors file: the file is truncated or of another format", file->path,
            file_bytes);
    const uint64_t length = read_le64(file->bytes);
    if (length > HEADER_LIMIT)
        return fail(TUTTI_FORMAT, "%s: the header would have %" PRIu64 " bytes: this is not a safetensors file",
            file->path, length);
    if (length > file_bytes - LENGTH_BYTES)
        return fail(TUTTI_FORMAT, "%s: the header needs %" PRIu64 " bytes, but the file has only %zu: it is truncated",
            file->path, length, file_bytes);
    const char *text = (const char *)file->bytes + LENGTH_BYTES;
    json_error_t error;
    if (length > 0 && text[0] == '{')
        file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    else
        strcpy(error.text, "it does not begin with '{'");
    if (!file->header)
        return fail(TUTTI_FORMAT, "%s: the header is not valid JSON: %s", file->path, text_printable(error.text).text);
    *header_bytes = (size_t)length;
    return check_metadata(file);
}

static int compare_offsets(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    if (a->data != b->data) return (const char *)a->data < (const char *)b->data ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; /* empty arrays before the one that begins there */
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp((*(const struct safetensors_tensor *const *)left)->name,
        (*(const struct safetensors_tensor *const *)right)->name);
}

/* The arrays must cover the data exactly: an overlap or a hole is how a file smuggles what its reader does not see. */
static tutti_status check_cover(const struct safetensors *file, const unsigned char *data, size_t data_bytes)
{
    const unsigned char *end = data;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        if ((const unsigned char *)tensor->data != end)
            return fail(TUTTI_FORMAT, "%s: tensor '%s' begins at byte %zu, %s", file->path,
                text_printable(tensor->name).text, (size_t)((const unsigned char *)tensor->data - data),
                (const unsigned char *)tensor->data < end ? "inside another tensor"
                                                          : "after bytes that belong to no tensor");
        end += tensor->bytes;
    }
    if (end != data + data_bytes)
        return fail(TUTTI_FORMAT, "%s: %zu bytes follow the last tensor: the file is longer than its header states",
            file->path, (size_t)(data + data_bytes - end));
    return TUTTI_OK;
}

static tutti_status index_tensors(struct safetensors *file, const unsigned char *data, size_t data_bytes)
{
    tutti_status status = TUTTI_OK;
    size_t entries = json_object_size(file->header);
    file->tensors = memory_new(entries + 1, sizeof(*file->tensors));
    file->by_name = memory_new(entries + 1, sizeof(*file->by_name));
    if (!file->tensors || !file->by_name) return TUTTI_NO_MEMORY;
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, METADATA) == 0) continue;
        TRY(read_tensor(file, name, entry, data, data_bytes, &file->tensors[file->count]));
        file->count++;
    }
    qsort(file->tensors, file->count, sizeof(*file->tensors), compare_offsets);
    TRY(check_cover(file, data, data_bytes));
    for (size_t i = 0; i < file->count; i++) file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->count, sizeof(*file->by_name), compare_names);
done:
    return status;
}

tutti_status safetensors_open(const char *path, struct safetensors **file)
{
    tutti_status status = TUTTI_OK;
    size_t file_bytes = 0, header_bytes = 0;
    *file = NULL;
    struct safetensors *opened = memory_new(1, sizeof(*opened));
    if (!opened) return TUTTI_NO_MEMORY;
    opened->path = memory_copy_text(path);
    if (!opened->path) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(file_read(path, SIZE_MAX / 2, &opened->bytes, &file_bytes));
    TRY(parse_header(opened, file_bytes, &header_bytes));
    header_bytes += LENGTH_BYTES;
    TRY(index_tensors(opened, opened->bytes + header_bytes, file_bytes - header_bytes));
    *file = opened;
    opened = NULL;
done:
    safetensors_close(opened);
    return status;
}

void safetensors_close(struct safetensors *file)
{
    if (!file) return;
    json_decref(file->header);
    free(file->path);
    free(file->bytes);
    free(file->tensors);
    free(file->by_name);
    free(file);
}

int safetensors_count(const struct safetensors *file)
{
    return (int)file->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *file, int position)
{
    return position >= 0 && (size_t)position < file->count ? &file->tensors[position] : NULL;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    struct safetensors_tensor wanted = { .name = name };
    const struct safetensors_tensor *key = &wanted;
    const struct safetensors_tensor **found =
        bsearch(&key, file->by_name, file->count, sizeof(*file->by_name), compare_names);
    return found ? *found : NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

const char *safetensors_metadata_key(const struct safetensors *file, const char *before)
{
    json_t *metadata = json_object_get(file->header, METADATA);
    void *at =
        before ? json_object_iter_next(metadata, json_object_iter_at(metadata, before)) : json_object_iter(metadata);
    return at ? json_object_iter_key(at) : NULL;
}

/* ------------------------------------------------------------------------------------------------- writing ---- */

static tutti_status tensor_bytes(const struct safetensors_tensor *tensor, size_t *bytes)
{
    if ((int)tensor->type < 0 || (int)tensor->type >= TYPE_COUNT || tensor->rank < 0 ||
        tensor->rank > SAFETENSORS_MAX_RANK)
        return fail(TUTTI_INVALID,
            "tensor '%s' of type %d and rank %d cannot be written: the type is unknown or the rank too large",
            tensor->name, (int)tensor->type, tensor->rank);
    *bytes = types[tensor->type].size;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->sizes[i] < 0 || !size_multiply(*bytes, (size_t)tensor->sizes[i], bytes))
            return fail(TUTTI_INVALID, "tensor '%s': size %" PRId64 " of dimension %d is out of range", tensor->name,
                tensor->sizes[i], i);
    }
    return TUTTI_OK;
}

/* Adds one entry; jansson refuses names that are not UTF-8. The reference to each value is taken over. */
static tutti_status add_entry(json_t *header, const struct safetensors_tensor *tensor, size_t begin, size_t end)
{
    if (strcmp(tensor->name, METADATA) == 0 || json_object_get(header, tensor->name))
        return fail(TUTTI_INVALID, "tensor '%s' occurs twice: names in a file must differ", tensor->name);
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++) json_array_append_new(shape, json_integer(tensor->sizes[i]));
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[tensor->type].name, "shape", shape, "data_offsets",
        (json_int_t)begin, (json_int_t)end);
    if (!entry || json_array_size(json_object_get(entry, "shape")) != (size_t)tensor->rank) {
        json_decref(entry);
        return fail(TUTTI_NO_MEMORY, "no memory for the header of a safetensors file");
    }
    if (json_object_set_new(header, tensor->name, entry) != 0)
        return fail(TUTTI_INVALID, "tensor name '%s' is not valid UTF-8", text_printable(tensor->name).text);
    return TUTTI_OK;
}

static tutti_status add_metadata(json_t *header, const struct safetensors_metadata *metadata, int count)
{
    if (count == 0) return TUTTI_OK;
    json_t *object = json_object();
    for (int i = 0; i < count; i++) {
        if (json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)) != 0) {
            json_decref(object);
            return fail(TUTTI_INVALID, "metadata '%s' is not valid UTF-8", text_printable(metadata[i].key).text);
        }
    }
    if (json_object_set_new(header, METADATA, object) != 0)
        return fail(TUTTI_NO_MEMORY, "no memory for the header of a safetensors file");
    return TUTTI_OK;
}

/* order[] gets the positions of the tensors as they are laid out: larger elements first, so that all stay aligned. */
static tutti_status make_header(const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count, json_t *header, int *order)
{
    tutti_status status = TUTTI_OK;
    size_t offset = 0;
    int placed = 0;
    TRY(add_metadata(header, metadata, metadata_count));
    for (size_t width = 8; width >= 1; width /= 2) {
        for (int i = 0; i < count; i++) {
            size_t bytes, end;
            TRY(tensor_bytes(&tensors[i], &bytes));
            if (types[tensors[i].type].size != width) continue;
            if (!size_add(offset, bytes, &end) || end > INT64_MAX)
                FAIL(TUTTI_INVALID, "tensor '%s': the file would be too large", tensors[i].name);
            TRY(add_entry(header, &tensors[i], offset, end));
            offset = end;
            order[placed++] = i;
        }
    }
done:
    return status;
}

static tutti_status write_header(struct atomic_file *file, const json_t *header)
{
    tutti_status status = TUTTI_OK;
    unsigned char length_bytes[LENGTH_BYTES];
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text) FAIL(TUTTI_NO_MEMORY, "no memory for the header of a safetensors file");
    size_t length = strlen(text), padded = size_round_up(length, 8);
    for (int i = 0; i < LENGTH_BYTES; i++) length_bytes[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    TRY(atomic_file_write(file, length_bytes, sizeof(length_bytes)));
    TRY(atomic_file_write(file, text, length));
    TRY(atomic_file_write(file, "       ", padded - length));
done:
    free(text);
    return status;
}

tutti_status safetensors_write(struct atomic_file *file, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count)
{
    tutti_status status = TUTTI_OK;
    json_t *header = json_object();
    int *order = memory_new((size_t)count + 1, sizeof(*order));
    if (!header || !order) FAIL(TUTTI_NO_MEMORY, "no memory for the header of a safetensors file");
    TRY(make_header(tensors, count, metadata, metadata_count, header, order));
    TRY(write_header(file, header));
    for (int i = 0; i < count; i++) {
        const struct safetensors_tensor *tensor = &tensors[order[i]];
        size_t bytes;
        void *memory;
        TRY(tensor_bytes(tensor, &bytes));
        const void *data = safetensors_data(tensor, &memory);
        status = bytes == 0 ? TUTTI_OK : data ? atomic_file_write(file, data, bytes) : TUTTI_NO_MEMORY;
        free(memory);
        if (status != TUTTI_OK) goto done;
    }
done:
    json_decref(header);
    free(order);
    return status;
}

tutti_status safetensors_save(const char *path, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count)
{
    struct atomic_file *file;
    tutti_status status = atomic_file_open(&file, path);
    if (status != TUTTI_OK) return status;
    status = safetensors_write(file, tensors, count, metadata, metadata_count);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}
