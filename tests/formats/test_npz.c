/* .npy and .npz files: those of numpy (make_npz.py), our own, and damaged ones. */
#include "formats.h"

#include "base/file.h"
#include "formats/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *numpys(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/formats/files/%s", getenv("TUTTI_SOURCE"), name);
    return path;
}

static double element(const struct npz_array *array, size_t i)
{
    const unsigned char *at = (const unsigned char *)array->data + i * npz_type_size(array->type);
    switch (array->type) {
    case NPZ_I8: return *(const signed char *)at;
    case NPZ_I16: return *(const int16_t *)(const void *)at;
    case NPZ_U16: return *(const uint16_t *)(const void *)at;
    case NPZ_I32: return *(const int32_t *)(const void *)at;
    case NPZ_U32: return *(const uint32_t *)(const void *)at;
    case NPZ_F32: return *(const float *)(const void *)at;
    case NPZ_I64: return (double)*(const int64_t *)(const void *)at;
    case NPZ_U64: return (double)*(const uint64_t *)(const void *)at;
    case NPZ_F64: return *(const double *)(const void *)at;
    default: return *at; /* and half precision, which is compared by its bits */
    }
}

static struct npz *opened(const char *path)
{
    struct npz *file = NULL;
    ck_assert_msg(npz_open(path, &file) == TUTTI_OK, "%s", status_message());
    return file;
}

static void expect_columns(const struct npz_array *array)
{
    ck_assert_int_eq(array->type, NPZ_F32);
    ck_assert_int_eq(array->rank, 3);
    ck_assert(array->sizes[0] == 2 && array->sizes[1] == 3 && array->sizes[2] == 4);
    for (size_t i = 0; i < 24; i++) ck_assert_double_eq(element(array, i), (double)i);
}

static void expect_numpys(const char *name, bool packed)
{
    struct npz *file = opened(numpys(name));
    ck_assert_int_eq(npz_count(file), packed ? 17 : 16);
    for (int type = NPZ_BOOL; type <= NPZ_F64; type++) {
        const struct npz_array *array = npz_find(file, npz_type_name((enum npz_type)type));
        ck_assert_ptr_nonnull(array);
        ck_assert_int_eq(array->type, type);
        ck_assert(array->rank == 2 && array->sizes[0] == 2 && array->sizes[1] == 3);
        for (size_t i = 0; i < 6 && type != NPZ_F16; i++)
            ck_assert_double_eq(element(array, i), (double)(type == NPZ_BOOL ? i % 2 : i));
    }
    ck_assert_mem_eq(npz_find(file, "float16")->data, ((uint16_t[]) { 0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500 }), 12);
    expect_columns(npz_find(file, "columns"));
    ck_assert_double_eq(element(npz_find(file, "big"), 4), 4);
    ck_assert_int_eq(npz_find(file, "scalar")->rank, 0);
    ck_assert_double_eq(element(npz_find(file, "scalar"), 0), 2.5);
    ck_assert_uint_eq(npz_find(file, "empty")->bytes, 0);
    ck_assert_ptr_null(npz_find(file, "none"));
    ck_assert_ptr_null(npz_at(file, npz_count(file)));
    npz_close(file);
}

START_TEST(reads_numpys)
{
    expect_numpys("stored.npz", false);
    expect_numpys("deflated.npz", true);
    struct npz *file = opened(numpys("columns.npy"));
    ck_assert_int_eq(npz_count(file), 1);
    ck_assert_str_eq(npz_at(file, 0)->name, "");
    expect_columns(npz_at(file, 0));
    npz_close(file);
}
END_TEST

START_TEST(reads_what_it_wrote)
{
    float values[6] = { 0, 1, 2, 3, 4, 5 };
    int64_t scalar = -7;
    const struct npz_array arrays[] = {
        { .name = "a/b.c", .type = NPZ_F32, .rank = 2, .sizes = { 3, 2 }, .data = values },
        { .name = "\xc3\xa4", .type = NPZ_I64, .data = &scalar },
        { .name = "none", .type = NPZ_U8, .rank = 8, .sizes = { 1, 1, 1, 1, 1, 1, 1, 0 } },
    };
    const char *path = in_folder("own.npz");
    ck_assert_msg(npz_save(path, arrays, 3) == TUTTI_OK, "%s", status_message());
    struct npz *file = opened(path);
    ck_assert_int_eq(npz_count(file), 3);
    ck_assert_int_eq(npz_at(file, 0)->sizes[0], 3);
    ck_assert_mem_eq(npz_find(file, "a/b.c")->data, values, sizeof values);
    ck_assert_double_eq(element(npz_find(file, "\xc3\xa4"), 0), -7);
    ck_assert_int_eq(npz_find(file, "none")->rank, 8);
    npz_close(file);
    path = in_folder("own.npy");
    expect_failure(npz_save(path, arrays, 2), TUTTI_INVALID, "own.npy", "2 arrays");
    ck_assert_int_eq(npz_save(path, arrays, 1), TUTTI_OK);
    file = opened(path);
    ck_assert_mem_eq(npz_at(file, 0)->data, values, sizeof values);
    npz_close(file);
}
END_TEST

