/* Sizes, formats and colours of pictures, from the headers of their files. */
#include "data/inspect.h"
#include "data/pictures.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/image_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 1 << 16, SHOWN_SIZES = 20 };
#define MOST_BYTES ((int64_t)1 << 30)

struct found {
    struct counts sizes, formats, colours;
    int64_t read, damaged;
    int *widths, *heights, *shorter; /* [read] */
    unsigned char *bytes;
    size_t room;
    char *example; /* why the first damaged one cannot be read */
};

/* Reads the first bytes of a picture; *whole becomes how many it has. */
static tutti_status read_head(
    struct found *found, const char *path, const struct picture *picture, size_t wanted, size_t *count, int64_t *whole)
{
    struct stat about;
    tutti_status status = TUTTI_OK;
    *count = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(TUTTI_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) FAIL(TUTTI_FILE, "%s: this is not a file", path);
    *whole = picture->bytes > 0 ? picture->bytes : (int64_t)about.st_size;
    if ((int64_t)wanted > *whole) wanted = (size_t)*whole;
    TRY(memory_grow((void **)&found->bytes, &found->room, wanted + 1, 1));
    while (*count < wanted) {
        const ssize_t got =
            pread(file, found->bytes + *count, wanted - *count, (off_t)(picture->offset + (int64_t)*count));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) FAIL(TUTTI_FILE, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0) break;
        *count += (size_t)got;
    }
done:
    close(file);
    return status;
}

/* A header may come after much else: then the whole file is read. */
static tutti_status read_size(
    struct found *found, const struct pictures *pictures, int64_t index, struct image_facts *facts, int size[2])
{
    const struct picture *picture = &pictures->list[index];
    const char *name = names_at(&pictures->names, picture->name);
    const char *path = picture->bytes > 0 ? names_at(&pictures->names, picture->shard) : name;
    size_t count;
    int64_t whole;
    tutti_status status = read_head(found, path, picture, HEAD, &count, &whole);
    if (status != TUTTI_OK) return status;
    status = image_size(found->bytes, count, name, &size[0], &size[1]);
    if (status == TUTTI_FORMAT && whole > HEAD && whole <= MOST_BYTES) {
        status = read_head(found, path, picture, (size_t)whole, &count, &whole);
        if (status == TUTTI_OK) status = image_size(found->bytes, count, name, &size[0], &size[1]);
    }
    *facts = image_facts(found->bytes, count);
    return status;
}

static tutti_status read_picture(struct found *found, const struct pictures *pictures, int64_t index)
{
    struct image_facts facts;
    int size[2];
    char text[COUNTED_TEXT];
    const tutti_status status = read_size(found, pictures, index, &facts, size);
    if (status == TUTTI_NO_MEMORY) return status;
    if (status != TUTTI_OK) {
        if (found->damaged++ == 0) found->example = memory_copy_text(status_message());
        return TUTTI_OK;
    }
    snprintf(text, sizeof text, "%dx%d", size[0], size[1]);
    counts_add(&found->sizes, text);
    counts_add(&found->formats, facts.format);
    if (facts.colours) counts_add(&found->colours, facts.colours);
    found->widths[found->read] = size[0];
    found->heights[found->read] = size[1];
    found->shorter[found->read++] = size[0] < size[1] ? size[0] : size[1];
    return TUTTI_OK;
}

static int compare(const void *a, const void *b)
{
    const int first = *(const int *)a, second = *(const int *)b;
    return first < second ? -1 : first > second;
}

/* The least, the median and the largest. */
static json_t *spread(int *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return json_pack("{s:i, s:i, s:i}", "least", values[0], "median", values[count / 2], "largest", values[count - 1]);
}

static int describe(struct found *found, int64_t samples, json_t *object)
{
    json_t *files = json_pack("{s:I, s:I, s:I}", "read", (json_int_t)(found->read + found->damaged), "all",
        (json_int_t)samples, "damaged", (json_int_t)found->damaged);
    int failed = 0;
    if (found->example) failed |= json_object_set_new(files, "example", inspect_text(found->example));
    failed |= json_object_set_new(object, "opened", files);
    if (found->read == 0) return failed;
    failed |= json_object_set_new(object, "formats", counts_json(&found->formats, COUNTED_MOST));
    failed |= json_object_set_new(object, "colours", counts_json(&found->colours, COUNTED_MOST));
    failed |= json_object_set_new(object, "sizes", counts_json(&found->sizes, SHOWN_SIZES));
    failed |= json_object_set_new(object, "different_sizes", json_integer(found->sizes.count));
    failed |= json_object_set_new(object, "width", spread(found->widths, found->read));
    failed |= json_object_set_new(object, "height", spread(found->heights, found->read));
    return failed | json_object_set_new(object, "shorter_side", spread(found->shorter, found->read));
}

int pictures_inspect(const struct collection *collection, int64_t most, json_t *object)
{
    const struct pictures *pictures = (const struct pictures *)collection;
    const int64_t step = inspect_step(collection->samples, most);
    const size_t room = (size_t)(collection->samples / step) + 1;
    int failed = -1;
    struct found *found = memory_new(1, sizeof *found);
    if (!found) return failed;
    found->widths = memory_new(room, sizeof *found->widths);
    found->heights = memory_new(room, sizeof *found->heights);
    found->shorter = memory_new(room, sizeof *found->shorter);
    if (found->widths && found->heights && found->shorter) {
        tutti_status status = TUTTI_OK;
        for (int64_t i = 0; i < collection->samples && status == TUTTI_OK; i += step)
            status = read_picture(found, pictures, i);
        if (status == TUTTI_OK) failed = describe(found, collection->samples, object);
    }
    free(found->widths);
    free(found->heights);
    free(found->shorter);
    free(found->bytes);
    free(found->example);
    free(found);
    return failed;
}
