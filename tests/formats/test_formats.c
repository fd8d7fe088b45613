#include "formats.h"

#include "base/random.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char own_folder[256];

void folder_begin(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(own_folder, sizeof(own_folder), "%s/tutti-formats-XXXXXX", parent ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(own_folder));
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

void folder_end(void)
{
    nftw(own_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder(void)
{
    return own_folder;
}

const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", own_folder, name);
    return path;
}

void write_bytes(const char *path, const void *bytes, size_t size)
{
    /* A new file: some file systems flush one that is cut to nothing and written again, which takes milliseconds. */
    remove(path);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void write_gzip(const char *path, const void *bytes, size_t size)
{
    remove(path);
    gzFile file = gzopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

void expect_failure(tutti_status found, tutti_status wanted, const char *file, const char *reason)
{
    const char *message = status_message();
    ck_assert_msg(found == wanted, "status %d where %d is right; message: %s", (int)found, (int)wanted, message);
    ck_assert_msg(!strchr(message, '\n'), "more than one line: %s", message);
    ck_assert_msg(strstr(message, file) != NULL, "does not name %s: %s", file, message);
    ck_assert_msg(strstr(message, reason) != NULL, "does not say '%s': %s", reason, message);
}

size_t chance(size_t bound)
{
    static uint64_t index;
    return (size_t)random_below(1, 0, index++, bound);
}

int main(void)
{
    SRunner *runner = srunner_create(safetensors_suite());
    srunner_add_suite(runner, idx_suite());
    srunner_add_suite(runner, dataset_suite());
    srunner_add_suite(runner, decoded_suite());
    srunner_add_suite(runner, digits_suite());
    srunner_add_suite(runner, image_suite());
    srunner_add_suite(runner, json_lines_suite());
    srunner_add_suite(runner, npz_suite());
    srunner_add_suite(runner, csv_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