/* ------------------------------------------------------------------------------------------- damaged files ---- */

static void expect_refused(const void *bytes, size_t size, const char *reason)
{
    struct npz *file = NULL;
    write_bytes(in_folder("damaged"), bytes, size);
    expect_failure(npz_open(in_folder("damaged"), &file), TUTTI_FORMAT, "damaged", reason);
    ck_assert_ptr_null(file);
}

static void expect_header(const char *text, const char *reason)
{
    unsigned char bytes[512] = "\x93NUMPY\x01";
    const size_t length = strlen(text);
    bytes[8] = (unsigned char)length;
    memcpy(bytes + 10, text, length);
    if (reason) {
        expect_refused(bytes, 10 + length + 24, reason);
        return;
    }
    write_bytes(in_folder("good"), bytes, 10 + length + 24);
    npz_close(opened(in_folder("good")));
}

START_TEST(refuses_headers)
{
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", NULL);
    expect_header("{\"shape\":(6,),\"descr\":\"<f4\",\"fortran_order\":True}", NULL);
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", "24 bytes");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3)}", "once");
    expect_header("{'descr': '<f4', 'fortran_order': False}", "not a dictionary");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "not a dictionary");
    expect_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}", "neither");
    expect_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "'|O'");
    expect_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", "structures");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", "not a list");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "not a list");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "24 bytes");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6, 1, 1, 1, 1, 1, 1, 1, 1)}", "more than 8");
    expect_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6", "not a list");
    expect_header("[1]", "not a dictionary");
    expect_refused("\x93NUMPY\x01\x00\xff\xff{", 11, "cut");
    expect_refused("\x93NUMPY\x09\x00\x00\x00\x00\x00", 12, "version 9");
    expect_refused("\x93NUMPY", 6, "cut");
}
END_TEST

struct bytes {
    unsigned char *data;
    size_t size;
};

static struct bytes read_numpys(const char *name)
{
    struct bytes bytes;
    ck_assert_int_eq(file_read(numpys(name), 1 << 20, &bytes.data, &bytes.size), TUTTI_OK);
    return bytes;
}

/* The place of a text, the n-th of its kind from the front. */
static unsigned char *find(struct bytes bytes, const char *text, size_t length, int n)
{
    for (size_t i = 0; i + length <= bytes.size; i++)
        if (!memcmp(bytes.data + i, text, length) && n-- == 0) return bytes.data + i;
    ck_abort_msg("not found");
    return NULL;
}

/* Writes `value` at a place of the first entry in the directory of a file, and expects this refusal. */
static void expect_entry(const char *name, size_t at, uint32_t value, size_t width, const char *reason)
{
    struct bytes bytes = read_numpys(name);
    memcpy(find(bytes, "PK\1\2", 4, 0) + at, &value, width);
    expect_refused(bytes.data, bytes.size, reason);
    free(bytes.data);
}

START_TEST(refuses_directories)
{
    expect_entry("stored.npz", 8, 1, 2, "encrypted");
    expect_entry("stored.npz", 10, 12, 2, "method 12");
    expect_entry("stored.npz", 16, 7, 4, "checksum");
    expect_entry("deflated.npz", 16, 7, 4, "checksum");
    expect_entry("stored.npz", 24, 7, 4, "cannot have 7 bytes");
    expect_entry("deflated.npz", 24, 0xf0000000u, 4, "cannot have");
    expect_entry("deflated.npz", 24, 7, 4, "do not unpack");
    expect_entry("stored.npz", 42, 7, 4, "not where");
    expect_entry("stored.npz", 46, 0, 1, "not text");
    expect_entry("stored.npz", 46, '\n', 1, "not text");
    expect_entry("stored.npz", 46, 0xff, 1, "not text");
    expect_entry("stored.npz", 46, 'x', 1, "not where");
    struct bytes bytes = read_numpys("stored.npz");
    memcpy(find(bytes, "float32.npy", 11, 0), "float32.txt", 11);
    memcpy(find(bytes, "float32.npy", 11, 0), "float32.txt", 11);
    expect_refused(bytes.data, bytes.size, "names of arrays end in .npy");
    free(bytes.data);
    bytes = read_numpys("stored.npz");
    memcpy(find(bytes, "int16.npy", 9, 0), "int32.npy", 9);
    memcpy(find(bytes, "int16.npy", 9, 1), "int32.npy", 9); /* after that of uint16 */
    expect_refused(bytes.data, bytes.size, "two members");
    free(bytes.data);
    expect_refused("PK", 2, "not a ZIP file");
    expect_refused("", 0, "not a ZIP file");
}
END_TEST

