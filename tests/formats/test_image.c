/* Pictures of Pillow and of make_images.py (files/images.npz), and damaged ones. */
#include "pictures.h"

#include "formats.h"

#include "formats/image_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decoders of JPEG may round otherwise than the one that Pillow has. Grey is the stored luma, not that of clipped
 * colours. */
enum { JPEG_ERROR = 3, JPEG_GREY_ERROR = 6 };

static void open_pictures(void)
{
    pictures_open("images.npz");
}

static void close_pictures(void)
{
    pictures_close();
}

static bool is_jpeg(const char *name)
{
    return strstr(name, ".jpg") != NULL;
}

/* Whether this build lacks the library for these bytes. */
static bool is_unsupported(const char *name, const struct npz_array *file)
{
    int width, height;
    if (image_size(file->data, file->bytes, name, &width, &height) != TUTTI_UNSUPPORTED) return false;
    expect_failure(TUTTI_UNSUPPORTED, TUTTI_UNSUPPORTED, name, "Tutti was built without it");
    return true;
}

static void expect_grey(const char *name, const unsigned char *colours)
{
    const size_t count = (size_t)image.width * (size_t)image.height;
    const struct npz_array *recorded = picture_find("grey", name);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *rgb = colours + 3 * i;
        const int grey = (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000;
        ck_assert_msg(abs(image.pixels[i] - grey) <= (is_jpeg(name) ? JPEG_GREY_ERROR : 1), "%s: pixel %zu", name, i);
    }
    if (recorded) expect_close(name, image.pixels, recorded->data, count, is_jpeg(name) ? JPEG_GREY_ERROR : 0);
}

static void expect_picture(const char *name, const struct npz_array *file)
{
    const struct npz_array *wanted = picture_find("rgb", name);
    struct image_wish wish = { .channels = 3 };
    int width, height;
    ck_assert_msg(image_size(file->data, file->bytes, name, &width, &height) == TUTTI_OK, "%s", status_message());
    ck_assert_msg(image_decode(file->data, file->bytes, name, &wish, &image) == TUTTI_OK, "%s", status_message());
    ck_assert(width == image.width && height == image.height && image.channels == 3);
    ck_assert_msg(wanted->sizes[0] == height && wanted->sizes[1] == width, "%s: %d x %d", name, width, height);
    expect_close(name, image.pixels, wanted->data, wanted->bytes, is_jpeg(name) ? JPEG_ERROR : 0);
    wish.channels = 1;
    ck_assert_msg(image_decode(file->data, file->bytes, name, &wish, &image) == TUTTI_OK, "%s", status_message());
    ck_assert(width == image.width && height == image.height && image.channels == 1);
    expect_grey(name, wanted->data);
}

static void for_each_file(picture_work *work)
{
    pictures_each(18, is_unsupported, work);
}

START_TEST(reads_pillows)
{
    for_each_file(expect_picture);
}
END_TEST

static void decode(const char *name, int width, int height)
{
    const struct npz_array *file = picture_find("file", name);
    const struct image_wish wish = { .channels = 3, .least_width = width, .least_height = height };
    ck_assert_msg(image_decode(file->data, file->bytes, name, &wish, &image) == TUTTI_OK, "%s", status_message());
}

