/* From a file's bytes to a sample. A picture is decoded at full size, or at 1/2, 1/4 or 1/8 where the sample needs no
 * more: which of them follows from the draw alone, so that a sample is the same whether the cache has it or not. */
#include "data/pictures.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS = 4, FINISHED = -1 }; /* of cached.level: 0 to 3, a picture; FINISHED: a sample and its target */
#define FILE_MAX_BYTES ((int64_t)1 << 30)

/* Memory of one thread. */
struct reader {
    struct reader *next;
    unsigned char *bytes;
    size_t room;
    struct image image, mask;
    struct augment_scratch *scratch;
};

static struct reader *take_reader(struct pictures *pictures)
{
    pthread_mutex_lock(&pictures->lock);
    struct reader *reader = pictures->readers;
    if (reader) pictures->readers = reader->next;
    pthread_mutex_unlock(&pictures->lock);
    if (reader || !(reader = memory_new(1, sizeof(*reader)))) return reader;
    reader->scratch = augment_scratch_new();
    if (reader->scratch) return reader;
    free(reader);
    return NULL;
}

static void give_reader(struct pictures *pictures, struct reader *reader)
{
    pthread_mutex_lock(&pictures->lock);
    reader->next = pictures->readers;
    pictures->readers = reader;
    pthread_mutex_unlock(&pictures->lock);
}

void pictures_free_readers(struct pictures *pictures)
{
    for (struct reader *reader = pictures->readers, *next; reader; reader = next) {
        next = reader->next;
        image_free(&reader->image);
        image_free(&reader->mask);
        augment_scratch_free(reader->scratch);
        free(reader->bytes);
        free(reader);
    }
}

/* --------------------------------------------------------------------------------------------------- bytes ---- */

static tutti_status read_at(int file, const char *path, int64_t offset, unsigned char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file, to + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(TUTTI_FILE, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0) return fail(TUTTI_FORMAT, "%s: the file ends early", path);
        done += (size_t)got;
    }
    return TUTTI_OK;
}

/* `bytes` from `offset` on, or the whole file where bytes is 0. */
static tutti_status read_bytes(struct reader *reader, const char *path, int64_t offset, int64_t bytes, size_t *count)
{
    tutti_status status = TUTTI_OK;
    struct stat found;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(TUTTI_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) FAIL(TUTTI_FILE, "%s: this is not a file", path);
    if (bytes == 0) bytes = (int64_t)found.st_size;
    if (bytes < 1) FAIL(TUTTI_FORMAT, "%s: the file is empty", path);
    if (bytes > FILE_MAX_BYTES)
        FAIL(TUTTI_FORMAT, "%s: %lld bytes are too many for a picture: at most %lld are read", path, (long long)bytes,
            (long long)FILE_MAX_BYTES);
    TRY(memory_grow((void **)&reader->bytes, &reader->room, (size_t)bytes, 1));
    TRY(read_at(file, path, offset, reader->bytes, (size_t)bytes));
    *count = (size_t)bytes;
done:
    close(file);
    return status;
}

static tutti_status fetch(
    const struct pictures *pictures, struct reader *reader, int64_t index, bool mask, const char **name, size_t *count)
{
    const struct picture *picture = &pictures->list[index];
    *name = names_at(&pictures->names, mask ? picture->mask : picture->name);
    if (mask || picture->bytes == 0) return read_bytes(reader, *name, 0, 0, count);
    const tutti_status status =
        read_bytes(reader, names_at(&pictures->names, picture->shard), picture->offset, picture->bytes, count);
    return status == TUTTI_OK ? status : status_context(status, "%s", *name);
}

tutti_status pictures_decode(struct pictures *pictures, int64_t index, bool mask, int channels, struct image *image)
{
    tutti_status status;
    const char *name;
    size_t count;
    struct reader *reader = take_reader(pictures);
    if (!reader) return TUTTI_NO_MEMORY;
    TRY(fetch(pictures, reader, index, mask, &name, &count));
    TRY(image_decode(reader->bytes, count, name, &(struct image_wish) { .channels = channels, .mask = mask }, image));
done:
    give_reader(pictures, reader);
    return status;
}

/* ------------------------------------------------------------------------------------------------- samples ---- */

/* A sample while it is made. */
struct making {
    struct pictures *pictures;
    struct reader *reader;
    int64_t index;
    const struct draw *draw;
    bool drawn; /* it differs in each epoch: then the picture is kept, else the sample */
    bool keep;
    int width, height; /* of the whole picture */
    struct box box;
    struct image image; /* decoded; memory of the cache or of the reader */
};

