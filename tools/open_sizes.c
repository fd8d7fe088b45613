#include "tools/open_sizes.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/npz.h"
#include "tools/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256 };
struct open_sizes {
    char *names[MOST];
    tutti_onnx_size list[MOST];
    int count;
};

/* Takes the name. */
static tutti_status add(struct open_sizes *sizes, char *name, int64_t size)
{
    if (!name) return TUTTI_NO_MEMORY;
    if (sizes->count == MOST) {
        free(name);
        return fail(TUTTI_UNSUPPORTED, "there are more than %d sizes", MOST);
    }
    sizes->names[sizes->count] = name;
    sizes->list[sizes->count++] = (tutti_onnx_size) { name, size };
    return TUTTI_OK;
}

static int read_text(const char *command, const char *text, struct open_sizes *sizes)
{
    for (const char *rest = text; *rest;) {
        const size_t length = strcspn(rest, ",");
        const char *equals = memchr(rest, '=', length);
        char *end = NULL;
        const long long size = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || equals == rest || end != rest + length || size < 1 || size > INT32_MAX)
            return wrong_use(command, "--sizes needs NAME=N,NAME=N, such as sequence=128, not \"%s\"", text);
        const tutti_status status = add(sizes, memory_format("%.*s", (int)(equals - rest), rest), size);
        if (status != TUTTI_OK) return work_failed(command, status, status_message());
        rest += length + (rest[length] == ',');
    }
    return EXIT_DONE;
}

/* "x.1", for each axis of each array behind the samples. */
static tutti_status read_arrays(const char *path, struct open_sizes *sizes)
{
    struct npz *file = NULL;
    tutti_status status = npz_open(path, &file);
    for (int i = 0; status == TUTTI_OK && i < npz_count(file) && i < TUTTI_ONNX_PORTS; i++) {
        const struct npz_array *array = npz_at(file, i);
        for (int k = 1; k < array->rank && status == TUTTI_OK && *array->name; k++)
            status = add(sizes, memory_format("%s.%d", array->name, k), array->sizes[k]);
    }
    npz_close(file);
    return status;
}

int open_sizes_read(const char *command, const char *text, const char *arrays, struct open_sizes **sizes)
{
    *sizes = memory_new(1, sizeof **sizes);
    if (!*sizes) return work_failed(command, TUTTI_NO_MEMORY, status_message());
    int result = text ? read_text(command, text, *sizes) : EXIT_DONE;
    const tutti_status status = result == EXIT_DONE && arrays ? read_arrays(arrays, *sizes) : TUTTI_OK;
    if (status != TUTTI_OK) result = work_failed(command, status, status_message());
    if (result == EXIT_DONE) return EXIT_DONE;
    open_sizes_free(*sizes);
    *sizes = NULL;
    return result;
}

const tutti_onnx_size *open_sizes_list(const struct open_sizes *sizes, int *count)
{
    *count = sizes->count;
    return sizes->list;
}

void open_sizes_free(struct open_sizes *sizes)
{
    for (int i = 0; sizes && i < sizes->count; i++) free(sizes->names[i]);
    free(sizes);
}