START_TEST(scales_jpeg)
{
    static const int cases[][4] = { /* wish, result of 83 x 50 */
        { 0, 0, 83, 50 }, { 83, 50, 83, 50 }, { 43, 1, 83, 50 }, { 42, 25, 42, 25 }, { 1, 26, 83, 50 },
        { 21, 13, 21, 13 }, { 12, 7, 21, 13 }, { 11, 7, 11, 7 }, { 1, 1, 11, 7 }, { 0, 7, 83, 50 },
        { 1000, 1000, 83, 50 }
    };
    if (is_unsupported("large.jpg", picture_find("file", "large.jpg"))) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        decode("large.jpg", cases[i][0], cases[i][1]);
        ck_assert_msg(image.width == cases[i][2] && image.height == cases[i][3], "case %zu: %d x %d", i, image.width,
            image.height);
    }
    /* A picture of half the size has the means of four pixels. */
    const unsigned char *whole = picture_find("rgb", "large.jpg")->data;
    decode("large.jpg", 42, 25);
    for (int y = 0; y < 25; y++)
        for (int x = 0; x < 41; x++)
            for (int c = 0; c < 3; c++) {
                const unsigned char *four = whole + (2 * y * 83 + 2 * x) * 3 + c;
                const int mean = (four[0] + four[3] + four[83 * 3] + four[84 * 3] + 2) / 4;
                ck_assert_int_le(abs(image.pixels[(y * 42 + x) * 3 + c] - mean), 40);
            }
    decode("turned6.jpg", 7, 11); /* 13 x 21 as it is seen */
    ck_assert(image.width == 7 && image.height == 11);
    decode("turned6.jpg", 8, 11);
    ck_assert(image.width == 13 && image.height == 21);
}
END_TEST

START_TEST(uses_memory_again)
{
    decode("24.bmp", 0, 0);
    const unsigned char *pixels = image.pixels;
    const size_t capacity = image.capacity;
    decode("8.bmp", 0, 0);
    decode("binary.ppm", 0, 0);
    ck_assert(image.pixels == pixels && image.capacity == capacity);
    image_free(&image);
    ck_assert(!image.pixels && image.capacity == 0);
}
END_TEST

START_TEST(knows_names)
{
    ck_assert(
        image_has_name("a.jpg") && image_has_name("b/c.JPEG") && image_has_name(".x.Png") && image_has_name("a.bmp"));
    ck_assert(image_has_name("a.ppm") && image_has_name("a.pgm") && image_has_name("a.pnm"));
    ck_assert(
        image_has_name("a.gif") && image_has_name("a.webp") && image_has_name("a.TIF") && image_has_name("a.heic"));
    ck_assert(
        !image_has_name("jpg") && !image_has_name("a.jpg.txt") && !image_has_name("") && !image_has_name("a.svg"));
}
END_TEST

/* ------------------------------------------------------------------------------------------- damaged files ---- */

/* Decodes a copy that has nothing after it, for AddressSanitizer. */
static tutti_status decode_copy(const void *bytes, size_t count, const char *name)
{
    const struct image_wish wish = { .channels = 3 };
    int width, height;
    unsigned char *copy = malloc(count ? count : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, count);
    const tutti_status header = image_size(copy, count, name, &width, &height);
    const tutti_status status = image_decode(copy, count, name, &wish, &image);
    if (header != TUTTI_OK) ck_assert_int_eq(status, header);
    free(copy);
    return status;
}

static void expect_cuts_refused(const char *name, const struct npz_array *file)
{
    /* A number cut within its digits is a number. */
    const size_t least = !strncmp(name, "plain.p", 7) ? 4 : 1;
    for (size_t count = 0; count + least <= file->bytes; count++) {
        const tutti_status status = decode_copy(file->data, count, name);
        ck_assert_msg(status == TUTTI_FORMAT, "%s cut to %zu bytes: status %d", name, count, (int)status);
        expect_failure(status, TUTTI_FORMAT, name, "");
    }
}

START_TEST(refuses_cut_files)
{
    for_each_file(expect_cuts_refused);
}
END_TEST

static void expect_changes_survived(const char *name, const struct npz_array *file)
{
    unsigned char *bytes = malloc(file->bytes);
    ck_assert_ptr_nonnull(bytes);
    for (int round = 0; round < 200; round++) {
        memcpy(bytes, file->data, file->bytes);
        change_bytes(bytes, file->bytes);
        int width, height; /* large ones take long */
        if (image_size(bytes, file->bytes, name, &width, &height) == TUTTI_OK && width > 1 << 20 / height) continue;
        const tutti_status status = decode_copy(bytes, file->bytes, name);
        if (status != TUTTI_OK) expect_failure(status, TUTTI_FORMAT, name, "");
    }
    free(bytes);
}

