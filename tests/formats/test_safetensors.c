#include "formats.h"

#include "formats/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float weights[6] = { 1.5f, -2, 3, 0, 1e-30f, 6 };
static const int64_t step[1] = { 1234567890123 };
static const unsigned char mask[3] = { 1, 0, 255 };
static const struct safetensors_tensor tensors[] = {
    { .name = "mask", .type = SAFETENSORS_U8, .rank = 1, .sizes = { 3 }, .data = mask },
    { .name = "layer1.0.conv1.weight", .type = SAFETENSORS_F32, .rank = 2, .sizes = { 2, 3 }, .data = weights },
    { .name = "step", .type = SAFETENSORS_I64, .rank = 0, .data = step },
    { .name = "nothing", .type = SAFETENSORS_F32, .rank = 2, .sizes = { 0, 7 } },
};
#define TENSORS ((int)(sizeof(tensors) / sizeof(tensors[0])))
static const struct safetensors_metadata metadata[] = { { "format", "pt" },
    { "quoted \"key\"", "line\nend, \xc3\xa9" } };

static struct safetensors *must_open(const char *path)
{
    struct safetensors *file;
    tutti_status status = safetensors_open(path, &file);
    ck_assert_msg(status == TUTTI_OK, "%s", status_message());
    return file;
}

static void must_save(const char *path)
{
    ck_assert_int_eq(safetensors_save(path, tensors, TENSORS, metadata, 2), TUTTI_OK);
}

/* ------------------------------------------------------------------------------------------------ good files ---- */

START_TEST(round_trip)
{
    must_save(in_folder("a.safetensors"));
    struct safetensors *file = must_open(in_folder("a.safetensors"));
    ck_assert_int_eq(safetensors_count(file), TENSORS);
    for (int i = 0; i < TENSORS; i++) {
        const struct safetensors_tensor *found = safetensors_find(file, tensors[i].name);
        ck_assert_ptr_nonnull(found);
        ck_assert_int_eq(found->type, tensors[i].type);
        ck_assert_int_eq(found->rank, tensors[i].rank);
        for (int k = 0; k < found->rank; k++) ck_assert_int_eq(found->sizes[k], tensors[i].sizes[k]);
        if (found->bytes) ck_assert_mem_eq(found->data, tensors[i].data, found->bytes);
    }
    ck_assert_uint_eq(safetensors_find(file, "layer1.0.conv1.weight")->bytes, 24);
    ck_assert_uint_eq(safetensors_find(file, "nothing")->bytes, 0);
    ck_assert_ptr_null(safetensors_find(file, "Mask"));
    ck_assert_ptr_null(safetensors_at(file, TENSORS));
    ck_assert_ptr_null(safetensors_at(file, -1));
    ck_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    ck_assert_str_eq(safetensors_metadata(file, metadata[1].key), metadata[1].value);
    ck_assert_ptr_null(safetensors_metadata(file, "absent"));
    safetensors_close(file);
}
END_TEST

START_TEST(larger_elements_come_first)
{
    must_save(in_folder("a.safetensors"));
    struct safetensors *file = must_open(in_folder("a.safetensors"));
    ck_assert_str_eq(safetensors_at(file, 0)->name, "step");
    ck_assert_str_eq(safetensors_at(file, TENSORS - 1)->name, "mask");
    for (int i = 0; i < TENSORS; i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        ck_assert_uint_eq((uintptr_t)tensor->data % safetensors_type_size(tensor->type), 0);
    }
    safetensors_close(file);
}
END_TEST

START_TEST(empty_file_of_no_tensors)
{
    ck_assert_int_eq(safetensors_save(in_folder("none.safetensors"), NULL, 0, NULL, 0), TUTTI_OK);
    struct safetensors *file = must_open(in_folder("none.safetensors"));
    ck_assert_int_eq(safetensors_count(file), 0);
    ck_assert_ptr_null(safetensors_find(file, "x"));
    ck_assert_ptr_null(safetensors_metadata(file, "x"));
    safetensors_close(file);
}
END_TEST

