#include "formats.h"

#include "base/file.h"
#include "formats/idx.h"

#include <stdlib.h>
#include <string.h>

/* Three images of 2 x 4. */
static const unsigned char images[16 + 24] = { 0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4, 10, 11, 12, 13, 14, 15,
    16, 17, 20, 21, 22, 23, 24, 25, 26, 27, 30, 31, 32, 33, 34, 35, 36, 255 };

static void expect_images(const char *name)
{
    struct idx idx;
    ck_assert_msg(idx_read(in_folder(name), 3, &idx) == TUTTI_OK, "%s", status_message());
    ck_assert_int_eq(idx.rank, 3);
    ck_assert_int_eq(idx.sizes[0], 3);
    ck_assert_int_eq(idx.sizes[1], 2);
    ck_assert_int_eq(idx.sizes[2], 4);
    ck_assert_uint_eq(idx.bytes, 24);
    ck_assert_mem_eq(idx.data, images + 16, 24);
    idx_free(&idx);
}

static void expect_refused(const unsigned char *bytes, size_t size, const char *reason)
{
    struct idx idx;
    write_bytes(in_folder("plain"), bytes, size);
    expect_failure(idx_read(in_folder("plain"), 3, &idx), TUTTI_FORMAT, "plain", reason);
    ck_assert_ptr_null(idx.data);
    write_gzip(in_folder("packed"), bytes, size);
    expect_failure(idx_read(in_folder("packed"), 3, &idx), TUTTI_FORMAT, "packed", reason);
    ck_assert_ptr_null(idx.data);
}

START_TEST(reads_plain_and_gzip)
{
    write_bytes(in_folder("plain"), images, sizeof(images));
    expect_images("plain");
    write_gzip(in_folder("packed.gz"), images, sizeof(images));
    expect_images("packed.gz");
}
END_TEST

START_TEST(reads_more_than_one_chunk)
{
    size_t side = 1200, size = 16 + 3 * side * side;
    unsigned char *bytes = calloc(size, 1);
    struct idx idx;
    memcpy(bytes, images, 8);
    bytes[10] = bytes[14] = (unsigned char)(side >> 8);
    bytes[11] = bytes[15] = (unsigned char)side;
    for (size_t i = 16; i < size; i++) bytes[i] = (unsigned char)(i * i >> 3);
    write_gzip(in_folder("large.gz"), bytes, size);
    ck_assert_int_eq(idx_read(in_folder("large.gz"), 3, &idx), TUTTI_OK);
    ck_assert_mem_eq(idx.data, bytes + 16, size - 16);
    idx_free(&idx);
    free(bytes);
}
END_TEST

START_TEST(refuses_every_cut)
{
    for (size_t kept = 0; kept < sizeof(images); kept++)
        expect_refused(images, kept,
            kept < 4        ? "not an IDX file"
                : kept < 16 ? "ends within its header"
                            : "is truncated");
}
END_TEST

START_TEST(refuses_lies)
{
    unsigned char bytes[sizeof(images) + 1] = { 0 };
    memcpy(bytes, images, sizeof(images));
    expect_refused(bytes, sizeof(bytes), "more data than the 24 bytes");
    bytes[1] = 1;
    expect_refused(bytes, sizeof(images), "not an IDX file");
    bytes[1] = 0;
    bytes[2] = 13;
    expect_refused(bytes, sizeof(images), "type 0x0d");
    bytes[2] = 8;
    bytes[3] = 1;
    expect_refused(bytes, sizeof(images), "1 dimensions found, 3 expected");
    bytes[3] = 3;
    bytes[7] = 4;
    expect_refused(bytes, sizeof(images), "24 bytes of data found, 32 expected");
    bytes[7] = 0;
    expect_refused(bytes, sizeof(images), "dimension 0 has size 0");
    memset(bytes + 4, 0xff, 12);
    expect_refused(bytes, sizeof(images), "announces more than");
    memcpy(bytes + 4, "\0\1\0\0\0\0\4\0\0\0\1\0", 12); /* 16 GiB: allowed, and not allocated before they come */
    expect_refused(bytes, sizeof(images), "is truncated");
}
END_TEST

START_TEST(refuses_damaged_gzip)
{
    struct idx idx;
    unsigned char *bytes;
    size_t size;
    write_gzip(in_folder("good.gz"), images, sizeof(images));
    ck_assert_int_eq(file_read(in_folder("good.gz"), 1000, &bytes, &size), TUTTI_OK);
    for (size_t kept = 2; kept < size; kept++) {
        write_bytes(in_folder("cut.gz"), bytes, kept);
        expect_failure(idx_read(in_folder("cut.gz"), 3, &idx), TUTTI_FORMAT, "cut.gz", "");
    }
    bytes[size - 6] ^= 1; /* within the check sum */
    write_bytes(in_folder("wrong.gz"), bytes, size);
    expect_failure(idx_read(in_folder("wrong.gz"), 3, &idx), TUTTI_FORMAT, "wrong.gz", "damaged gzip data");
    free(bytes);
}
END_TEST

START_TEST(refuses_what_is_no_file)
{
    struct idx idx;
    expect_failure(idx_read(in_folder("absent"), 3, &idx), TUTTI_FILE, "absent", "No such file");
    expect_failure(idx_read(folder(), 3, &idx), TUTTI_FILE, folder(), "");
    ck_assert_int_eq(idx_read(folder(), 0, &idx), TUTTI_INVALID);
}
END_TEST

START_TEST(survives_mutations)
{
    unsigned char packed[4096], *bytes;
    size_t size;
    int accepted = 0;
    write_gzip(in_folder("good.gz"), images, sizeof(images));
    ck_assert_int_eq(file_read(in_folder("good.gz"), sizeof(packed), &bytes, &size), TUTTI_OK);
    for (int i = 0; i < 4000; i++) {
        bool gzip = chance(2);
        size_t used = gzip ? size : sizeof(images);
        struct idx idx;
        memcpy(packed, gzip ? bytes : images, used);
        for (size_t count = 1 + chance(3); count > 0; count--) packed[chance(used)] = (unsigned char)chance(256);
        write_bytes(in_folder("mutated"), packed, chance(8) ? used : chance(used + 1));
        if (idx_read(in_folder("mutated"), 3, &idx) == TUTTI_OK) {
            ck_assert_uint_eq(idx.bytes, (size_t)(idx.sizes[0] * idx.sizes[1] * idx.sizes[2]));
            accepted++;
        } else {
            ck_assert_ptr_nonnull(strstr(status_message(), "mutated"));
        }
        idx_free(&idx);
    }
    ck_assert_int_gt(accepted, 0);
    free(bytes);
}
END_TEST

Suite *idx_suite(void)
{
    Suite *suite = suite_create("idx");
    TCase *group = tcase_create("idx");
    tcase_add_checked_fixture(group, folder_begin, folder_end);
    tcase_add_test(group, reads_plain_and_gzip);
    tcase_add_test(group, reads_more_than_one_chunk);
    tcase_add_test(group, refuses_every_cut);
    tcase_add_test(group, refuses_lies);
    tcase_add_test(group, refuses_damaged_gzip);
    tcase_add_test(group, refuses_what_is_no_file);
    tcase_add_test(group, survives_mutations);
    suite_add_tcase(suite, group);
    return suite;
}
