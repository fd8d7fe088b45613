/* What folders hold, and how their samples are divided into parts. */
#include "base/status.h"
#include "tests/data/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static tutti_data_info describe(const tutti_data *data)
{
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    return info;
}

/* The names of a part, joined. */
static void list_names(const tutti_data *data, tutti_data_part part, char *text, size_t size)
{
    size_t used = 0;
    for (int64_t i = 0; i < part_count(data, part); i++) {
        char name[600];
        ck_assert_int_eq(tutti_data_name(data, part, i, name, sizeof(name)), TUTTI_OK);
        const char *slash = strrchr(name, '/');
        used += (size_t)snprintf(text + used, size - used, "%c%s ", slash[-1], slash);
    }
}

START_TEST(folder_of_classes)
{
    struct heard heard = { 0 };
    tutti_data_options options = small_options(&heard);
    write_classes(in_files("photos"), 10, 0);
    write_file(in_files("photos/a/.hidden"), "x", 1);
    write_file(in_files("photos/a/notes.txt"), "x", 1);
    write_file(in_files("photos/b/1.JxL"), "x", 1);
    write_file(in_files("photos/b/2.jxl"), "x", 1);
    write_file(in_files("photos/LICENSE"), "x", 1);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    const tutti_data_info info = describe(data);
    ck_assert_str_eq(info.kind, "images");
    ck_assert_int_eq(info.classes, 3);
    ck_assert_str_eq(info.class_names[2], "c");
    ck_assert_int_eq(info.class_counts[0], 8);
    ck_assert_int_eq(info.class_counts[2], 8);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 24);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_VAL), 6);
    ck_assert_ptr_null(tutti_data_source(data, TUTTI_DATA_TEST));
    unsigned char bytes[24 * SAMPLE];
    int32_t labels[24];
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TRAIN, bytes, labels), 0);
    for (int i = 0; i < 24; i++) ck_assert_int_eq(bytes[i * SAMPLE], 50 + 50 * labels[i]);
    ck_assert_int_eq(heard.count, 1);
    ck_assert_ptr_nonnull(strstr(heard.lines[0],
        "ignored: 2 .jxl files, 1 file without an extension, 1 .txt file, 1 hidden file or folder, such as /"));
    ck_assert_ptr_nonnull(strstr(heard.lines[0], "photos/LICENSE"));
    tutti_data_free(data);
}
END_TEST

static void expect_refusal(const char *path, const char *folder, const char *reason)
{
    tutti_data_options options = small_options(NULL);
    ck_assert_ptr_null(tutti_data_open(path, &options));
    ck_assert_msg(
        strstr(status_message(), folder) && strstr(status_message(), reason), "%s: %s", reason, status_message());
}

/* A class whose files cannot be read is not left out in silence. */
START_TEST(classes_without_pictures)
{
    write_classes(in_files("photos"), 3, 0);
    write_file(in_files("photos/cat/1.jxl"), "x", 1);
    write_file(in_files("photos/cat/2.jxl"), "x", 1);
    write_file(in_files("photos/cat/3.svg"), "x", 1);
    expect_refusal(in_files("photos"), "photos/cat: ", "only 2 .jxl files, 1 .svg file: convert its files");
    write_classes(in_files("empty"), 3, 0);
    mkdir(in_files("empty/d"), 0700);
    expect_refusal(in_files("empty"),
        "empty/d: ", "no picture (JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, PPM, PGM) in it: fill or remove it");
    write_classes(in_files("parts/train"), 3, 0);
    write_classes(in_files("parts/val"), 1, 0);
    write_file(in_files("parts/val/e/sub/0.ppm"), "x", 1);
    expect_refusal(in_files("parts"), "parts/val/e: ", "only 1 folder");
}
END_TEST

