/* classes.txt next to images and masks. */
#include "data/collection.h"
#include "tests/fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512];
static const char *const below[] = { "images", "images/a.ppm", "masks", "masks/a.pgm" };

static void path_of(int i, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/%s", folder, below[i]) >= size) abort();
}

static void remove_below(void)
{
    char path[600];
    for (int i = 3; i >= 0; i--) {
        path_of(i, path, sizeof path);
        remove(path);
    }
}

static void make_folder(int i)
{
    char path[600];
    path_of(i, path, sizeof path);
    if (mkdir(path, 0700) != 0) abort();
}

static void make_file(int i, const char *text)
{
    char path[600];
    path_of(i, path, sizeof path);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_link("classes.txt", folder, sizeof folder);
    *strrchr(folder, '/') = '\0';
    make_folder(0);
    make_file(1, "P3 2 1 255 1 2 3 4 5 6");
    make_folder(2);
    make_file(3, "P2 2 1 255 0 3");
    return atexit(remove_below);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tutti_data_options options = { .height = 1, .width = 2, .threads = 1 };
    struct collection *masks = NULL;
    (void)input_path(data, size);
    if (masks_open(folder, &options, &masks) != TUTTI_OK) {
        check_message();
        return 0;
    }
    if (!masks || masks->info.classes < 4) abort();
    for (int i = 0; i < masks->info.classes; i++)
        if (!masks->info.class_names[i] || strpbrk(masks->info.class_names[i], "\r\n")) abort();
    masks->free(masks);
    return 0;
}