/* Two files that belong together: nothing is visible before the first commit, and giving up leaves what was there. */
START_TEST(pair_is_committed_after_both_are_flushed)
{
    struct atomic_file *a, *b;
    ck_assert_int_eq(atomic_file_open(&a, in_folder("a.safetensors")), TUTTI_OK);
    ck_assert_int_eq(atomic_file_open(&b, in_folder("b.safetensors")), TUTTI_OK);
    ck_assert_int_eq(safetensors_write(a, tensors, 2, NULL, 0), TUTTI_OK);
    ck_assert_int_eq(safetensors_write(b, tensors + 2, 1, metadata, 2), TUTTI_OK);
    ck_assert_int_eq(atomic_file_flush(a), TUTTI_OK);
    ck_assert_int_eq(atomic_file_flush(b), TUTTI_OK);
    ck_assert_int_ne(access(in_folder("a.safetensors"), F_OK), 0);
    ck_assert_int_ne(access(in_folder("b.safetensors"), F_OK), 0);
    ck_assert_int_eq(atomic_file_commit(a), TUTTI_OK);
    ck_assert_int_eq(atomic_file_commit(b), TUTTI_OK);
    ck_assert_int_eq(atomic_file_open(&a, in_folder("a.safetensors")), TUTTI_OK);
    ck_assert_int_eq(safetensors_write(a, tensors, 1, NULL, 0), TUTTI_OK);
    atomic_file_abandon(a);
    struct safetensors *file = must_open(in_folder("a.safetensors"));
    ck_assert_int_eq(safetensors_count(file), 2);
    safetensors_close(file);
}
END_TEST

START_TEST(writer_refuses)
{
    struct safetensors_tensor twice[2] = { tensors[0], tensors[0] }, bad = tensors[0];
    expect_failure(safetensors_save(in_folder("a"), twice, 2, NULL, 0), TUTTI_INVALID, "mask", "twice");
    bad.name = "__metadata__";
    expect_failure(safetensors_save(in_folder("a"), &bad, 1, NULL, 0), TUTTI_INVALID, "__metadata__", "twice");
    bad.name = "not utf-8: \xff";
    expect_failure(safetensors_save(in_folder("a"), &bad, 1, NULL, 0), TUTTI_INVALID, "not utf-8", "UTF-8");
    bad = tensors[0];
    bad.sizes[0] = -1;
    expect_failure(safetensors_save(in_folder("a"), &bad, 1, NULL, 0), TUTTI_INVALID, "mask", "out of range");
    bad.rank = SAFETENSORS_MAX_RANK + 1;
    expect_failure(safetensors_save(in_folder("a"), &bad, 1, NULL, 0), TUTTI_INVALID, "mask", "rank 9");
    ck_assert_int_ne(access(in_folder("a"), F_OK), 0);
    ck_assert_int_eq(safetensors_save(in_folder("no/such/folder"), tensors, 1, NULL, 0), TUTTI_FILE);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- broken files ---- */

/* A file of a header text and `data` bytes. */
static void write_file(const char *path, const char *header, size_t data)
{
    unsigned char bytes[4096] = { 0 };
    size_t length = strlen(header);
    ck_assert_uint_le(8 + length + data, sizeof(bytes));
    bytes[0] = (unsigned char)length;
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, header, length);
    write_bytes(path, bytes, 8 + length + data);
}

