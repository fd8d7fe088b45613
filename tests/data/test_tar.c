/* Tar archives: what they hold, and what damaged ones are told. */
#include "base/random.h"
#include "base/status.h"
#include "formats/tar.h"
#include "tests/data/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char archive[100000];
static size_t archive_bytes;

static void append(const char *name, char kind, const void *content, size_t bytes)
{
    unsigned char *header = archive + archive_bytes;
    memset(header, 0, 512);
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011zo", bytes);
    header[156] = (unsigned char)kind;
    memcpy(header + 257, "ustar\00000", 8);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    memcpy(header + 512, content, bytes);
    archive_bytes += 512 + (bytes + 511) / 512 * 512;
}

static size_t finish(void)
{
    const size_t bytes = archive_bytes + 1024;
    memset(archive + archive_bytes, 0, 1024);
    archive_bytes = 0;
    return bytes;
}

struct listed {
    int count;
    char names[4000];
    int64_t bytes;
};

static tutti_status list(void *user, const struct tar_file *file)
{
    struct listed *listed = user;
    listed->count++;
    listed->bytes += file->bytes;
    snprintf(
        listed->names + strlen(listed->names), sizeof(listed->names) - strlen(listed->names), "%.200s;", file->name);
    return TUTTI_OK;
}

START_TEST(names_and_sizes)
{
    char long_name[300];
    struct listed listed = { 0 };
    memset(long_name, 'n', sizeof(long_name));
    long_name[199] = '\0';
    append("folder/", '5', "", 0);
    append("plain", '0', "abc", 3);
    append("././@LongLink", 'L', long_name, 200);
    append("nnn", '0', "abcd", 4);
    append("pax", 'x', "12 path=pax\n12 size=600\n", 24);
    append("cut", '0', archive, 600); /* its own size agrees */
    append("global", 'g', "13 comment=x\n", 13);
    append("old", '\0', "", 0);
    ck_assert_int_eq(tar_visit_bytes(archive, finish(), "t.tar", list, &listed), TUTTI_OK);
    ck_assert_int_eq(listed.count, 4);
    ck_assert_int_eq(listed.bytes, 607);
    ck_assert_int_eq(strncmp(listed.names, "plain;nnnn", 10), 0);
    ck_assert_ptr_nonnull(strstr(listed.names, "n;pax;old;"));
}
END_TEST

START_TEST(damaged_archives)
{
    struct listed listed;
    append("a.jpg", '0', "abc", 3);
    append("pax", 'x', "12 path=pax\n", 12);
    append("b.jpg", '0', archive, 700);
    const size_t bytes = finish();
    unsigned char *copy = malloc(bytes);
    for (size_t cut = 0; cut < bytes; cut += 97) { /* whatever is cut off, nothing after it is read */
        unsigned char *part = malloc(cut + 1);
        memcpy(part, archive, cut);
        listed = (struct listed) { 0 };
        (void)tar_visit_bytes(part, cut, "t.tar", list, &listed);
        free(part);
    }
    for (uint64_t i = 0; i < 3000; i++) { /* some bytes are changed, with a checksum that holds */
        memcpy(copy, archive, bytes);
        for (uint64_t k = 0; k < 3; k++)
            copy[random_below(1, RANDOM_BENCH, 8 * i + k, bytes)] =
                (unsigned char)random_bits(2, RANDOM_BENCH, 8 * i + k);
        for (size_t at = 0; at < bytes; at += 512) {
            unsigned sum = 8 * ' ';
            for (int b = 0; b < 512; b++) sum += b >= 148 && b < 156 ? 0 : copy[at + (size_t)b];
            snprintf((char *)copy + at + 148, 8, "%06o", sum);
        }
        listed = (struct listed) { 0 };
        (void)tar_visit_bytes(copy, bytes, "t.tar", list, &listed);
    }
    free(copy);
    ck_assert_int_eq(tar_visit_bytes("x", 1, "t.tar", list, &listed), TUTTI_FORMAT);
    ck_assert_ptr_nonnull(strstr(status_message(), "t.tar"));
}
END_TEST