START_TEST(survives_changed_files)
{
    for_each_file(expect_changes_survived);
}
END_TEST

static void expect_refused(const void *bytes, size_t count, const char *reason)
{
    const tutti_status status = decode_copy(bytes, count, "it");
    if (status != TUTTI_UNSUPPORTED) expect_failure(status, TUTTI_FORMAT, "it: ", reason);
}

START_TEST(refuses_other_files)
{
    expect_refused("", 0, "the file is empty");
    expect_refused("GIF88a......", 12, "not a JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, PPM or PGM");
    expect_refused("P5 0 1 255 x", 12, "impossible size");
    expect_refused("P5 16385 16385 255 x", 20, "more than the");
    expect_refused("P5 999999999999 1 255 x", 23, "too large");
    expect_refused("P5 1 1 0 x", 10, "1 to 65535, not 0");
    expect_refused("P5 1 1 65536 xx", 15, "1 to 65535, not 65536");
    expect_refused("P5 16384 16384 255 x", 20, "truncated");
    expect_refused("P2 1 1 255 -1", 13, "should be a digit");
    const struct image_wish two = { .channels = 2 };
    expect_failure(image_decode("P5 1 1 255 x", 12, "it", &two, &image), TUTTI_INVALID, "it", "1 or 3 channels");
}
END_TEST

/* Refuses the file after `count` of its bytes from `place` on were replaced. */
static void expect_changed_refused(const char *name, size_t place, const char *bytes, size_t count, const char *reason)
{
    const struct npz_array *file = picture_find("file", name);
    unsigned char *copy = malloc(file->bytes);
    ck_assert_ptr_nonnull(copy);
    ck_assert_uint_le(place + count, file->bytes);
    memcpy(copy, file->data, file->bytes);
    memcpy(copy + place, bytes, count);
    expect_refused(copy, file->bytes, reason);
    free(copy);
}

START_TEST(refuses_damaged_bmp)
{
    expect_changed_refused("24.bmp", 14, "\x0d", 1, "header of 13 bytes");
    expect_changed_refused("24.bmp", 10, "\x20", 1, "within the header");
    expect_changed_refused("24.bmp", 10, "\xff\xff\xff\xff", 4, "truncated");
    expect_changed_refused("24.bmp", 18, "\xff\xff\xff\xff", 4, "impossible size");
    expect_changed_refused("24.bmp", 22, "\0\0\0\x80", 4, "impossible size");
    expect_changed_refused("24.bmp", 18, "\xff\xff\xff\x0f\1\0\0\0", 8, "truncated");
    expect_changed_refused("24.bmp", 28, "\x10", 1, "16 bits");
    expect_changed_refused("8.bmp", 30, "\1", 1, "compressed");
    expect_changed_refused("masks.bmp", 54, "\0\0\0\0", 4, "a byte for each colour");
}
END_TEST

START_TEST(refuses_damaged_png)
{
    /* A header with a right check sum, and a size that so short a file cannot have. */
    static const unsigned char large[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x40\0\0\0\x40\0\x08\2\0\0\0\x26\xaa\x87\xd3"
                                         "\0\0\0\1IDATx";
    expect_refused(large, sizeof large - 1, "too short for its 16384 x 16384");
    expect_changed_refused("rgb.png", 19, "\x16", 1, "CRC");
    expect_changed_refused("rgb.png", picture_find("file", "rgb.png")->bytes - 20, "....", 4, "");
}
END_TEST

START_TEST(refuses_damaged_jpeg)
{
    const struct npz_array *file = picture_find("file", "444.jpg");
    const unsigned char *bytes = file->data;
    size_t frame = 0, scan = 0;
    for (size_t i = 0; i + 1 < file->bytes && !scan; i++) {
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) frame = i;
        if (bytes[i] == 0xff && bytes[i + 1] == 0xda) scan = i;
    }
    ck_assert(frame > 0 && scan > frame);
    expect_changed_refused("444.jpg", frame + 5, "\x40\0\x40\1", 4, "more than the");
    expect_changed_refused("444.jpg", frame + 5, "\x40\0\x40\0", 4, "too short for its 16384 x 16384");
    expect_changed_refused("444.jpg", frame + 5, "\0\0", 2, "");
    expect_changed_refused("444.jpg", scan + 40, "\xff\xd9", 2, "premature end of data");
}
END_TEST