/* Returns the largest division by 2 that leaves what is wished for. */
static int level_of(const struct image_wish *wish, int width, int height)
{
    int level = 0;
    while (level + 1 < LEVELS && (width + (2 << level) - 1) >> (level + 1) >= wish->least_width &&
        (height + (2 << level) - 1) >> (level + 1) >= wish->least_height)
        level++;
    return level;
}

static int choose(struct making *making, struct image_wish *wish)
{
    const struct pictures *p = making->pictures;
    making->box = augment_box(&p->augment, making->draw, making->width, making->height, p->width, p->height);
    *wish = augment_wish(&making->box, making->width, making->height, p->channels, p->width, p->height);
    const int level = level_of(wish, making->width, making->height);
    wish->least_width = (making->width + (1 << level) - 1) >> level;
    wish->least_height = (making->height + (1 << level) - 1) >> level;
    return level;
}

static struct image image_of(const struct cached *cached)
{
    return (struct image) { .width = cached->width,
        .height = cached->height,
        .channels = cached->channels,
        .pixels = (unsigned char *)cached->data };
}

static void keep_image(const struct making *making, size_t slot, int level, const struct image *image)
{
    const struct cached head = { .width = image->width,
        .height = image->height,
        .channels = image->channels,
        .whole_width = making->width,
        .whole_height = making->height,
        .level = level,
        .bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels };
    if (making->drawn && making->keep) cache_keep(making->pictures->cache, slot, &head, image->pixels);
}

static tutti_status decode(struct making *making)
{
    tutti_status status;
    const char *name;
    size_t count;
    struct image_wish wish;
    struct reader *reader = making->reader;
    const size_t slot = 2 * (size_t)making->index;
    const struct cached *cached = cache_find(making->pictures->cache, slot);
    if (cached && cached->level != FINISHED) {
        making->width = cached->whole_width;
        making->height = cached->whole_height;
        making->image = image_of(cached);
        if (choose(making, &wish) == cached->level) return TUTTI_OK;
    }
    TRY(fetch(making->pictures, reader, making->index, false, &name, &count));
    TRY(image_size(reader->bytes, count, name, &making->width, &making->height));
    if (making->width > AUGMENT_MAX_SIDE || making->height > AUGMENT_MAX_SIDE)
        FAIL(TUTTI_FORMAT, "%s: %d x %d pixels: a side has at most %d", name, making->width, making->height,
            AUGMENT_MAX_SIDE);
    const int level = choose(making, &wish);
    TRY(image_decode(reader->bytes, count, name, &wish, &reader->image));
    making->image = reader->image;
    keep_image(making, slot, level, &reader->image);
done:
    return status;
}

static tutti_status read_mask(struct making *making, int32_t *classes)
{
    tutti_status status = TUTTI_OK;
    struct pictures *p = making->pictures;
    const size_t slot = 2 * (size_t)making->index + 1;
    const struct cached *cached = cache_find(p->cache, slot);
    struct image mask;
    if (cached) {
        mask = image_of(cached);
    } else {
        const char *name;
        size_t count;
        TRY(fetch(p, making->reader, making->index, true, &name, &count));
        TRY(image_decode(making->reader->bytes, count, name, &(struct image_wish) { .channels = 1, .mask = true },
            &making->reader->mask));
        mask = making->reader->mask;
        if (mask.width != making->width || mask.height != making->height)
            FAIL(TUTTI_FORMAT, "%s: the mask has %d x %d pixels, but its picture %d x %d", name, mask.width,
                mask.height, making->width, making->height);
        keep_image(making, slot, 0, &mask);
    }
    TRY(augment_mask(&p->augment, making->draw, &mask, &making->box, making->width, making->height, p->width, p->height,
        making->reader->scratch, classes));
    for (size_t i = 0; i < (size_t)p->height * (size_t)p->width; i++)
        classes[i] = classes[i] < 0 || classes[i] > 255 ? -1 : p->mask_classes[classes[i]];
done:
    return status;
}

static size_t sample_bytes(const struct pictures *pictures)
{
    return (size_t)pictures->channels * (size_t)pictures->height * (size_t)pictures->width;
}

static size_t target_bytes(const struct pictures *p)
{
    return p->masks ? (size_t)p->height * (size_t)p->width * sizeof(int32_t) : sizeof(int32_t);
}

