#include "formats/dataset_load.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "formats/cifar.h"
#include "formats/digits.h"
#include "formats/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX_BYTES = 1 << 20 };

struct path {
    char text[4096];
};

/* The path of a file in a folder; false where there is no such file. */
static bool find_file(const char *folder, const char *name, struct path *path)
{
    struct stat found;
    int length = snprintf(path->text, sizeof(path->text), "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof(path->text) && stat(path->text, &found) == 0 &&
        !S_ISDIR(found.st_mode);
}

/* "train", "images", 3 -> train-images-idx3-ubyte, plain or gzip, or with the dot that some archives have. */
static bool find_idx(const char *folder, const char *part, const char *kind, int rank, struct path *path)
{
    static const char *const joints[] = { "-", "." }, *const ends[] = { "", ".gz" };
    char name[64];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s-%s%sidx%d-ubyte%s", part, kind, joints[i / 2], rank, ends[i % 2]);
        if (find_file(folder, name, path)) return true;
    }
    return false;
}

/* The classes are those that the labels show: 0 to the largest. */
static tutti_status join_idx(const char *images_path, const char *labels_path, const struct idx *images,
    const struct idx *labels, struct dataset *dataset)
{
    int largest = 1;
    if (images->sizes[0] != labels->sizes[0])
        return fail(TUTTI_FORMAT,
            "%s has %" PRId64 " images and %s has %" PRId64 " labels: use two files of the same data set", images_path,
            images->sizes[0], labels_path, labels->sizes[0]);
    if (images->sizes[1] > INT16_MAX || images->sizes[2] > INT16_MAX)
        return fail(TUTTI_FORMAT,
            "%s: images of %" PRId64 " x %" PRId64 " pixels are too large: at most 32767 x 32767 can be read",
            images_path, images->sizes[1], images->sizes[2]);
    tutti_status status =
        dataset_new(dataset, "IDX", images->sizes[0], 1, (int)images->sizes[1], (int)images->sizes[2], largest + 1);
    if (status != TUTTI_OK) return status;
    memcpy(dataset->pixels, images->data, images->bytes);
    for (int64_t i = 0; i < dataset->samples; i++) {
        dataset->labels[i] = labels->data[i];
        if (labels->data[i] > largest) largest = labels->data[i];
    }
    dataset->classes = largest + 1;
    return TUTTI_OK;
}

/* Reads the pair of a part ("train" or "t10k"); *found is false where the folder has neither of its files. */
static tutti_status load_idx_part(const char *folder, const char *part, struct dataset *dataset, bool *found)
{
    tutti_status status = TUTTI_OK;
    struct path images_path, labels_path;
    struct idx images = { 0 }, labels = { 0 };
    bool with_images = find_idx(folder, part, "images", 3, &images_path);
    bool with_labels = find_idx(folder, part, "labels", 1, &labels_path);
    *found = with_images || with_labels;
    if (!*found) return TUTTI_OK;
    if (!with_images)
        FAIL(TUTTI_FILE, "%s: the file with its images, %s-images-idx3-ubyte, is missing", labels_path.text, part);
    if (!with_labels)
        FAIL(TUTTI_FILE, "%s: the file with its labels, %s-labels-idx1-ubyte, is missing", images_path.text, part);
    TRY(idx_read(images_path.text, 3, &images));
    TRY(idx_read(labels_path.text, 1, &labels));
    TRY(join_idx(images_path.text, labels_path.text, &images, &labels, dataset));
done:
    idx_free(&images);
    idx_free(&labels);
    return status;
}

static tutti_status load_idx(const char *folder, struct dataset *train, struct dataset *test, bool *found)
{
    tutti_status status = TUTTI_OK;
    bool with_train = false, with_test = false;
    TRY(load_idx_part(folder, "train", train, &with_train));
    TRY(load_idx_part(folder, "t10k", with_train ? test : train, &with_test));
    *found = with_train || with_test;
    if (with_train && with_test) {
        if (train->height != test->height || train->width != test->width)
            FAIL(TUTTI_FORMAT,
                "%s: training images have %d x %d pixels and test images %d x %d: use two parts of the same data set",
                folder, train->height, train->width, test->height, test->width);
        int classes = train->classes > test->classes ? train->classes : test->classes;
        train->classes = test->classes = classes;
    }
done:
    return status;
}

