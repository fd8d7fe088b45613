/* Folders of MNIST's, CIFAR-10's and CIFAR-100's files, opened as data, divided and read. The first byte says which
 * file of a folder the other bytes are, and how the data are read. */
#include "formats/dataset_load.h"
#include "tests/fuzz/target.h"
#include "tutti_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 6, PATH = 600 };

/* What a file has that is not the input. */
struct content {
    const char *name, *bytes; /* NULL: zeros */
    size_t size;
};
#define IMAGES                                                                      \
    {                                                                               \
        "train-images-idx3-ubyte", "\0\0\x08\3\0\0\0\4\0\0\0\1\0\0\0\2abcdefgh", 24 \
    }
#define LABELS                                                      \
    {                                                               \
        "train-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\4\0\1\1\0", 12 \
    }
#define TEST_LABELS                                                \
    {                                                              \
        "t10k-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\4\0\1\1\0", 12 \
    }
#define RECORD 3073 /* of CIFAR-10 */
#define BATCHES                                                                                                       \
    { "data_batch_2.bin", NULL, RECORD }, { "data_batch_3.bin", NULL, RECORD }, { "data_batch_4.bin", NULL, RECORD }, \
        { "data_batch_5.bin", NULL, RECORD },                                                                         \
    {                                                                                                                 \
        "test_batch.bin", NULL, RECORD                                                                                \
    }

/* Folders, each with the file that is the input. */
static const struct {
    const char *input;
    struct content others[FILES];
} folders[] = {
    { "train-images-idx3-ubyte", { LABELS } },
    { "train-labels-idx1-ubyte", { IMAGES } },
    { "t10k-images-idx3-ubyte", { IMAGES, LABELS, TEST_LABELS } },
    { "classes.txt", { IMAGES, LABELS } },
    { "data_batch_1.bin", { BATCHES } },
    { "batches.meta.txt", { { "data_batch_1.bin", NULL, RECORD }, BATCHES } },
    { "train.bin", { { "test.bin", NULL, RECORD + 1 } } },
    { "fine_label_names.txt", { { "train.bin", NULL, 4 * (RECORD + 1) }, { "test.bin", NULL, RECORD + 1 } } },
};
enum { FOLDERS = sizeof folders / sizeof *folders };

static char parent[512];

static void path_of(int folder, const char *name, char path[PATH])
{
    if (snprintf(path, PATH, "%s/%d%s%s", parent, folder, *name ? "/" : "", name) >= PATH) abort();
}

static void remove_all(void)
{
    char path[PATH];
    for (int f = 0; f < FOLDERS; f++) {
        path_of(f, folders[f].input, path);
        unlink(path);
        for (int i = 0; i < FILES && folders[f].others[i].name; i++) {
            path_of(f, folders[f].others[i].name, path);
            unlink(path);
        }
        path_of(f, "", path);
        rmdir(path);
    }
}

static void make_file(int folder, const struct content *content)
{
    char path[PATH];
    path_of(folder, content->name, path);
    FILE *file = fopen(path, "w");
    if (!file) abort();
    for (size_t i = 0; i < content->size; i++)
        if (putc(content->bytes ? content->bytes[i] : 0, file) == EOF) abort();
    if (fclose(file) != 0) abort();
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    char path[PATH];
    (void)count;
    (void)words;
    input_open();
    const char *input = input_path(NULL, 0);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(input, '/') - input), input);
    if (atexit(remove_all) != 0) abort();
    for (int f = 0; f < FOLDERS; f++) {
        path_of(f, "", path);
        if (mkdir(path, 0700) != 0) abort();
        path_of(f, folders[f].input, path);
        if (link(input, path) != 0) abort();
        for (int i = 0; i < FILES && folders[f].others[i].name; i++) make_file(f, &folders[f].others[i]);
    }
    return 0;
}

static size_t bytes_of(tutti_dtype dtype, const tutti_shape *shape)
{
    size_t bytes = tutti_dtype_bytes(dtype);
    for (int i = 0; i < shape->rank; i++) bytes *= (size_t)shape->sizes[i];
    return bytes;
}

static void read_part(const tutti_data *data, const tutti_data_info *info, tutti_data_part part)
{
    const tutti_source *source = tutti_data_source(data, part);
    char name[64];
    if (!source) return;
    tutti_buffer buffers[] = { { "input", info->dtype, NULL, bytes_of(info->dtype, &info->shape) },
        { "targets", info->target_dtype, NULL, bytes_of(info->target_dtype, &info->target_shape) } };
    float *sample = malloc(buffers[0].bytes), *target = malloc(buffers[1].bytes);
    if (!sample || !target) abort();
    buffers[0].data = sample;
    buffers[1].data = target;
    for (int64_t i = 0; i < source->samples; i++) {
        const int label = tutti_data_label(data, part, i);
        if (source->read(source->user, &i, 1, buffers, 2) != 0) abort();
        if (label >= info->classes || (label < 0 && info->classes > 0)) abort();
        if (tutti_data_name(data, part, i, name, sizeof name) != TUTTI_OK) abort();
        for (size_t k = 0; k < buffers[0].bytes / sizeof(float); k++)
            if (!(sample[k] >= -1e6f && sample[k] <= 1e6f)) abort();
    }
    free(sample);
    free(target);
}

static void read_all(const tutti_data *data)
{
    tutti_data_info info = { .size = sizeof info };
    int64_t samples = 0;
    if (tutti_data_describe(data, &info) != TUTTI_OK) abort();
    for (int i = 0; i < info.classes; i++) {
        if (!info.class_names[i] || strpbrk(info.class_names[i], "\r\n")) abort();
        samples += info.class_counts[i];
    }
    const tutti_source *train = tutti_data_source(data, TUTTI_DATA_TRAIN);
    if (info.classes > 0 && samples != (train ? train->samples : 0)) abort();
    for (int part = 0; part < 3; part++) read_part(data, &info, (tutti_data_part)part);
    char *text = tutti_data_json(data);
    if (!text) check_message(); /* names that are not UTF-8 */
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[PATH];
    if (size == 0) return 0;
    const uint8_t how = data[0];
    const tutti_data_options options = { .size = sizeof options,
        .threads = 1,
        .numbers = how & 8,
        .folds = how & 16 ? 2 : 0,
        .fold = how & 16 ? 1 : 0,
        .split = how & 32 ? 0.5 : 0,
        .normalise = how & 64 ? "measured" : NULL,
        .augment = how & 128 ? "pad=1,flip,mixup=0.5" : NULL };
    (void)input_path(data + 1, size - 1);
    path_of(how & 7, "", path);
    if (!dataset_is_known(path)) abort();
    tutti_data *opened = tutti_data_open(path, &options);
    if (opened)
        read_all(opened);
    else
        check_message();
    tutti_data_free(opened);
    return 0;
}