/* What is found is named, with what may be done about it. */
START_TEST(unknown_data)
{
    write_file(in_files("cats/a/1.jxl"), "x", 1);
    write_file(in_files("cats/a/2.jxl"), "x", 1);
    write_file(in_files("cats/b/1.jxl"), "x", 1);
    write_file(in_files("cats/readme.txt"), "x", 1);
    expect_refusal(in_files("cats"),
        "cats: ", "It has 1 .txt file, 2 folders, and in its folders 3 .jxl files: convert pictures to JPEG or PNG");
    write_file(in_files("notes/LICENSE"), "x", 1);
    expect_refusal(in_files("notes"), "notes: ", "1 file without an extension: docs/data.md says");
    mkdir(in_files("empty"), 0700);
    expect_refusal(in_files("empty"), "empty: ", "this folder is empty");
    write_file(in_files("song.m4a"), "x", 1);
    expect_refusal(
        in_files("song.m4a"), "song.m4a: ", "not a file of data that can be read: convert recordings to WAV");
    write_file(in_files("t.xlsx"), "x", 1);
    expect_refusal(in_files("t.xlsx"), "t.xlsx is a spreadsheet", "pandas.read_excel(\"");
}
END_TEST

/* The seed decides which samples are held out; the order of files on the disk does not. */
START_TEST(division_follows_from_the_seed)
{
    char first[2000], second[2000];
    tutti_data_options options = small_options(NULL);
    write_classes(in_files("photos"), 10, 0);
    for (int i = 0; i < 3; i++) {
        options.seed = i == 2 ? 1 : 0;
        tutti_data *data = tutti_data_open(in_files("photos"), &options);
        list_names(data, TUTTI_DATA_VAL, i == 0 ? first : second, sizeof(first));
        if (i > 0) ck_assert_int_eq(strcmp(first, second) == 0, i == 1);
        tutti_data_free(data);
    }
    options.split = 0.999;
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 3); /* one of each class stays */
    tutti_data_free(data);
    options.split = 1;
    ck_assert_ptr_null(tutti_data_open(in_files("photos"), &options));
}
END_TEST

START_TEST(folders_of_parts)
{
    char names[2000];
    struct heard heard = { 0 };
    tutti_data_options options = small_options(&heard);
    write_classes(in_files("photos/train"), 4, 0);
    write_ppm(in_files("photos/valid/b/x.ppm"), 10, 10, 1, 2, 3, 0);
    write_ppm(in_files("photos/test/d/y.ppm"), 10, 10, 1, 2, 3, 0);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    ck_assert_int_eq(describe(data).classes, 4);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 12);
    list_names(data, TUTTI_DATA_VAL, names, sizeof(names));
    ck_assert_str_eq(names, "b/x.ppm ");
    list_names(data, TUTTI_DATA_TEST, names, sizeof(names));
    ck_assert_str_eq(names, "d/y.ppm ");
    ck_assert_int_eq(heard.count, 1);
    ck_assert_ptr_nonnull(strstr(heard.lines[0], "'d'")); /* has no training samples */
    tutti_data_free(data);
    ck_assert_ptr_null(tutti_data_open(in_files("photos/test/d/absent"), &options));
    write_file(in_files("nothing/readme"), "x", 1);
    ck_assert_ptr_null(tutti_data_open(in_files("nothing"), &options));
    ck_assert_ptr_nonnull(strstr(status_message(), "nothing"));
}
END_TEST

/* Each training sample is once in the part `val`, and the samples of its class are spread evenly over the folds. No
 * repeated sample is on both sides. */
