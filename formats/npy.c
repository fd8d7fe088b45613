#include "formats/npy.h"

#include "base/memory.h"
#include "base/status.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are written as they lie in memory, and their headers say little endian"
#endif

static const unsigned char magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
enum { MAGIC = sizeof magic, ALIGNMENT = 64 };

static const struct {
    const char *name;
    char code[3]; /* after the order of bytes */
    size_t bytes;
} types[] = {
    [NPZ_BOOL] = { "bool", "b1", 1 },
    [NPZ_I8] = { "int8", "i1", 1 },
    [NPZ_U8] = { "uint8", "u1", 1 },
    [NPZ_I16] = { "int16", "i2", 2 },
    [NPZ_U16] = { "uint16", "u2", 2 },
    [NPZ_F16] = { "float16", "f2", 2 },
    [NPZ_I32] = { "int32", "i4", 4 },
    [NPZ_U32] = { "uint32", "u4", 4 },
    [NPZ_F32] = { "float32", "f4", 4 },
    [NPZ_I64] = { "int64", "i8", 8 },
    [NPZ_U64] = { "uint64", "u8", 8 },
    [NPZ_F64] = { "float64", "f8", 8 },
};
enum { TYPES = sizeof types / sizeof *types };

const char *npz_type_name(enum npz_type type)
{
    return types[type].name;
}

size_t npz_type_size(enum npz_type type)
{
    return types[type].bytes;
}

/* -------------------------------------------------------------------------------------------------- header ---- */

/* The text of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, with spaces where one likes. */
struct header {
    const char *at, *end;
    bool has_type, has_order, has_shape;
    bool columns_first, swapped;
};

static void skip_spaces(struct header *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n')) header->at++;
}

/* Takes this text if it comes next, and moves past it. */
static bool take(struct header *header, const char *text)
{
    const size_t length = strlen(text);
    skip_spaces(header);
    if ((size_t)(header->end - header->at) < length || memcmp(header->at, text, length) != 0) return false;
    header->at += length;
    return true;
}

/* Takes a text in quotes of either kind. */
static bool take_text(struct header *header, char *text, size_t size)
{
    const char *quote = take(header, "'") ? "'" : take(header, "\"") ? "\"" : NULL;
    if (!quote) return false;
    const char *close = memchr(header->at, *quote, (size_t)(header->end - header->at));
    if (!close || (size_t)(close - header->at) >= size) return false;
    memcpy(text, header->at, (size_t)(close - header->at));
    text[close - header->at] = '\0';
    header->at = close + 1;
    return true;
}

/* Texts of a fixed length, of bytes (S5) or of Unicode's characters (U5). */
static bool is_text(const char *text, struct npz_array *array)
{
    char *end = NULL;
    if (!*text || !strchr("<>|=", *text) || (text[1] != 'S' && text[1] != 'U')) return false;
    const long length = text[2] >= '1' && text[2] <= '9' ? strtol(text + 2, &end, 10) : 0;
    if (length < 1 || length > INT_MAX / 4 || *end) return false;
    array->type = text[1] == 'S' ? NPZ_U8 : NPZ_U32;
    array->text = (int)length;
    return true;
}

static tutti_status read_type(struct header *header, struct npz_array *array)
{
    char text[16];
    if (!take_text(header, text, sizeof text))
        return fail(TUTTI_FORMAT, "its elements are structures or texts: only numbers can be read");
    header->swapped = text[0] == '>';
    array->text = 0;
    if (is_text(text, array)) return TUTTI_OK;
    for (int i = 0; i < TYPES; i++)
        if (strchr("<>|=", text[0]) && !strcmp(text + 1, types[i].code)) {
            array->type = (enum npz_type)i;
            return TUTTI_OK;
        }
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return fail(TUTTI_FORMAT,
        "its elements have type '%s': bool, int8 to int64, uint8 to uint64, float16, float32 and "
        "float64 can be read",
        text);
}

static bool take_size(struct header *header, int64_t *size)
{
    skip_spaces(header);
    const char *begin = header->at;
    *size = 0;
    for (; header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++) {
        if (*size > (INT64_MAX - 9) / 10) return false;
        *size = *size * 10 + (*header->at - '0');
    }
    return header->at > begin;
}

