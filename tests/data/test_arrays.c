/* Arrays: names and parts, images of bytes, numbers of all types, files larger than what is read of them. */
#include "kinds.h"

#include "base/half.h"
#include "formats/npy_rows.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tutti_data_options none = { .size = 0 };

static struct npz_array array(const char *name, enum npz_type type, int rank, const int64_t *sizes, void *data)
{
    struct npz_array made = { .name = name, .type = type, .rank = rank, .data = data };
    for (int i = 0; i < rank; i++) made.sizes[i] = sizes[i];
    return made;
}

static void save(const char *file, const struct npz_array *arrays, int count)
{
    ck_assert_msg(npz_save(in_kinds(file), arrays, count) == TUTTI_OK, "%s", status_message());
}

START_TEST(reads_images)
{
    unsigned char pixels[2][5][6][3], sample[90];
    int64_t labels[2] = { 2, 0 };
    int32_t label;
    char name[40];
    for (size_t i = 0; i < sizeof pixels; i++) ((unsigned char *)pixels)[i] = (unsigned char)(i * 37);
    save("images.npz",
        (struct npz_array[]) { array("images", NPZ_U8, 4, (int64_t[]) { 2, 5, 6, 3 }, pixels),
            array("labels", NPZ_I64, 2, (int64_t[]) { 2, 1 }, labels) },
        2);
    struct collection *data = opened(arrays_open, "images.npz", &none);
    ck_assert_int_eq(data->info.dtype, TUTTI_DTYPE_U8);
    ck_assert(data->info.shape.sizes[0] == 3 && data->info.shape.sizes[1] == 5 && data->info.shape.sizes[2] == 6);
    ck_assert_int_eq(data->info.classes, 3);
    ck_assert_str_eq(data->info.class_names[2], "2");
    ck_assert_int_eq(data->read(data, 1, &(struct draw) { .sample = 1 }, sample, &label), TUTTI_OK);
    ck_assert_int_eq(label, 0);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 30; i++) ck_assert_int_eq(sample[c * 30 + i], pixels[1][i / 6][i % 6][c]);
    double sum = 0, squares = 0;
    for (int i = 0; i < 60; i++) {
        const double value = pixels[i / 30][i % 30 / 6][i % 6][1] / 255.0;
        sum += value;
        squares += value * value;
    }
    ck_assert_float_eq_tol(data->info.mean[1], (float)(sum / 60), 1e-6f);
    ck_assert_float_eq_tol(data->info.std[1], (float)sqrt(squares / 60 - sum / 60 * (sum / 60)), 1e-6f);
    data->name(data, 1, name, sizeof name);
    ck_assert_str_eq(name, "images[1]");
    data->free(data);
}
END_TEST

/* A flip, or none, from both layouts of pixels; evaluation shows images as they are. */
START_TEST(augments_images)
{
    unsigned char last[1][5][5][3], first[1][3][5][5], samples[2][75], labels[1] = { 0 };
    int32_t label;
    bool flipped = false, kept = false;
    for (int i = 0; i < 75; i++) {
        ((unsigned char *)last)[i] = (unsigned char)(i * 37);
        first[0][i % 3][i / 15][i / 3 % 5] = (unsigned char)(i * 37);
    }
    const struct npz_array y = array("y", NPZ_U8, 1, (int64_t[]) { 1 }, labels);
    save("last.npz", (struct npz_array[]) { array("x", NPZ_U8, 4, (int64_t[]) { 1, 5, 5, 3 }, last), y }, 2);
    save("first.npz", (struct npz_array[]) { array("x", NPZ_U8, 4, (int64_t[]) { 1, 3, 5, 5 }, first), y }, 2);
    const tutti_data_options options = { .augment = "flip" };
    struct collection *data[] = { opened(arrays_open, "last.npz", &options),
        opened(arrays_open, "first.npz", &options) };
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        const struct draw draw = { .seed = 1, .epoch = epoch, .training = epoch > 0 };
        for (int i = 0; i < 2; i++) ck_assert_int_eq(data[i]->read(data[i], 0, &draw, samples[i], &label), TUTTI_OK);
        ck_assert_mem_eq(samples[0], samples[1], 75);
        const bool same = !memcmp(samples[0], first, 75);
        ck_assert(same || epoch > 0);
        for (int i = 0; i < 75 && !same; i++)
            ck_assert_int_eq(samples[0][i], ((unsigned char *)first)[i / 5 * 5 + 4 - i % 5]);
        kept = kept || (epoch > 0 && same);
        flipped = flipped || !same;
    }
    ck_assert(kept && flipped);
    data[0]->free(data[0]);
    data[1]->free(data[1]);
}
END_TEST

