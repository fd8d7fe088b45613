/* Reads, decodes and augments the JPEG files of a folder on some threads, again and again, and prints samples per
 * second. loader.py compares it with PyTorch's DataLoader.
 *
 *   loader FOLDER THREADS SECONDS WORDS    WORDS as for tutti train --augment
 */
#include "base/file.h"
#include "base/numbers.h"
#include "base/status.h"
#include "data/augment.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 224, BATCH = 64, SAMPLE = 3 * SIDE * SIDE, MOST_FILES = 10000, MOST_THREADS = 256 };

static struct {
    char *files[MOST_FILES];
    int count;
    struct augment augment;
    double end;
    atomic_llong next, done;
    atomic_bool failed;
    unsigned char *batches; /* two of them, written in turn */
} loader;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static tutti_status load(int64_t number, struct image *image, struct augment_scratch *scratch)
{
    const char *path = loader.files[number % loader.count];
    const struct draw draw = { 1, (uint64_t)(number / loader.count), number % loader.count, true };
    tutti_status status = TUTTI_OK;
    unsigned char *bytes = NULL;
    size_t size;
    int width, height;
    TRY(file_read(path, (size_t)1 << 28, &bytes, &size));
    TRY(image_size(bytes, size, path, &width, &height));
    const struct box box = augment_box(&loader.augment, &draw, width, height, SIDE, SIDE);
    const struct image_wish wish = augment_wish(&box, width, height, 3, SIDE, SIDE);
    TRY(image_decode(bytes, size, path, &wish, image));
    TRY(augment_image(&loader.augment, &draw, image, &box, width, height, SIDE, SIDE, scratch,
        loader.batches + (number % (2 * BATCH)) * SAMPLE));
done:
    free(bytes);
    return status;
}

static void *work(void *unused)
{
    struct augment_scratch *scratch = augment_scratch_new();
    struct image image = { 0 };
    (void)unused;
    while (scratch && now() < loader.end && !loader.failed) {
        if (load(atomic_fetch_add(&loader.next, 1), &image, scratch) != TUTTI_OK) {
            fprintf(stderr, "loader: %s\n", status_message());
            loader.failed = true;
        }
        atomic_fetch_add(&loader.done, 1);
    }
    if (!scratch) loader.failed = true;
    image_free(&image);
    augment_scratch_free(scratch);
    return NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_files(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    if (!entries) return false;
    while ((entry = readdir(entries)) && loader.count < MOST_FILES) {
        if (!image_has_name(entry->d_name)) continue;
        const size_t size = strlen(folder) + strlen(entry->d_name) + 2;
        char *path = malloc(size);
        if (!path) break;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        loader.files[loader.count++] = path;
    }
    closedir(entries);
    qsort(loader.files, (size_t)loader.count, sizeof(*loader.files), compare_names);
    return loader.count > 0;
}

int main(int count, char **arguments)
{
    pthread_t threads[MOST_THREADS];
    char *end;
    if (count != 5) return fprintf(stderr, "usage: loader FOLDER THREADS SECONDS WORDS\n"), 2;
    const int wanted = atoi(arguments[2]);
    const double seconds = number_read(arguments[3], &end);
    if (wanted < 1 || wanted > MOST_THREADS || seconds <= 0) return fprintf(stderr, "loader: impossible numbers\n"), 2;
    if (augment_parse(arguments[4], AUGMENT_IMAGES, &loader.augment) != TUTTI_OK)
        return fprintf(stderr, "loader: %s\n", status_message()), 2;
    loader.batches = malloc((size_t)2 * BATCH * SAMPLE);
    if (!loader.batches || !list_files(arguments[1])) return fprintf(stderr, "loader: no pictures\n"), 1;
    const double start = now();
    loader.end = start + seconds;
    int started = 0;
    while (started < wanted && !pthread_create(&threads[started], NULL, work, NULL)) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    if (started < wanted || loader.failed) return 1;
    printf("%.1f\n", (double)loader.done / (now() - start));
    for (int i = 0; i < loader.count; i++) free(loader.files[i]);
    free(loader.batches);
    return 0;
}