static tutti_status load_cifar10(const char *folder, struct dataset *train, struct dataset *test, bool *found)
{
    enum { PARTS = 6 };
    static const char *const names[PARTS] = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin" };
    tutti_status status = TUTTI_OK;
    struct path *paths = memory_new(PARTS, sizeof(*paths));
    const char *list[PARTS];
    int present = 0, missing = 0;
    if (!paths) return TUTTI_NO_MEMORY;
    for (int i = 0; i < PARTS; i++) {
        list[i] = paths[i].text;
        if (find_file(folder, names[i], &paths[i]))
            present++;
        else
            missing = i;
    }
    *found = present > 0;
    if (!*found) goto done;
    if (present < PARTS) FAIL(TUTTI_FILE, "%s is missing: CIFAR-10 consists of six files", list[missing]);
    TRY(cifar10_read(list, PARTS - 1, train));
    TRY(cifar10_read(list + PARTS - 1, 1, test));
done:
    free(paths);
    return status;
}

static tutti_status load_cifar100(const char *folder, struct dataset *train, struct dataset *test, bool *found)
{
    tutti_status status = TUTTI_OK;
    struct path train_path, test_path;
    bool with_train = find_file(folder, "train.bin", &train_path),
         with_test = find_file(folder, "test.bin", &test_path);
    *found = with_train || with_test;
    if (!*found) return TUTTI_OK;
    if (!with_train || !with_test)
        FAIL(TUTTI_FILE, "%s is missing: CIFAR-100 consists of two files",
            with_train ? test_path.text : train_path.text);
    TRY(cifar100_read(train_path.text, train));
    TRY(cifar100_read(test_path.text, test));
done:
    return status;
}

/* The folder itself, and those that the published archives and their usual downloaders make in it. */
static const char *const folders[] = { "", "/MNIST/raw", "/FashionMNIST/raw", "/cifar-10-batches-bin",
    "/cifar-100-binary" };
enum { FOLDERS = sizeof(folders) / sizeof(folders[0]) };

bool dataset_is_known(const char *where)
{
    static const char *const files[] = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin", "test_batch.bin", "train.bin", "test.bin" };
    static const char *const parts[] = { "train", "t10k" };
    struct path folder, found;
    bool known = !strcmp(where, "digits");
    for (int i = 0; i < FOLDERS && !known; i++) {
        snprintf(folder.text, sizeof(folder.text), "%s%s", where, folders[i]);
        for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
            known = known || find_file(folder.text, files[k], &found);
        for (int k = 0; k < 2; k++)
            known = known || find_idx(folder.text, parts[k], "images", 3, &found) ||
                find_idx(folder.text, parts[k], "labels", 1, &found);
    }
    return known;
}

static tutti_status load_names(const char *folder, const char *name, struct dataset *dataset)
{
    struct path path;
    unsigned char *bytes;
    size_t size;
    if (!find_file(folder, name, &path)) return TUTTI_OK;
    const tutti_status status = file_read(path.text, NAMES_MAX_BYTES, &bytes, &size);
    if (status != TUTTI_OK) return status;
    dataset->class_names = memory_format("%.*s", (int)size, (const char *)bytes);
    free(bytes);
    return dataset->class_names ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status load_folder(const char *where, struct dataset *train, struct dataset *test)
{
    static const struct {
        tutti_status (*load)(const char *folder, struct dataset *train, struct dataset *test, bool *found);
        const char *names;
    } kinds[] = { { load_idx, "classes.txt" }, { load_cifar10, "batches.meta.txt" },
        { load_cifar100, "fine_label_names.txt" } };
    struct path folder;
    bool found = false;
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(folder.text, sizeof(folder.text), "%s%s", where, folders[i]);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            const tutti_status status = kinds[k].load(folder.text, train, test, &found);
            if (status != TUTTI_OK) return status;
            if (found) return load_names(folder.text, kinds[k].names, train);
        }
    }
    return fail(TUTTI_FILE,
        "%s: this folder has no data: it needs IDX files (train-images-idx3-ubyte ...), CIFAR-10 (data_batch_1.bin "
        "...) or CIFAR-100 (train.bin, test.bin)",
        where);
}

tutti_status dataset_load(const char *where, uint64_t seed, struct dataset *train, struct dataset *test)
{
    tutti_status status = TUTTI_OK;
    struct stat found;
    memset(train, 0, sizeof(*train));
    memset(test, 0, sizeof(*test));
    if (strcmp(where, "digits") == 0) {
        TRY(digits_make(seed, 0, DIGITS_TRAINING, train));
        TRY(digits_make(seed, DIGITS_TRAINING, DIGITS_TEST, test));
    } else if (stat(where, &found) != 0) {
        FAIL(TUTTI_FILE, "%s: this folder does not exist (\"digits\" selects the built-in data)", where);
    } else if (!S_ISDIR(found.st_mode)) {
        FAIL(TUTTI_FILE, "%s: this is not a folder: name the folder with the data files", where);
    } else {
        TRY(load_folder(where, train, test));
    }
done:
    if (status != TUTTI_OK) {
        dataset_free(train);
        dataset_free(test);
    }
    return status;
}
