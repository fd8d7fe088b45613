#include "files.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char own[64];

void files_begin(void)
{
    snprintf(own, sizeof(own), "/tmp/tutti-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(own));
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

void files_end(void)
{
    nftw(own, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_files(const char *format, ...)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];
    const int used = snprintf(path, sizeof(paths[0]), "%s/", own);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + used, sizeof(paths[0]) - (size_t)used, format, arguments);
    va_end(arguments);
    return path;
}

void write_file(const char *path, const void *bytes, size_t count)
{
    char folder[512];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        mkdir(folder, 0700);
    }
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

void write_ppm(const char *path, int width, int height, int red, int green, int blue, int noise)
{
    unsigned char bytes[20000];
    const int colours[3] = { red, green, blue };
    size_t used = (size_t)snprintf((char *)bytes, sizeof(bytes), "P6\n%d %d\n255\n", width, height);
    ck_assert_uint_le(used + (size_t)(3 * width * height), sizeof(bytes));
    for (int i = 0; i < 3 * width * height; i++)
        bytes[used++] = (unsigned char)(colours[i % 3] + (noise ? (i * 7919 + red * 31) % noise : 0));
    write_file(path, bytes, used);
}

void write_pgm(const char *path, int width, int height, const unsigned char *values)
{
    unsigned char bytes[20000];
    const size_t used = (size_t)snprintf((char *)bytes, sizeof(bytes), "P5\n%d %d\n255\n", width, height);
    memcpy(bytes + used, values, (size_t)(width * height));
    write_file(path, bytes, used + (size_t)(width * height));
}

void write_classes(const char *folder, int count, int noise)
{
    for (int class_number = 0; class_number < 3; class_number++)
        for (int i = 0; i < count; i++) {
            char path[512];
            snprintf(path, sizeof(path), "%s/%c/%03d.ppm", folder, 'a' + class_number, i);
            write_ppm(path, 9 + i % 5, 12, 50 + 50 * class_number, i, 200, noise);
        }
}

static void hear(void *user, const char *line)
{
    struct heard *heard = user;
    if (heard->count < 16) snprintf(heard->lines[heard->count], sizeof(heard->lines[0]), "%s", line);
    heard->count++;
}

tutti_data_options small_options(struct heard *heard)
{
    return (tutti_data_options) { .size = sizeof(tutti_data_options),
        .channels = 3,
        .height = 8,
        .width = 8,
        .cache = -1,
        .threads = 1,
        .note = heard ? hear : NULL,
        .user = heard };
}

int64_t part_count(const tutti_data *data, tutti_data_part part)
{
    const tutti_source *source = tutti_data_source(data, part);
    return source ? source->samples : 0;
}

int read_part(const tutti_data *data, tutti_data_part part, unsigned char *bytes, int32_t *labels)
{
    const tutti_source *source = tutti_data_source(data, part);
    int64_t indices[MOST];
    ck_assert_ptr_nonnull(source);
    ck_assert_int_le(source->samples, MOST);
    for (int64_t i = 0; i < source->samples; i++) indices[i] = i;
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_U8, bytes, SAMPLE },
        { "targets", TUTTI_DTYPE_I32, labels, sizeof(*labels) } };
    return source->read(source->user, indices, source->samples, buffers, 2);
}