static tutti_status read_shape(struct header *header, struct npz_array *array)
{
    bool good = take(header, "(");
    array->rank = 0;
    while (good && !take(header, ")")) {
        if (array->rank == NPZ_MAX_RANK)
            return fail(TUTTI_FORMAT, "it has more than %d axes, which cannot be read", NPZ_MAX_RANK);
        good = take_size(header, &array->sizes[array->rank++]) && (take(header, ",") || take(header, ")"));
        if (good && header->at[-1] == ')') return TUTTI_OK;
    }
    return good ? TUTTI_OK : fail(TUTTI_FORMAT, "its header is damaged: the shape is not a list of sizes");
}

/* Reads a key and its value. */
static tutti_status read_entry(struct header *header, struct npz_array *array)
{
    char key[16];
    if (!take_text(header, key, sizeof key) || !take(header, ":"))
        return fail(TUTTI_FORMAT, "its header is damaged: it is not a dictionary of Python");
    bool *const seen = !strcmp(key, "descr") ? &header->has_type
        : !strcmp(key, "fortran_order")      ? &header->has_order
        : !strcmp(key, "shape")              ? &header->has_shape
                                             : NULL;
    if (!seen || *seen)
        return fail(TUTTI_FORMAT, "its header is damaged: it must have descr, fortran_order and shape, each once");
    *seen = true;
    if (seen == &header->has_type) return read_type(header, array);
    if (seen == &header->has_shape) return read_shape(header, array);
    header->columns_first = take(header, "True");
    if (header->columns_first || take(header, "False")) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "its header is damaged: fortran_order is neither True nor False");
}

static tutti_status read_header(struct header *header, struct npz_array *array)
{
    bool more = take(header, "{");
    while (more && !take(header, "}")) {
        const tutti_status status = read_entry(header, array);
        if (status != TUTTI_OK) return status;
        more = take(header, ",");
        if (!more && take(header, "}")) break;
    }
    skip_spaces(header);
    if (header->has_type && header->has_order && header->has_shape && header->at == header->end) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "its header is damaged: it is not a dictionary with descr, fortran_order and shape");
}

/* ------------------------------------------------------------------------------------------------ elements ---- */

static bool count_bytes(const struct npz_array *array, size_t *bytes)
{
    *bytes = types[array->type].bytes;
    for (int i = 0; i < array->rank; i++)
        if (array->sizes[i] < 0 || !size_multiply(*bytes, (size_t)array->sizes[i], bytes)) return false;
    return true;
}

/* Copies elements from the order in which the first index changes fastest to the order in which the last one does. */
static void copy_columns(const struct npz_array *array, const unsigned char *from)
{
    const size_t size = types[array->type].bytes;
    int64_t index[NPZ_MAX_RANK] = { 0 };
    size_t strides[NPZ_MAX_RANK], stride = size, source = 0;
    for (int i = 0; i < array->rank; i++) {
        strides[i] = stride;
        stride *= (size_t)array->sizes[i];
    }
    for (size_t at = 0; at < array->bytes; at += size) {
        memcpy((char *)array->data + at, from + source, size);
        for (int i = array->rank - 1; i >= 0; i--) {
            source += strides[i];
            if (++index[i] < array->sizes[i]) break;
            source -= strides[i] * (size_t)array->sizes[i];
            index[i] = 0;
        }
    }
}

static void swap_bytes(const struct npz_array *array)
{
    const size_t size = types[array->type].bytes;
    for (unsigned char *element = array->data, *end = element + array->bytes; element < end; element += size)
        for (size_t i = 0; i < size / 2; i++) {
            const unsigned char byte = element[i];
            element[i] = element[size - 1 - i];
            element[size - 1 - i] = byte;
        }
}

/* ----------------------------------------------------------------------------------------------- functions ---- */

bool npy_is(const unsigned char *bytes, size_t size)
{
    return size >= MAGIC && !memcmp(bytes, magic, MAGIC);
}