#define X(rest) "{\"x\": {" rest "}}"
static const struct {
    const char *header;
    size_t data;
    const char *reason;
} broken[] = {
    { "", 0, "not valid JSON" },
    { "[]", 0, "not valid JSON" },
    { " {}", 0, "not valid JSON" },
    { "{\"x\": ", 0, "not valid JSON" },
    { "{} {}", 0, "not valid JSON" },
    { "{\"a\\u0000b\": {}}", 0, "not valid JSON" },
    { "{\"\xff\": {}}", 0, "not valid JSON" },
    { "{\"x\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}, \"x\": {\"dtype\": \"U8\", \"shape\": "
      "[1], "
      "\"data_offsets\": [1, 2]}}",
        2, "duplicate" },
    { "{\"x\": 1}", 0, "'x' is not an object" },
    { "{\"a\\nb\": 1}", 0, "'a?b' is not an object" },
    { "{\"__metadata__\": 1}", 0, "__metadata__ is not an object" },
    { "{\"__metadata__\": {\"k\": 1}}", 0, "'k' is not a string" },
    { X("\"shape\": [1], \"data_offsets\": [0, 4]"), 4, "no dtype" },
    { X("\"dtype\": 5, \"shape\": [1], \"data_offsets\": [0, 4]"), 4, "no dtype" },
    { X("\"dtype\": \"F32\", \"data_offsets\": [0, 4]"), 4, "no shape" },
    { X("\"dtype\": \"F32\", \"shape\": [-1], \"data_offsets\": [0, 4]"), 4, "the size of dimension 0" },
    { X("\"dtype\": \"F32\", \"shape\": [1.0], \"data_offsets\": [0, 4]"), 4, "the size of dimension 0" },
    { X("\"dtype\": \"F32\", \"shape\": [1,1,1,1,1,1,1,1,1], \"data_offsets\": [0, 4]"), 4, "9 dimensions" },
    { X("\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296], \"data_offsets\": [0, 0]"), 0, "more elements" },
    { X("\"dtype\": \"F32\", \"shape\": [4611686018427387904], \"data_offsets\": [0, 0]"), 0, "more elements" },
    { X("\"dtype\": \"F32\", \"shape\": [99999999999999999999], \"data_offsets\": [0, 0]"), 0, "not valid JSON" },
    { X("\"dtype\": \"F32\", \"shape\": [1]"), 4, "no data_offsets" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0]"), 4, "no data_offsets" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, \"4\"]"), 4, "no data_offsets" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [-4, 0]"), 4, "is truncated or damaged" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 0]"), 4, "is truncated or damaged" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 5]"), 4, "is truncated or damaged" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 9223372036854775807]"), 4,
        "is truncated or damaged" },
    { X("\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 4]"), 4, "shape of 8 bytes but data of 4" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 8]"), 8, "after bytes that belong to no tensor" },
    { X("\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]"), 7, "3 bytes follow" },
    { "{\"x\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [0, 2]}, \"y\": {\"dtype\": \"U8\", \"shape\": "
      "[2], "
      "\"data_offsets\": [1, 3]}}",
        3, "inside another tensor" },
};

/* Arrays of other types are listed, as others of their file may be wanted. */
START_TEST(lists_unknown_types)
{
    struct safetensors *file;
    write_file(in_folder("a.safetensors"),
        "{\"x\": {\"dtype\": \"F8_E4M3\", \"shape\": [3], \"data_offsets\": [0, 3]}, "
        "\"y\": {\"dtype\": \"F16\", \"shape\": [1], \"data_offsets\": [3, 5]}}",
        5);
    ck_assert_int_eq(safetensors_open(in_folder("a.safetensors"), &file), TUTTI_OK);
    const struct safetensors_tensor *x = safetensors_find(file, "x"), *y = safetensors_find(file, "y");
    ck_assert(x && x->type == SAFETENSORS_OTHER && x->bytes == 3 && !safetensors_has_floats(x));
    ck_assert_str_eq(x->dtype, "F8_E4M3");
    ck_assert(y && y->type == SAFETENSORS_F16 && safetensors_has_floats(y));
    safetensors_close(file);
}
END_TEST

START_TEST(refuses_broken_header)
{
    write_file(in_folder("broken.safetensors"), broken[_i].header, broken[_i].data);
    struct safetensors *file = (struct safetensors *)&file;
    expect_failure(safetensors_open(in_folder("broken.safetensors"), &file), TUTTI_FORMAT, "broken.safetensors",
        broken[_i].reason);
    ck_assert_ptr_null(file);
}
END_TEST

static unsigned char *read_back(const char *path, size_t *size)
{
    unsigned char *bytes;
    ck_assert_int_eq(file_read(path, 1 << 20, &bytes, size), TUTTI_OK);
    return bytes;
}