/* The names that Keras's files have, in a folder. */
START_TEST(reads_parts)
{
    unsigned char pixels[3][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, labels[3] = { 0, 1, 1 },
                  sample[4];
    const int64_t sizes[] = { 2, 2, 2 };
    int32_t label;
    struct npz_array x = array("", NPZ_U8, 3, sizes, pixels), y = array("", NPZ_U8, 1, sizes, labels);
    save("keras/x_train.npy", &x, 1);
    save("keras/Y-train.npy", &y, 1);
    struct collection *data = opened(arrays_open, "keras", &none);
    ck_assert_int_eq(data->parts[0], PART_OPEN);
    data->free(data);
    x.sizes[0] = y.sizes[0] = 1;
    x.data = pixels[2];
    y.data = &labels[2];
    save("keras/test/images.npy", &x, 1);
    save("keras/test/labels.npy", &y, 1);
    data = opened(arrays_open, "keras/x_train.npy", &none);
    ck_assert_int_eq(data->samples, 3);
    ck_assert(data->parts[1] == TUTTI_DATA_TRAIN && data->parts[2] == TUTTI_DATA_TEST);
    ck_assert_int_eq(data->read(data, 2, NULL, sample, &label), TUTTI_OK);
    ck_assert_int_eq(label, 1);
    ck_assert_mem_eq(sample, pixels[2], 4);
    ck_assert_int_eq(data->info.shape.sizes[0], 1);
    data->free(data);
    save("keras/x.npy", &x, 1);
    expect_refused(arrays_open, "keras", &none, "'x'", "no targets");
    save("keras/y.npy", &y, 1);
    expect_refused(arrays_open, "keras", &none, "'x'", "train_x");
    ck_assert_int_eq(arrays_open(in_kinds("empty/file"), &none, &data), TUTTI_OK);
    ck_assert_int_eq(arrays_open(in_kinds("empty"), &none, &data), TUTTI_OK);
    ck_assert_ptr_null(data);
}
END_TEST

static void expect_numbers(enum npz_type type, void *values, const char *file, float second, bool bytes)
{
    float targets[2] = { -1, 1.5f }, sample[2], target;
    struct npz_array arrays[] = { array("data", type, 2, (int64_t[]) { 2, 2 }, values),
        array("targets", NPZ_F32, 1, (int64_t[]) { 2 }, targets) };
    save(file, arrays, 2);
    struct collection *data = opened(arrays_open, file, &(tutti_data_options) { .normalise_targets = "none" });
    ck_assert_int_eq(data->info.dtype, TUTTI_DTYPE_F32);
    ck_assert_int_eq(data->info.target_shape.sizes[0], 1);
    ck_assert_int_eq(read_floats(data, 1, sample, &target), TUTTI_OK);
    ck_assert_float_eq(target, 1.5f);
    ck_assert_float_eq_tol(sample[1], bytes ? second / 255 : second, 1e-6f);
    data->free(data);
}

START_TEST(converts_numbers)
{
    expect_numbers(NPZ_BOOL, (bool[]) { 0, 1, 0, 1 }, "b.npz", 1, false);
    expect_numbers(NPZ_U8, (uint8_t[]) { 0, 1, 2, 200 }, "u8.npz", 200, true);
    expect_numbers(NPZ_I8, (int8_t[]) { 0, 1, 2, -3 }, "i8.npz", -3, false);
    expect_numbers(NPZ_I16, (int16_t[]) { 0, 1, 2, -300 }, "i16.npz", -300, false);
    expect_numbers(NPZ_U16, (uint16_t[]) { 0, 1, 2, 65535 }, "u16.npz", 65535, false);
    expect_numbers(NPZ_I32, (int32_t[]) { 0, 1, 2, -70000 }, "i32.npz", -70000, false);
    expect_numbers(NPZ_U32, (uint32_t[]) { 0, 1, 2, 70000 }, "u32.npz", 70000, false);
    expect_numbers(NPZ_I64, (int64_t[]) { 0, 1, 2, -5 }, "i64.npz", -5, false);
    expect_numbers(NPZ_U64, (uint64_t[]) { 0, 1, 2, 5 }, "u64.npz", 5, false);
    expect_numbers(NPZ_F16, (uint16_t[]) { 0, 0, 0, half_from_float(0.5f) }, "f16.npz", 0.5f, false);
    expect_numbers(NPZ_F32, (float[]) { 0, 0, 0, 0.25f }, "f32.npz", 0.25f, false);
    expect_numbers(NPZ_F64, (double[]) { 0, 0, 0, 0.125 }, "f64.npz", 0.125f, false);
}
END_TEST

/* Columns, or channels of more axes, by the training part alone; in double, since times have more digits than floats.
 */
START_TEST(standardises_numbers)
{
    double times[6] = { 1700000000000, 5, 1700000000002, 5, 1800000000000, 9 };
    float grids[2][2][3] = { { { 0, 1, 2 }, { 5, 5, 5 } }, { { 2, 3, 4 }, { 7, 7, 7 } } }, sample[6], target,
          targets[3] = { 0 };
    const struct npz_array y = array("y", NPZ_F32, 1, (int64_t[]) { 2 }, targets);
    struct npz_array x = array("train_x", NPZ_F64, 2, (int64_t[]) { 2, 2 }, times);
    struct npz_array named[4] = { x, y, x, y };
    named[1].name = "train_y";
    named[2] = array("test_x", NPZ_F64, 2, (int64_t[]) { 1, 2 }, times + 4);
    named[3] = array("test_y", NPZ_F32, 1, (int64_t[]) { 1 }, targets);
    save("times.npz", named, 4);
    struct collection *data = opened(arrays_open, "times.npz", &(tutti_data_options) { .normalise = "measured" });
    ck_assert_int_eq(read_floats(data, 0, sample, &target), TUTTI_OK);
    ck_assert(sample[0] == -1 && sample[1] == 0);
    ck_assert_int_eq(read_floats(data, 1, sample, &target), TUTTI_OK);
    ck_assert(sample[0] == 1 && sample[1] == 0);
    ck_assert_int_eq(read_floats(data, 2, sample, &target), TUTTI_OK);
    ck_assert(sample[0] > 9e8f && sample[1] == 4);
    data->free(data);
    x = array("x", NPZ_F32, 3, (int64_t[]) { 2, 2, 3 }, grids);
    save("grids.npz", (struct npz_array[]) { x, y }, 2);
    data = opened(arrays_open, "grids.npz", &(tutti_data_options) { .normalise = "2,6/2,0.5" });
    ck_assert_int_eq(read_floats(data, 1, sample, &target), TUTTI_OK);
    ck_assert(sample[0] == 0 && sample[2] == 1 && sample[3] == 2 && sample[5] == 2);
    data->free(data);
    data = opened(arrays_open, "grids.npz", &none); /* as they are */
    ck_assert_int_eq(read_floats(data, 1, sample, &target), TUTTI_OK);
    ck_assert(sample[2] == 4);
    data->free(data);
    expect_refused(arrays_open, "grids.npz", &(tutti_data_options) { .normalise = "imagenet" }, "imagenet", "2 means");
}
END_TEST

static void expect_classes(const struct collection *data, const char *const *names, int count)
{
    ck_assert_int_eq(data->info.classes, count);
    for (int i = 0; i < count; i++) ck_assert_str_eq(data->info.class_names[i], names[i]);
}

/* Floats with channels last are read so where the options say it; the description keeps it. */
START_TEST(reads_channels_last)
{
    static float numbers[2][6][5][3], labels[2] = { 0, 1 };
    float sample[90], target;
    for (int i = 0; i < 180; i++) (&numbers[0][0][0][0])[i] = (float)i;
    const struct npz_array x = array("x", NPZ_F32, 4, (int64_t[]) { 2, 6, 5, 3 }, numbers);
    const struct npz_array y = array("y", NPZ_F32, 1, (int64_t[]) { 2 }, labels);
    save("k.npz", (struct npz_array[]) { x, y }, 2);
    struct collection *data = opened(arrays_open, "k.npz", &(tutti_data_options) { .note = hear });
    ck_assert_int_eq(data->info.shape.sizes[0], 6);
    ck_assert_ptr_nonnull(strstr(heard, "'x' looks like [n, h, w, c]"));
    ck_assert_ptr_nonnull(strstr(heard, "give --layout nhwc"));
    data->free(data);
    *heard = '\0';
    data = opened(arrays_open, "k.npz", &(tutti_data_options) { .layout = "nchw", .note = hear });
    ck_assert_str_eq(heard, "");
    data->free(data);
    tutti_data_options options = { .layout = "nhwc", .note = hear, .normalise = "0,0,88/1,1,2" };
    data = opened(arrays_open, "k.npz", &options);
    ck_assert(data->info.shape.sizes[0] == 3 && data->info.shape.sizes[1] == 6 && data->info.shape.sizes[2] == 5);
    ck_assert_int_eq(read_floats(data, 1, sample, &target), TUTTI_OK);
    ck_assert(
        sample[0] == 90 && sample[1] == 93 && sample[30] == 91 && sample[60] == 2 && sample[89] == (179 - 88) / 2.0f);
    json_t *described = json_object();
    ck_assert_int_eq(data->describe(data, described), 0);
    ck_assert_str_eq(json_string_value(json_object_get(described, "layout")), "nhwc");
    json_decref(described);
    data->free(data);
    options.layout = "chwn";
    expect_refused(arrays_open, "k.npz", &options, "chwn", "nchw and nhwc");
    options.layout = "nhwc";
    save("k.npz", (struct npz_array[]) { y, array("x", NPZ_F32, 3, (int64_t[]) { 2, 30, 3 }, numbers) }, 2);
    expect_refused(arrays_open, "k.npz", &options, "'x'", "samples of 2 axes");
}
END_TEST

/* Writes a .npy file of three elements of this type. */
static void put_texts(const char *name, const char *type, const void *elements, size_t bytes)
{
    unsigned char file[400] = "\x93NUMPY\1\0v\0";
    const int length =
        snprintf((char *)file + 10, 200, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", type);
    memset(file + 10 + length, ' ', (size_t)(118 - length));
    memcpy(file + 128, elements, bytes);
    put(name, file, 128 + bytes);
}

/* Labels that are texts or negative are classes by their names, in order; other data have them by name. */
START_TEST(names_classes)
{
    static const uint32_t wide[3][3] = { { 'd', 'o', 'g' }, { 0xfc, 'x', 0 }, { 'c', 'a', 't' } };
    int64_t signs[3] = { 1, -1, 1 };
    float numbers[3] = { 0, 1, 2 }, sample;
    int32_t label;
    const struct npz_array x = array("x", NPZ_F32, 2, (int64_t[]) { 3, 1 }, numbers);
    save("t/x.npy", &x, 1);
    put_texts("t/y.npy", "<U3", wide, sizeof wide);
    struct collection *data = opened(arrays_open, "t", &(tutti_data_options) { .note = hear });
    expect_classes(data, (const char *[]) { "cat", "dog", "\u00fcx" }, 3);
    ck_assert_ptr_nonnull(strstr(heard, "the 3 classes have the names of their labels, 'cat' to '"));
    static const int32_t expected[] = { 1, 2, 0 };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(read_floats(data, i, &sample, &label), TUTTI_OK);
        ck_assert_int_eq(label, expected[i]);
    }
    data->free(data);
    put_texts("t/y.npy", "|S4", "bird\0\0\0\0bee", 12);
    expect_refused(arrays_open, "t", &none, "t: 'y'", "in row 1: it is empty");
    put_texts("t/y.npy", "|S4", "bird\xff\0\0\0bee", 12);
    expect_refused(arrays_open, "t", &none, "t: 'y'", "in row 1: it is empty, not UTF-8");
    put_texts("t/y.npy", "|S4", "bird\0\0\0\0bee", 11);
    expect_refused(arrays_open, "t", &none, "y.npy", "do not fit its shape");
    put_texts("t/y.npy", "|S4", "bee\0bird\nb\0", 12);
    data = opened(arrays_open, "t", &none);
    expect_classes(data, (const char *[]) { "\nb", "bee", "bird" }, 3);
    data->free(data);
    put_texts("t/x.npy", "|S4", "bee\0bird\nb\0", 12);
    expect_refused(arrays_open, "t", &none, "t: 'x'", "inputs are numbers");
    save("n.npz", (struct npz_array[]) { x, array("y", NPZ_I64, 1, (int64_t[]) { 3 }, signs) }, 2);
    data = opened(arrays_open, "n.npz", &none);
    expect_classes(data, (const char *[]) { "-1", "1" }, 2);
    ck_assert_int_eq(data->labels[0], 1);
    ck_assert_int_eq(data->labels[1], 0);
    data->free(data);
}
END_TEST

START_TEST(refuses_arrays)
{
    float numbers[6] = { 0, 1, NAN, 3, 4, 5 }, sample[2];
    int64_t labels[3] = { 0, -1, 70000 };
    int32_t label;
    struct npz_array x = array("x", NPZ_F32, 2, (int64_t[]) { 3, 2 }, numbers);
    struct npz_array y = array("y", NPZ_I64, 1, (int64_t[]) { 3 }, labels), z = array("z", NPZ_I64, 0, NULL, labels);
    save("a.npz", (struct npz_array[]) { x, y }, 2);
    struct collection *named = opened(arrays_open, "a.npz", &none);
    expect_classes(named, (const char *[]) { "-1", "0", "70000" }, 3);
    named->free(named);
    labels[1] = 0;
    labels[2] = 1;
    save("a.npz", (struct npz_array[]) { x, y }, 2);
    struct collection *data = opened(arrays_open, "a.npz", &none);
    ck_assert_int_eq(read_floats(data, 1, sample, &label), TUTTI_FORMAT);
    ck_assert_ptr_nonnull(strstr(status_message(), "x[1] has numbers that are not finite"));
    data->free(data);
    save("a.npz", &x, 1);
    expect_refused(arrays_open, "a.npz", &none, "'x'", "no targets");
    save("a.npz", &z, 1);
    expect_refused(arrays_open, "a.npz", &none, "a.npz", "it has z");
    y.sizes[0] = 2;
    save("a.npz", (struct npz_array[]) { x, y }, 2);
    expect_refused(arrays_open, "a.npz", &none, "'x' and 'y'", "3 and 2");
    y = array("y", NPZ_F32, 2, (int64_t[]) { 3, 0 }, numbers);
    save("a.npz", (struct npz_array[]) { x, y }, 2);
    expect_refused(arrays_open, "a.npz", &none, "'x'", "empty");
    struct npz_array other = x;
    other.name = "images";
    save("a.npz", (struct npz_array[]) { x, other }, 2);
    expect_refused(arrays_open, "a.npz", &none, "a.npz", "may both be");
    save("some.npy", &x, 1);
    expect_refused(arrays_open, "some.npy", &none, "some.npy", "x.npy");
}
END_TEST

/* An array of 1 TiB, which has no bytes on the disk: rows are read where they are. */
START_TEST(reads_rows)
{
    const int64_t rows = (int64_t)1 << 20, elements = 1 << 18;
    const struct npz_array empty = array("", NPZ_F32, 2, (int64_t[]) { 0, elements }, NULL);
    float values[4] = { 1, 2, 3, 4 };
    struct npy_rows *file = NULL;
    save("x.npy", &empty, 1);
    FILE *stream = fopen(in_kinds("x.npy"), "r+b");
    ck_assert_ptr_nonnull(stream);
    char head[128] = "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (1048576, 262144), }";
    for (size_t i = 0; i < sizeof head; i++)
        if (i > 20 && !head[i]) head[i] = ' ';
    head[127] = '\n';
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, stream), sizeof head);
    if (fseeko(stream, 128 + rows * elements * 4 - 16, SEEK_SET) == 0 && fwrite(values, 4, 4, stream) == 4 &&
        fclose(stream) == 0) { /* else the file system has no files so large */
        float *row = malloc((size_t)elements * 4);
        ck_assert_ptr_nonnull(row);
        ck_assert_msg(npy_rows_open(in_kinds("x.npy"), &file) == TUTTI_OK, "%s", status_message());
        ck_assert_int_eq(npy_rows_read(file, rows - 1, 1, row), TUTTI_OK);
        ck_assert_mem_eq(row + elements - 4, values, 16);
        ck_assert_float_eq(row[0], 0);
        free(row);
    }
    npy_rows_close(file);
}
END_TEST