static tutti_status make_sample(struct making *making, void *sample, void *target)
{
    tutti_status status;
    const struct pictures *p = making->pictures;
    TRY(decode(making));
    TRY(augment_image(&p->augment, making->draw, &making->image, &making->box, making->width, making->height, p->width,
        p->height, making->reader->scratch, sample));
    if (p->masks)
        TRY(read_mask(making, target));
    else
        memcpy(target, &p->collection.labels[making->index], sizeof(int32_t));
    if (making->drawn || !making->keep) goto done;
    const struct cached head = { .level = FINISHED, .bytes = sample_bytes(p) };
    cache_keep(p->cache, 2 * (size_t)making->index, &head, sample);
    if (p->masks)
        cache_keep(p->cache, 2 * (size_t)making->index + 1,
            &(struct cached) { .level = FINISHED, .bytes = target_bytes(p) }, target);
done:
    return status;
}

/* Looks for a sample that was made before; there can only be one if it is the same in each epoch. */
static bool find_finished(const struct making *making, void *sample, void *target)
{
    const struct pictures *p = making->pictures;
    const struct cached *found = cache_find(p->cache, 2 * (size_t)making->index), *mask = NULL;
    if (making->drawn || !found || found->level != FINISHED) return false;
    if (p->masks) mask = cache_find(p->cache, 2 * (size_t)making->index + 1);
    if (p->masks && (!mask || mask->level != FINISHED)) return false;
    memcpy(sample, found->data, sample_bytes(p));
    memcpy(target, p->masks ? (const void *)mask->data : &p->collection.labels[making->index], target_bytes(p));
    return true;
}

static tutti_status read_sample(
    struct pictures *pictures, int64_t index, const struct draw *draw, bool keep, void *sample, void *target)
{
    struct making making = {
        .pictures = pictures, .index = index, .draw = draw, .drawn = draw->training && pictures->random, .keep = keep
    };
    if (find_finished(&making, sample, target)) return TUTTI_OK;
    making.reader = take_reader(pictures);
    if (!making.reader) return TUTTI_NO_MEMORY;
    const tutti_status status = make_sample(&making, sample, target);
    give_reader(pictures, making.reader);
    return status;
}

tutti_status pictures_read(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    return read_sample((struct pictures *)collection, index, draw, true, sample, target);
}

/* Measures the mean and the deviation of up to 1,000 training samples, evenly spread, as evaluation sees them. */
tutti_status pictures_measure(struct collection *collection, const signed char *part)
{
    enum { MOST = 1000 };
    tutti_status status = TUTTI_OK;
    struct pictures *p = (struct pictures *)collection;
    const size_t plane = (size_t)p->height * (size_t)p->width;
    double sum[DATA_MAX_CHANNELS] = { 0 }, squares[DATA_MAX_CHANNELS] = { 0 };
    int64_t training = 0, seen = 0, used = 0;
    if (!p->measured) return TUTTI_OK;
    for (int64_t i = 0; i < collection->samples; i++) training += part[i] == TUTTI_DATA_TRAIN;
    unsigned char *sample = memory_new(sample_bytes(p), 1);
    int32_t *target = memory_new(target_bytes(p), 1);
    if (!sample || !target) status = TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples && status == TUTTI_OK; i++) {
        const int64_t before = training > MOST ? seen * MOST / training : seen;
        if (part[i] != TUTTI_DATA_TRAIN) continue;
        seen++;
        if ((training > MOST ? seen * MOST / training : seen) == before) continue;
        const struct draw draw = { .sample = i };
        if (read_sample(p, i, &draw, false, sample, target) != TUTTI_OK) continue; /* reading it will tell */
        used++;
        for (int c = 0; c < p->channels; c++) {
            int64_t of_sample = 0, its_squares = 0;
            for (size_t k = 0; k < plane; k++) {
                const int64_t value = sample[(size_t)c * plane + k];
                of_sample += value;
                its_squares += value * value;
            }
            sum[c] += (double)of_sample;
            squares[c] += (double)its_squares;
        }
    }
    for (int c = 0; c < p->channels && used > 0 && status == TUTTI_OK; c++) {
        const double count = (double)used * (double)plane, mean = sum[c] / count;
        const double variance = squares[c] / count - mean * mean;
        collection->info.mean[c] = (float)(mean / 255);
        collection->info.std[c] = variance > 1 ? (float)(sqrt(variance) / 255) : 1.0f / 255;
    }
    free(sample);
    free(target);
    return status;
}
