/* Pictures of make_decoded.py (files/decoded.npz): GIF, and WebP, TIFF, HEIC and AVIF, which a helper process decodes;
 * and helpers that do not do what they should. */
#include "pictures.h"

#include "formats.h"
#include "formats/decode/decode.h"
#include "formats/decoder.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_pictures(void)
{
    pictures_open("decoded.npz");
    folder_begin();
}

static void close_pictures(void)
{
    pictures_close();
    folder_end();
}

static bool ends_in(const char *name, const char *end)
{
    return strlen(name) >= strlen(end) && !strcmp(name + strlen(name) - strlen(end), end);
}

/* Decoders of lossy files may round otherwise than those that Pillow has. */
static int most_error(const char *name)
{
    return strncmp(name, "lossy", 5) != 0 ? 0 : ends_in(name, ".heic") || ends_in(name, ".avif") ? 6 : 3;
}

/* Whether this system lacks the library for these bytes; then the message says which. */
static bool is_unsupported(const char *name, const struct npz_array *file)
{
    int width, height;
    if (image_size(file->data, file->bytes, name, &width, &height) != TUTTI_UNSUPPORTED) return false;
    ck_assert(!ends_in(name, ".gif"));
    expect_failure(TUTTI_UNSUPPORTED, TUTTI_UNSUPPORTED, name, "apt install lib");
    return true;
}

static void for_each_file(picture_work *work)
{
    pictures_each(6, is_unsupported, work);
}

static tutti_status decode(const void *bytes, size_t count, const char *name, int channels, bool mask)
{
    const struct image_wish wish = { .channels = channels, .mask = mask };
    return image_decode(bytes, count, name, &wish, &image);
}

static void expect_picture(const char *name, const struct npz_array *file)
{
    const struct npz_array *wanted = picture_find("rgb", name), *mask = picture_find("mask", name);
    int width, height;
    ck_assert_msg(image_size(file->data, file->bytes, name, &width, &height) == TUTTI_OK, "%s", status_message());
    ck_assert_msg(decode(file->data, file->bytes, name, 3, false) == TUTTI_OK, "%s", status_message());
    ck_assert(width == image.width && height == image.height && image.channels == 3);
    ck_assert_msg(wanted->sizes[0] == height && wanted->sizes[1] == width, "%s: %d x %d", name, width, height);
    expect_close(name, image.pixels, wanted->data, wanted->bytes, most_error(name));
    ck_assert_msg(decode(file->data, file->bytes, name, 1, false) == TUTTI_OK, "%s", status_message());
    ck_assert(width == image.width && height == image.height && image.channels == 1);
    const unsigned char *rgb = wanted->data;
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++, rgb += 3) {
        const int grey = (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000;
        ck_assert_msg(abs(image.pixels[i] - grey) <= 1 + most_error(name), "%s: pixel %zu", name, i);
    }
    if (!mask) return;
    ck_assert_msg(decode(file->data, file->bytes, name, 1, true) == TUTTI_OK, "%s", status_message());
    expect_close(name, image.pixels, mask->data, mask->bytes, 0);
}

START_TEST(reads_pillows)
{
    for_each_file(expect_picture);
}
END_TEST

START_TEST(refuses_masks_above_255)
{
    const struct npz_array *file = picture_find("file", "deep.tif");
    if (is_unsupported("deep.tif", file)) return;
    file = picture_find("file", "deep_grey.tif");
    expect_failure(
        decode(file->data, file->bytes, "deep_grey.tif", 1, true), TUTTI_FORMAT, "deep_grey.tif", "above 255");
}
END_TEST

/* ------------------------------------------------------------------------------------------- damaged files ---- */

/* Decodes a copy that has nothing after it, for AddressSanitizer. */
static tutti_status decode_copy(const void *bytes, size_t count, const char *name)
{
    int width, height;
    unsigned char *copy = malloc(count ? count : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, count);
    tutti_status status = image_size(copy, count, name, &width, &height);
    const bool small = status == TUTTI_OK && width <= (1 << 20) / height; /* large ones take long */
    if (small) status = decode(copy, count, name, 3, false);
    if (status != TUTTI_OK) expect_failure(status, TUTTI_FORMAT, name, "");
    free(copy);
    return status;
}