START_TEST(folds_of_the_training_part)
{
    int seen[3] = { 0 }, in_fold[3];
    char names[5][2000];
    tutti_data_options options = small_options(NULL);
    write_classes(in_files("photos"), 10, 0);
    options.folds = 5;
    options.oversample = true;
    options.augment = "mixup=1";
    for (options.fold = 0; options.fold < 5; options.fold++) {
        tutti_data *data = tutti_data_open(in_files("photos"), &options);
        ck_assert_msg(data != NULL, "%s", status_message());
        const int64_t held = part_count(data, TUTTI_DATA_VAL);
        ck_assert(held == 4 || held == 5);
        ck_assert_ptr_null(tutti_data_source(data, TUTTI_DATA_TEST));
        memset(in_fold, 0, sizeof(in_fold));
        for (int64_t i = 0; i < held; i++) in_fold[tutti_data_label(data, TUTTI_DATA_VAL, i)]++;
        for (int c = 0; c < 3; c++) ck_assert(in_fold[c] == 1 || in_fold[c] == 2);
        for (int c = 0; c < 3; c++) seen[c] += in_fold[c];
        ck_assert_int_eq(tutti_data_label(data, TUTTI_DATA_VAL, held), -1);
        char training[8000], name[600], *word;
        list_names(data, TUTTI_DATA_TRAIN, training, sizeof(training));
        list_names(data, TUTTI_DATA_VAL, names[options.fold], sizeof(names[0]));
        for (word = names[options.fold]; sscanf(word, "%599s", name) == 1; word += strlen(name) + 1)
            ck_assert_ptr_null(strstr(training, name));
        char *json = tutti_data_json(data);
        ck_assert(json && strstr(json, "\"folds\":5"));
        free(json);
        tutti_data_free(data);
    }
    for (int c = 0; c < 3; c++) ck_assert_int_eq(seen[c], 8);
    options.fold = 5;
    ck_assert_ptr_null(tutti_data_open(in_files("photos"), &options));
    options.folds = 13;
    ck_assert_ptr_null(tutti_data_open(in_files("photos"), &options));
    ck_assert_ptr_nonnull(strstr(status_message(), "24 samples"));
}
END_TEST

START_TEST(photos_without_classes)
{
    unsigned char bytes[2 * SAMPLE];
    int32_t labels[2];
    tutti_data_options options = small_options(NULL);
    write_ppm(in_files("loose/1.ppm"), 10, 10, 11, 0, 0, 0);
    write_ppm(in_files("loose/2.ppm"), 10, 10, 22, 0, 0, 0);
    tutti_data *data = tutti_data_open(in_files("loose"), &options);
    ck_assert_int_eq(describe(data).classes, 0);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TEST), 2);
    ck_assert_int_eq(read_part(data, TUTTI_DATA_TEST, bytes, labels), 0);
    ck_assert_int_eq(bytes[SAMPLE], 22);
    ck_assert_int_eq(labels[0], -1);
    tutti_data_free(data);
    data = tutti_data_open(in_files("loose/2.ppm"), &options);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TEST), 1);
    tutti_data_free(data);
}
END_TEST

START_TEST(masks_of_images)
{
    const int two = _i;
    unsigned char values[100], bytes[4 * SAMPLE];
    int32_t classes[4 * 64];
    tutti_data_options options = small_options(NULL);
    for (int i = 0; i < 100; i++) values[i] = i % 10 < 5 ? 0 : two ? 255 : 2;
    if (!two) values[99] = 255; /* left out */
    for (int i = 0; i < 5; i++) {
        write_ppm(in_files("set/images/%d.ppm", i), 10, 10, 10 * i, 0, 0, 0);
        write_pgm(in_files("set/masks/%d.pgm", i), 10, 10, values);
    }
    write_file(in_files("set/classes.txt"), "ground\ncat\ndog\n", two ? 11 : 15);
    tutti_data *data = tutti_data_open(in_files("set"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    const tutti_data_info info = describe(data);
    ck_assert_str_eq(info.kind, "masks");
    ck_assert_int_eq(info.classes, two ? 2 : 3);
    ck_assert_str_eq(info.class_names[1], "cat");
    ck_assert_int_eq(info.target_shape.rank, 2);
    ck_assert_int_eq(part_count(data, TUTTI_DATA_TRAIN), 4);
    const tutti_source *source = tutti_data_source(data, TUTTI_DATA_TRAIN);
    const int64_t indices[] = { 0, 1, 2, 3 };
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_U8, bytes, SAMPLE },
        { "targets", TUTTI_DTYPE_I32, classes, 64 * sizeof(*classes) } };
    ck_assert_int_eq(source->read(source->user, indices, 4, buffers, 2), 0);
    ck_assert_int_eq(classes[0], 0);
    ck_assert_int_eq(classes[7], two ? 1 : 2);
    tutti_data_free(data);
    write_pgm(in_files("set/masks/3.pgm"), 5, 5, values); /* of another size than its picture */
    data = tutti_data_open(in_files("set"), &options);
    source = tutti_data_source(data, TUTTI_DATA_TRAIN);
    const int failed = source->read(source->user, indices, 4, buffers, 2);
    const bool trains = failed != 0; /* else it is held out */
    if (trains) ck_assert_ptr_nonnull(strstr(status_message(), "masks/3.pgm"));
    tutti_data_free(data);
}
END_TEST