/* Version 1 has 2 bytes for the length of the header's text, later ones 4. */
static tutti_status find_text(const unsigned char *bytes, size_t size, struct header *header)
{
    const size_t width = size > MAGIC && bytes[MAGIC] == 1 ? 2 : 4, begin = MAGIC + 2 + width;
    if (!npy_is(bytes, size)) return fail(TUTTI_FORMAT, "it does not begin as arrays of NumPy do");
    if (size < begin) return fail(TUTTI_FORMAT, "it is cut within its header");
    if (bytes[MAGIC] < 1 || bytes[MAGIC] > 3)
        return fail(TUTTI_FORMAT, "it has version %d of NumPy's format: 1 to 3 can be read", bytes[MAGIC]);
    size_t length = 0;
    for (size_t i = 0; i < width; i++) length |= (size_t)bytes[MAGIC + 2 + i] << (8 * i);
    if (length > size - begin) return fail(TUTTI_FORMAT, "it is cut within its header");
    *header = (struct header) { .at = (const char *)bytes + begin, .end = (const char *)bytes + begin + length };
    return TUTTI_OK;
}

static tutti_status add_text_axis(struct npz_array *array, const struct npy_layout *layout)
{
    if (array->rank == NPZ_MAX_RANK || layout->columns_first)
        return fail(TUTTI_FORMAT, "it has texts on %d axes, which cannot be read", array->rank);
    array->sizes[array->rank++] = array->text;
    return TUTTI_OK;
}

tutti_status npy_describe(
    const unsigned char *bytes, size_t available, uint64_t size, struct npz_array *array, struct npy_layout *layout)
{
    tutti_status status = TUTTI_OK;
    struct header header = { 0 };
    array->data = NULL;
    array->text = 0;
    TRY(find_text(bytes, available, &header));
    layout->begin = (size_t)((const unsigned char *)header.end - bytes);
    TRY(read_header(&header, array));
    layout->columns_first = header.columns_first && array->rank > 1;
    if (array->text > 0) TRY(add_text_axis(array, layout));
    layout->swapped = header.swapped;
    if (!count_bytes(array, &array->bytes) || array->bytes != size - layout->begin)
        FAIL(TUTTI_FORMAT, "it has %" PRIu64 " bytes of elements, which do not fit its shape: it is damaged",
            size - layout->begin);
done:
    return status;
}

void npy_swap(enum npz_type type, void *elements, size_t bytes)
{
    swap_bytes(&(struct npz_array) { .type = type, .data = elements, .bytes = bytes });
}

tutti_status npy_decode(const unsigned char *bytes, size_t size, struct npz_array *array)
{
    struct npy_layout layout;
    const tutti_status status = npy_describe(bytes, size, size, array, &layout);
    if (status != TUTTI_OK) return status;
    const unsigned char *elements = bytes + layout.begin;
    array->data = malloc(array->bytes + 1);
    if (!array->data) return fail(TUTTI_NO_MEMORY, "no memory for its %zu bytes", array->bytes);
    if (layout.columns_first)
        copy_columns(array, elements);
    else
        memcpy(array->data, elements, array->bytes);
    if (layout.swapped) swap_bytes(array);
    return TUTTI_OK;
}

tutti_status npy_header(
    const struct npz_array *array, unsigned char header[NPY_HEADER], size_t *header_bytes, size_t *bytes)
{
    const size_t begin = MAGIC + 4;
    char shape[24 * NPZ_MAX_RANK] = "";
    if (array->rank < 0 || array->rank > NPZ_MAX_RANK || !count_bytes(array, bytes))
        return fail(
            TUTTI_INVALID, "array \"%s\" is larger than memory, or has more than %d axes", array->name, NPZ_MAX_RANK);
    for (int i = 0; i < array->rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%" PRId64 "%s", i ? " " : "", array->sizes[i],
            array->rank == 1 || i < array->rank - 1 ? "," : "");
    memset(header, ' ', NPY_HEADER);
    memcpy(header, magic, MAGIC);
    const int length = snprintf((char *)header + begin, NPY_HEADER - begin,
        "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }", types[array->type].bytes == 1 ? '|' : '<',
        types[array->type].code, shape);
    *header_bytes = size_round_up(begin + (size_t)length + 1, ALIGNMENT);
    header[begin + (size_t)length] = ' ';
    header[*header_bytes - 1] = '\n';
    const size_t text = *header_bytes - begin;
    memcpy(header + MAGIC, (unsigned char[]) { 1, 0, (unsigned char)text, (unsigned char)(text >> 8) }, 4);
    return TUTTI_OK;
}