/* What lies after the pixels may be missing: the end of a GIF file, and much of a TIFF, HEIC or AVIF file. */
static void expect_cuts_refused(const char *name, const struct npz_array *file)
{
    const bool strict = ends_in(name, ".webp") || ends_in(name, ".gif");
    const size_t after = ends_in(name, "moving.gif") ? file->bytes / 2 : 5;
    for (size_t count = 0; count<file->bytes; count += file->bytes> 2000 ? 37 : 1) {
        const tutti_status status = decode_copy(file->data, count, name);
        const bool needed = ends_in(name, ".webp") || count + after < file->bytes;
        ck_assert_msg(!strict || !needed || status != TUTTI_OK, "%s cut to %zu bytes is read", name, count);
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
    for (int round = 0; round < 100; round++) {
        memcpy(bytes, file->data, file->bytes);
        change_bytes(bytes, file->bytes);
        (void)decode_copy(bytes, file->bytes, name);
    }
    free(bytes);
}

START_TEST(survives_changed_files)
{
    for_each_file(expect_changes_survived);
}
END_TEST

static void expect_gif_refused(const char *bytes, size_t count, const char *reason)
{
    expect_failure(decode(bytes, count, "it.gif", 3, false), TUTTI_FORMAT, "it.gif: ", reason);
}

START_TEST(refuses_damaged_gif)
{
    expect_gif_refused("GIF89a......", 12, "truncated");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0;", 14, "no frame");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0,\0\0\0\0\0\0\1\0\0\2\2D\1\0;", 27, "no pixels");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\x0c\2D\1\0;", 27, "codes are damaged");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\1\x3c\0;", 26, "codes are damaged");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\2D\1\0;", 27, "more than the");
    expect_gif_refused("GIF89a\1\0\1\0\0\0\0,\0\0\0\0\0\x10\0\x10\0\2\2D\1\0;", 27, "too short for its 4096 x 4096");
}
END_TEST

/* ------------------------------------------------------------------------------------------------- helpers ---- */

static tutti_status decode_lossless(void)
{
    const struct npz_array *file = picture_find("file", "lossless.webp");
    return decode(file->data, file->bytes, "it.webp", 3, false);
}

/* Takes a shell script for the helper. */
static void use_helper(const char *script)
{
    char text[300];
    const char *path = in_folder("helper");
    const int length = snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    write_bytes(path, text, (size_t)length);
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert_int_eq(setenv("TUTTI_DECODER", path, 1), 0);
}

START_TEST(names_missing_helpers)
{
    ck_assert_int_eq(setenv("TUTTI_DECODER", "/nowhere/tutti-decode", 1), 0);
    expect_failure(
        decode_lossless(), TUTTI_UNSUPPORTED, "it.webp is WebP", "'/nowhere/tutti-decode', cannot be started");
    use_helper("exit 1");
    expect_failure(decode_lossless(), TUTTI_UNSUPPORTED, "it.webp is WebP", "ended as soon as it was started");
    use_helper("printf '\\003'; exec head -c 999 /dev/zero"); /* written to standard output, which nobody reads */
    expect_failure(decode_lossless(), TUTTI_UNSUPPORTED, "it.webp is WebP", "ended as soon as it was started");
    use_helper("{ printf '\\003'; exec head -c 999 /dev/zero; } >&0");
    expect_failure(decode_lossless(), TUTTI_UNSUPPORTED, "it.webp is WebP", "libwebp.so.7 (apt install libwebp7)");
}
END_TEST