/* Columns first, and the other order of bytes. */
START_TEST(reads_layouts)
{
    static const char columns[] =
        "\x93NUMPY\1\0\x44\0{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }         \n";
    static const char swapped[] =
        "\x93NUMPY\1\0\x44\0{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }        \n";
    static const int16_t by_columns[] = { 1, 4, 2, 5, 3, 6 }, by_rows[] = { 1, 2, 3, 4, 5, 6 };
    for (int other = 0; other < 2; other++) {
        unsigned char bytes[90];
        int16_t row[3];
        struct npy_rows *file = NULL;
        const size_t head = 10 + 0x44;
        memcpy(bytes, other ? swapped : columns, sizeof columns - 1);
        memset(bytes + sizeof columns - 2, ' ', head - sizeof columns + 2);
        bytes[head - 1] = '\n';
        memcpy(bytes + head, other ? by_rows : by_columns, 12);
        for (size_t i = head; other && i < head + 12; i += 2) {
            const unsigned char byte = bytes[i];
            bytes[i] = bytes[i + 1];
            bytes[i + 1] = byte;
        }
        put("layout.npy", bytes, head + 12);
        ck_assert_msg(npy_rows_open(in_kinds("layout.npy"), &file) == TUTTI_OK, "%s", status_message());
        ck_assert_int_eq(npy_rows_read(file, 1, 1, row), TUTTI_OK);
        ck_assert(row[0] == 4 && row[1] == 5 && row[2] == 6);
        npy_rows_close(file);
        for (size_t size = 0; size < head + 12; size++) {
            put("layout.npy", bytes, size);
            ck_assert_int_eq(npy_rows_open(in_kinds("layout.npy"), &file), TUTTI_FORMAT);
            ck_assert_ptr_null(file);
        }
    }
}
END_TEST

Suite *arrays_suite(void)
{
    Suite *suite = suite_create("arrays");
    TCase *tests = tcase_create("arrays");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, reads_images);
    tcase_add_test(tests, augments_images);
    tcase_add_test(tests, reads_parts);
    tcase_add_test(tests, converts_numbers);
    tcase_add_test(tests, standardises_numbers);
    tcase_add_test(tests, reads_channels_last);
    tcase_add_test(tests, names_classes);
    tcase_add_test(tests, refuses_arrays);
    tcase_add_test(tests, reads_rows);
    tcase_add_test(tests, reads_layouts);
    suite_add_tcase(suite, tests);
    return suite;
}