/* A file whose members are the same zeros many times would unpack to more than the limit: its entries overlap. */
START_TEST(refuses_bombs)
{
    enum { ZEROS = 1 << 28, MEMBERS = 8, NAME = 5, LOCAL = 30, CENTRAL = 46 };
    unsigned char *packed = malloc(1 << 20), *file = calloc(4, 1 << 20), *zeros = calloc(1 << 20, 1);
    z_stream stream = { .next_out = packed, .avail_out = 1 << 20 };
    ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    for (int i = 0; i < ZEROS >> 20; i++) {
        stream.next_in = zeros;
        stream.avail_in = 1 << 20;
        ck_assert_int_eq(deflate(&stream, i == (ZEROS >> 20) - 1 ? Z_FINISH : Z_NO_FLUSH),
            i == (ZEROS >> 20) - 1 ? Z_STREAM_END : Z_OK);
    }
    const uint32_t size = (uint32_t)stream.total_out, all = ZEROS;
    (void)deflateEnd(&stream);
    unsigned char *at = file;
    for (int i = 0; i < MEMBERS; i++, at += LOCAL + NAME + size) {
        memcpy(at, "PK\3\4", 4);
        at[26] = NAME;
        snprintf((char *)at + LOCAL, NAME + 1, "%c.npy", '0' + i);
        memcpy(at + LOCAL + NAME, packed, size);
    }
    const uint32_t directory = (uint32_t)(at - file), entries = MEMBERS * (CENTRAL + NAME);
    for (int i = 0; i < MEMBERS; i++, at += CENTRAL + NAME) {
        const uint32_t begin = (uint32_t)i * (LOCAL + NAME + size);
        memcpy(at, "PK\1\2", 4);
        at[10] = 8;
        memcpy(at + 20, &size, 4);
        memcpy(at + 24, &all, 4);
        at[28] = NAME;
        memcpy(at + 42, &begin, 4);
        snprintf((char *)at + CENTRAL, NAME + 1, "%c.npy", '0' + i);
    }
    memcpy(at, "PK\5\6", 4);
    at[8] = at[10] = MEMBERS;
    memcpy(at + 12, &entries, 4);
    memcpy(at + 16, &directory, 4);
    expect_refused(file, (size_t)(at + 22 - file), "made to fill memory");
    unsigned char *const entry = file + directory + CENTRAL + NAME; /* the second one takes the first one's place */
    memcpy(entry + 20, &directory, 4);
    expect_refused(file, (size_t)(at + 22 - file), "does not lie within");
    free(packed);
    free(file);
    free(zeros);
}
END_TEST

/* Nothing of these may crash; what is refused is refused in one line. */
static void expect_no_crash(struct bytes bytes, size_t size)
{
    struct npz *file = NULL;
    write_bytes(in_folder("damaged"), bytes.data, size);
    if (npz_open(in_folder("damaged"), &file) != TUTTI_OK)
        ck_assert_msg(!strchr(status_message(), '\n'), "%s", status_message());
    npz_close(file);
}

START_TEST(survives_damage)
{
    const char *const names[] = { "stored.npz", "deflated.npz", "columns.npy" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct bytes bytes = read_numpys(names[n]);
        for (size_t i = 0; i < bytes.size; i++) {
            const unsigned char byte = bytes.data[i];
            if (i % 3 == n) expect_no_crash(bytes, i);
            bytes.data[i] = (unsigned char)chance(256);
            expect_no_crash(bytes, bytes.size);
            bytes.data[i] = byte;
        }
        free(bytes.data);
    }
}
END_TEST

Suite *npz_suite(void)
{
    Suite *suite = suite_create("npz");
    TCase *tests = tcase_create("npz");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, reads_numpys);
    tcase_add_test(tests, reads_what_it_wrote);
    tcase_add_test(tests, refuses_headers);
    tcase_add_test(tests, refuses_directories);
    tcase_add_test(tests, refuses_bombs);
    tcase_add_test(tests, survives_damage);
    suite_add_tcase(suite, tests);
    return suite;
}
