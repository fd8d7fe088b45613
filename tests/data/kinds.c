#include "kinds.h"

#include "base/file.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[256];
char heard[4096];

void kinds_begin(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tutti-kinds-XXXXXX", parent ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    *heard = '\0';
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

void kinds_end(void)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_kinds(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_assert_int_eq(folder_make(path), TUTTI_OK);
    *slash = '/';
    return path;
}

void put(const char *name, const void *bytes, size_t size)
{
    const char *path = in_kinds(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

struct collection *opened(opener open, const char *name, const tutti_data_options *options)
{
    struct collection *collection = NULL;
    ck_assert_msg(open(in_kinds(name), options, &collection) == TUTTI_OK, "%s", status_message());
    ck_assert_ptr_nonnull(collection);
    signed char *part = malloc((size_t)collection->samples);
    ck_assert_ptr_nonnull(part);
    for (int64_t i = 0; i < collection->samples; i++)
        part[i] = collection->parts[i] == PART_OPEN ? TUTTI_DATA_TRAIN : collection->parts[i];
    if (collection->fit) ck_assert_msg(collection->fit(collection, part) == TUTTI_OK, "%s", status_message());
    free(part);
    return collection;
}

void expect_refused(
    opener open, const char *name, const tutti_data_options *options, const char *file, const char *reason)
{
    struct collection *collection = NULL;
    const tutti_status status = open(in_kinds(name), options, &collection);
    const char *message = status_message();
    ck_assert_msg(status == TUTTI_FORMAT || status == TUTTI_INVALID, "status %d, not refused: %s", (int)status, name);
    ck_assert_ptr_null(collection);
    ck_assert_msg(!strchr(message, '\n'), "more than one line: %s", message);
    ck_assert_msg(strstr(message, file) != NULL, "does not say '%s': %s", file, message);
    ck_assert_msg(strstr(message, reason) != NULL, "does not say '%s': %s", reason, message);
}

tutti_status read_floats(struct collection *collection, int64_t index, float *sample, void *target)
{
    const struct draw draw = { .sample = index };
    return collection->read(collection, index, &draw, sample, target);
}

void hear(void *user, const char *line)
{
    (void)user;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", line);
}

int main(void)
{
    SRunner *runner = srunner_create(table_suite());
    srunner_add_suite(runner, arrays_suite());
    srunner_add_suite(runner, recordings_suite());
    srunner_add_suite(runner, targets_suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