START_TEST(refuses_every_cut)
{
    struct safetensors *file;
    size_t size;
    must_save(in_folder("a.safetensors"));
    unsigned char *bytes = read_back(in_folder("a.safetensors"), &size);
    for (size_t kept = 0; kept < size; kept++) {
        write_bytes(in_folder("cut"), bytes, kept);
        ck_assert_msg(safetensors_open(in_folder("cut"), &file) == TUTTI_FORMAT, "%zu of %zu bytes", kept, size);
        ck_assert_ptr_null(file);
    }
    free(bytes);
}
END_TEST

START_TEST(refuses_lying_length)
{
    unsigned char bytes[64] = { 0 };
    struct safetensors *file;
    memset(bytes, 0xff, 8);
    write_bytes(in_folder("long"), bytes, sizeof(bytes));
    expect_failure(safetensors_open(in_folder("long"), &file), TUTTI_FORMAT, "long", "not a safetensors file");
    memset(bytes, 0, 8);
    bytes[0] = 57;
    write_bytes(in_folder("long"), bytes, sizeof(bytes));
    expect_failure(safetensors_open(in_folder("long"), &file), TUTTI_FORMAT, "long", "is truncated");
    expect_failure(safetensors_open(in_folder("absent"), &file), TUTTI_FILE, "absent", "");
    expect_failure(safetensors_open(folder(), &file), TUTTI_FILE, folder(), "");
}
END_TEST

/* Every byte that a reader was promised is there: a sanitizer sees the rest. */
static unsigned touch(const struct safetensors *file)
{
    unsigned sum = 0;
    for (int i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        for (size_t k = 0; k < tensor->bytes; k++) sum += ((const unsigned char *)tensor->data)[k];
        ck_assert_ptr_eq(safetensors_find(file, tensor->name), tensor);
    }
    return sum;
}

/* Changes bytes anywhere, or digits and punctuation of the header, which reaches deeper. */
static size_t mutate(unsigned char *bytes, size_t size)
{
    static const char alphabet[] = "0123456789[]{},:\"-. FU";
    for (size_t count = 1 + chance(4); count > 0; count--) {
        size_t at = chance(size);
        if (chance(2))
            bytes[at] = (unsigned char)chance(256);
        else if (at >= 8)
            bytes[at] = (unsigned char)alphabet[chance(sizeof(alphabet) - 1)];
    }
    return chance(8) ? size : chance(size + 1);
}

START_TEST(survives_mutations)
{
    size_t size;
    int accepted = 0;
    must_save(in_folder("a.safetensors"));
    unsigned char *bytes = read_back(in_folder("a.safetensors"), &size), *changed = malloc(size);
    for (int i = 0; i < 5000; i++) {
        struct safetensors *file;
        memcpy(changed, bytes, size);
        write_bytes(in_folder("mutated"), changed, mutate(changed, size));
        if (safetensors_open(in_folder("mutated"), &file) == TUTTI_OK) {
            touch(file);
            accepted++;
        } else {
            ck_assert_ptr_nonnull(strstr(status_message(), "mutated"));
            ck_assert_ptr_null(strchr(status_message(), '\n'));
        }
        safetensors_close(file);
    }
    ck_assert_int_gt(accepted, 0); /* changes of the data itself are not errors */
    free(bytes);
    free(changed);
}
END_TEST

Suite *safetensors_suite(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *group = tcase_create("safetensors");
    tcase_add_checked_fixture(group, folder_begin, folder_end);
    tcase_add_test(group, round_trip);
    tcase_add_test(group, larger_elements_come_first);
    tcase_add_test(group, empty_file_of_no_tensors);
    tcase_add_test(group, pair_is_committed_after_both_are_flushed);
    tcase_add_test(group, writer_refuses);
    tcase_add_test(group, lists_unknown_types);
    tcase_add_loop_test(group, refuses_broken_header, 0, (int)(sizeof(broken) / sizeof(broken[0])));
    tcase_add_test(group, refuses_every_cut);
    tcase_add_test(group, refuses_lying_length);
    tcase_add_test(group, survives_mutations);
    suite_add_tcase(suite, group);
    return suite;
}