/* Parts without masks and masks of one class are refused; what is left out is counted. */
START_TEST(masks_that_teach_nothing)
{
    unsigned char values[100] = { 0 };
    struct heard heard = { 0 };
    tutti_data_options options = small_options(&heard);
    write_ppm(in_files("set/train/images/0.ppm"), 10, 10, 1, 2, 3, 0);
    write_ppm(in_files("set/train/images/1.ppm"), 10, 10, 1, 2, 3, 0);
    write_pgm(in_files("set/train/masks/0.pgm"), 10, 10, values);
    write_pgm(in_files("set/train/masks/1.pgm"), 10, 10, values);
    expect_refusal(in_files("set/train"), "set/train: ", "value 0: a network needs at least two classes");
    write_file(in_files("set/train/classes.txt"), "ground\ncat\n", 11);
    tutti_data_free(tutti_data_open(in_files("set/train"), &options));
    ck_assert_int_eq(heard.count, 0);
    values[0] = 1;
    write_pgm(in_files("set/train/masks/1.pgm"), 10, 10, values);
    write_ppm(in_files("set/val/images/0.ppm"), 10, 10, 1, 2, 3, 0);
    write_file(in_files("set/val/masks/0.jxl"), "x", 1);
    expect_refusal(in_files("set"), "set/val: ", "cannot be read there: 1 .jxl file");
    write_pgm(in_files("set/val/masks/0.pgm"), 10, 10, values);
    tutti_data *data = tutti_data_open(in_files("set"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    ck_assert_int_eq(heard.count, 1);
    ck_assert_ptr_nonnull(strstr(heard.lines[0], "ignored: 1 .jxl file, such as /"));
    tutti_data_free(data);
}
END_TEST

START_TEST(json_names_the_classes)
{
    tutti_data_options options = small_options(NULL);
    options.normalise = "0.5,0.25,0.5/1,2,4";
    options.seed = 7;
    write_classes(in_files("photos"), 2, 0);
    tutti_data *data = tutti_data_open(in_files("photos"), &options);
    ck_assert_msg(data != NULL, "%s", status_message());
    char *text = tutti_data_json(data);
    ck_assert_str_eq(text,
        "{\"kind\":\"images\",\"shape\":[3,8,8],\"bytes\":true,\"mean\":[0.5,0.25,0.5],\"std\":[1.0,2.0,4.0],"
        "\"classes\":[\"a\",\"b\",\"c\"],\"split\":0.0,\"seed\":7,\"divided\":{\"train\":3,\"val\":3,\"all\":6}}");
    free(text);
    tutti_data_free(data);
    options.normalise = "0.5/1";
    ck_assert_ptr_null(tutti_data_open(in_files("photos"), &options));
    options.normalise = "measured";
    data = tutti_data_open(in_files("photos"), &options);
    const tutti_data_info info = describe(data);
    ck_assert_double_eq_tol((double)info.mean[0], 100.0 / 255, 1e-6);
    ck_assert_double_eq_tol((double)info.std[0], 40.824829 / 255, 1e-6);
    ck_assert_double_eq_tol((double)info.mean[2], 200.0 / 255, 1e-6);
    tutti_data_free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data");
    TCase *folders = tcase_create("folders");
    tcase_add_checked_fixture(folders, files_begin, files_end);
    tcase_add_test(folders, folder_of_classes);
    tcase_add_test(folders, classes_without_pictures);
    tcase_add_test(folders, unknown_data);
    tcase_add_test(folders, division_follows_from_the_seed);
    tcase_add_test(folders, folders_of_parts);
    tcase_add_test(folders, folds_of_the_training_part);
    tcase_add_test(folders, photos_without_classes);
    tcase_add_loop_test(folders, masks_of_images, 0, 2);
    tcase_add_test(folders, masks_that_teach_nothing);
    tcase_add_test(folders, json_names_the_classes);
    suite_add_tcase(suite, folders);
    suite_add_tcase(suite, masks_case());
    suite_add_tcase(suite, tar_case());
    suite_add_tcase(suite, reading_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