/* An answer that says "ready" is zeros; what comes then is read as the answer to the file. The last helper is kept. */
START_TEST(survives_bad_helpers)
{
    use_helper("head -c 200 /dev/zero >&0; kill -SEGV $$");
    expect_failure(decode_lossless(), TUTTI_FORMAT, "it.webp: ", "died of signal 11");
    use_helper("{ head -c 200 /dev/zero; head -c 99 /dev/zero; } >&0");
    expect_failure(decode_lossless(), TUTTI_FORMAT, "it.webp: ", "ended early");
    use_helper("head -c 9999 /dev/zero >&0; sleep 9");
    expect_failure(decode_lossless(), TUTTI_FORMAT, "it.webp: ", "impossible size");
    use_helper("head -c 200 /dev/zero >&0; exec sleep 1000");
    decoder_set_patience(1);
    expect_failure(decode_lossless(), TUTTI_FORMAT, "it.webp: ", "takes too long");
    decoder_set_patience(0);
    use_helper("{ head -c 200 /dev/zero; head -c 99999 /dev/zero | tr '\\000' '\\001'; } >&0; sleep 9");
    expect_failure(decode_lossless(), TUTTI_FORMAT, "it.webp: ", "????????");
}
END_TEST

/* Returns whether a child of this process has each of these lines in its /proc/PID/status. */
static bool child_has(const char *const *lines, size_t count)
{
    char path[300], line[300], parent[40];
    DIR *processes = opendir("/proc");
    ck_assert_ptr_nonnull(processes);
    bool all = false;
    snprintf(parent, sizeof parent, "PPid:\t%d\n", (int)getpid());
    for (const struct dirent *one; !all && (one = readdir(processes));) {
        size_t found = 0;
        bool child = false;
        snprintf(path, sizeof path, "/proc/%.200s/status", one->d_name);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            child |= !strcmp(line, parent);
            for (size_t i = 0; i < count; i++) found += !strcmp(line, lines[i]);
        }
        if (file) fclose(file);
        all = child && found == count;
    }
    closedir(processes);
    return all;
}

static void *add_one(void *number)
{
    ++*(int *)number;
    return NULL;
}

/* Returns what a process without rights can do: bits, of which the last one is what it should. */
static int try_all(void)
{
    int done = 0, number = 0;
    pthread_t thread;
    const int file = open("/dev/zero", O_RDONLY);
    if (file < 0 || !sandbox_enter()) return 255;
    if (open("/dev/zero", O_RDONLY) >= 0) done |= 1;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) done |= 2;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) done |= 4;
    if (kill(getppid(), 0) == 0) done |= 8;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) done |= 16;
    if (execl("/bin/true", "true", (char *)NULL) == 0 || unlink("/nowhere") == 0) done |= 32;
    char *memory = malloc(1 << 20);
    const bool reads = memory && read(file, memory, 1 << 20) == 1 << 20;
    if (pthread_create(&thread, NULL, add_one, &number) == 0) pthread_join(thread, NULL);
    if (reads && number == 1) done |= 64;
    free(memory);
    return done;
}

START_TEST(has_no_rights)
{
    int how = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(try_all());
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how));
    ck_assert_int_eq(WEXITSTATUS(how), 64);
}
END_TEST

START_TEST(takes_rights)
{
    static const char *const lines[] = { "Name:\ttutti-decode\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n" };
    if (is_unsupported("lossless.webp", picture_find("file", "lossless.webp"))) return;
    ck_assert(child_has(lines, sizeof lines / sizeof *lines));
}
END_TEST

Suite *decoded_suite(void)
{
    Suite *suite = suite_create("decoded");
    TCase *tests = tcase_create("decoded");
    tcase_add_checked_fixture(tests, open_pictures, close_pictures);
    tcase_add_test(tests, reads_pillows);
    tcase_add_test(tests, refuses_masks_above_255);
    tcase_add_test(tests, refuses_cut_files);
    tcase_add_test(tests, survives_changed_files);
    tcase_add_test(tests, refuses_damaged_gif);
    tcase_add_test(tests, names_missing_helpers);
    tcase_add_test(tests, survives_bad_helpers);
    tcase_add_test(tests, has_no_rights);
    tcase_add_test(tests, takes_rights);
    suite_add_tcase(suite, tests);
    return suite;
}