/* A progressive file of 8 x 8 grey pixels, all of one colour, with so many scans: each spectral number by itself, and
 * then again with its last bit. Returns its length. */
static size_t make_scans(unsigned char *file, int scans)
{
    static const unsigned char frame[] = { 0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0 };
    unsigned char *at = file;
    memcpy(at, "\xff\xd8\xff\xdb\0\x43\0", 7);
    memset(at + 7, 1, 64);
    memcpy(at += 71, frame, sizeof frame);
    at += sizeof frame;
    for (int kind = 0; kind < 2; kind++) { /* Huffman tables: the bit 0 is the number 0 */
        memset(at, 0, 22);
        memcpy(at, "\xff\xc4\0\x14", 4);
        at[4] = (unsigned char)(kind << 4);
        at[5] = 1;
        at += 22;
    }
    for (int scan = 0; scan < scans; scan++) {
        const unsigned char number = (unsigned char)(scan % 64), bits = scan < 64 ? 0x01 : 0x10;
        const unsigned char header[] = { 0xff, 0xda, 0, 8, 1, 1, 0, number, number, bits, 0x7f };
        memcpy(at, header, sizeof header);
        at += sizeof header;
    }
    memcpy(at, "\xff\xd9", 2);
    return (size_t)(at + 2 - file);
}

START_TEST(refuses_many_scans)
{
    unsigned char file[2000];
    if (is_unsupported("444.jpg", picture_find("file", "444.jpg"))) return;
    ck_assert_msg(decode_copy(file, make_scans(file, 100), "it") == TUTTI_OK, "%s", status_message());
    ck_assert(image.width == 8 && image.height == 8 && image.pixels[0] == 128);
    expect_refused(file, make_scans(file, 101), "more than 100 scans");
}
END_TEST

START_TEST(survives_damaged_exif)
{
    unsigned char tiff[] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0";
    ck_assert_int_eq(exif_orientation(tiff, sizeof tiff - 1), 6);
    for (size_t count = 0; count < 22; count++) {
        unsigned char *copy = malloc(count ? count : 1);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, tiff, count);
        ck_assert_int_eq(exif_orientation(copy, count), 1);
        free(copy);
    }
    for (int round = 0; round < 20000; round++) {
        unsigned char changed[sizeof tiff];
        memcpy(changed, tiff, sizeof tiff);
        for (int i = 0; i < 3; i++) changed[chance(sizeof tiff)] = (unsigned char)chance(256);
        const int orientation = exif_orientation(changed, chance(sizeof tiff));
        ck_assert(orientation >= 1 && orientation <= 8);
    }
}
END_TEST

Suite *image_suite(void)
{
    Suite *suite = suite_create("image");
    TCase *tests = tcase_create("image");
    tcase_add_checked_fixture(tests, open_pictures, close_pictures);
    tcase_add_test(tests, reads_pillows);
    tcase_add_test(tests, scales_jpeg);
    tcase_add_test(tests, uses_memory_again);
    tcase_add_test(tests, knows_names);
    tcase_add_test(tests, refuses_cut_files);
    tcase_add_test(tests, survives_changed_files);
    tcase_add_test(tests, refuses_other_files);
    tcase_add_test(tests, refuses_damaged_bmp);
    tcase_add_test(tests, refuses_damaged_png);
    tcase_add_test(tests, refuses_damaged_jpeg);
    tcase_add_test(tests, refuses_many_scans);
    tcase_add_test(tests, survives_damaged_exif);
    suite_add_tcase(suite, tests);
    return suite;
}