/* A shard of WebDataset: images next to their classes, by numbers, names or JSON. */
START_TEST(shards)
{
    static const char *const ends[] = { "cls", "cls.txt", "json" };
    static const char *const labels[][2] = { { "1", "2\n" }, { " cat", "dog " },
        { "{\"class\":1}", "{\"label\": \"2\"}" } };
    unsigned char bytes[8 * SAMPLE];
    int32_t read[8];
    tutti_data_options options = small_options(NULL);
    for (int shard = 0; shard < 2; shard++) {
        for (int i = 0; i < 5; i++) {
            char name[64], picture[400];
            const int head = snprintf(picture, sizeof(picture), "P6\n10 10\n255\n");
            memset(picture + head, 10 * (i % 2 + 1), 300);
            snprintf(name, sizeof(name), "set/%d%d.ppm", shard, i);
            append(name, '0', picture, (size_t)head + 300);
            snprintf(name, sizeof(name), "set/%d%d.%s", shard, i, ends[_i]);
            append(name, '0', labels[_i][i % 2], strlen(labels[_i][i % 2]));
        }
        append("readme.txt", '0', "x", 1);
        const size_t length = finish();
        write_file(in_files("shards/%d.tar", shard), archive, length);
    }
    tutti_data *data = tutti_data_open(in_files("shards"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.classes, _i == 1 ? 2 : 3);
    ck_assert_str_eq(info.class_names[1], _i == 1 ? "dog" : "1");
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 8);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, bytes, read), 0);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(bytes[i * SAMPLE], 10 * (read[i] + (_i == 1)));
    tutti_data_free(data);
    data = tutti_data_open(in_files("shards/1.tar"), &options);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 3);
    tutti_data_free(data);
}
END_TEST

static void append_sample(const char *key, const char *end, const char *label)
{
    char name[64], picture[400];
    const int head = snprintf(picture, sizeof(picture), "P6\n10 10\n255\n");
    memset(picture + head, 100, 300);
    snprintf(name, sizeof(name), "%s.%s", key, end);
    append(name, '0', picture, (size_t)head + 300);
    snprintf(name, sizeof(name), "%s.cls", key);
    append(name, '0', label, strlen(label));
}

/* A class without an image that can be read, and a shard without a sample, are named; other files are counted. */
START_TEST(shards_that_miss_a_class)
{
    struct heard heard = { 0 };
    tutti_data_options options = small_options(&heard);
    append_sample("0", "ppm", "cat");
    append_sample("1", "ppm", "dog");
    append_sample("2", "jxl", "dog");
    size_t length = finish();
    write_file(in_files("shards/0.tar"), archive, length);
    tutti_data *data = tutti_data_open(in_files("shards"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    ck_assert_str_eq(heard.lines[0], "ignored: 1 .jxl file, such as 2.jxl");
    tutti_data_free(data);
    append_sample("3", "jxl", "cow");
    append_sample("4", "ppm", "dog");
    length = finish();
    write_file(in_files("shards/1.tar"), archive, length);
    ck_assert_ptr_null(tutti_data_open(in_files("shards"), &options));
    ck_assert_ptr_nonnull(strstr(status_message(), "class 'cow' has no picture"));
    ck_assert_ptr_nonnull(strstr(status_message(), "what cannot be read: 2 .jxl files"));
    append("readme.txt", '0', "x", 1);
    length = finish();
    write_file(in_files("shards/1.tar"), archive, length);
    ck_assert_ptr_null(tutti_data_open(in_files("shards"), &options));
    ck_assert_ptr_nonnull(strstr(status_message(), "1.tar: no picture"));
}
END_TEST

TCase *tar_case(void)
{
    TCase *tar = tcase_create("tar");
    tcase_add_checked_fixture(tar, files_begin, files_end);
    tcase_add_test(tar, names_and_sizes);
    tcase_add_test(tar, damaged_archives);
    tcase_add_loop_test(tar, shards, 0, 3);
    tcase_add_test(tar, shards_that_miss_a_class);
    return tar;
}
