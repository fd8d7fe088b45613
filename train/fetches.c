/* Outputs on their way to the caller. */
#include "train/fetches.h"

#include "base/bf16.h"
#include "base/dtype.h"
#include "base/half.h"
#include "base/memory.h"
#include "parallel/feeds.h"
#include "parallel/views.h"

#include <stdlib.h>

static int find(const struct objective *objective, tutti_tensor tensor)
{
    for (int i = 0; i < objective->output_count; i++)
        if (objective->outputs[i] == tensor.id) return i;
    return -1;
}

static bool is_rounded(tutti_dtype dtype)
{
    return dtype == TUTTI_DTYPE_F16 || dtype == TUTTI_DTYPE_BF16;
}

/* Makes memory of the trainer's for an output. Pages that nothing is copied to take no memory. */
static tutti_status keep(
    struct kept_outputs *kept, int number, size_t samples, const struct array_list *outputs, int64_t length)
{
    size_t bytes = 0;
    if (!size_multiply(samples, arrays_sample_bytes(outputs, number, length), &bytes)) return TUTTI_NO_MEMORY;
    if (kept->bytes[number] < bytes) {
        free(kept->arrays.at[number]);
        kept->bytes[number] = 0;
        kept->arrays.at[number] = memory_new(bytes, 1);
        if (!kept->arrays.at[number]) return TUTTI_NO_MEMORY;
        kept->bytes[number] = bytes;
    }
    kept->wanted[number] = true;
    return TUTTI_OK;
}

tutti_status fetches_begin(struct fetched *fetched, const struct objective *objective, const struct array_list *outputs,
    const tutti_fetch *fetches, int count, struct bound_sizes sizes, struct kept_outputs *kept)
{
    tutti_status status = TUTTI_OK;
    *fetched = (struct fetched) { .arrays.length = sizes.length };
    if (!fetches || count < 1) FAIL(TUTTI_INVALID, "no output is fetched: pass at least one tutti_fetch");
    for (int i = 0; i < count; i++) {
        const tutti_fetch *fetch = &fetches[i];
        const int number = find(objective, fetch->tensor);
        if (number < 0)
            FAIL(TUTTI_INVALID,
                "fetch %d is of tensor %d, which is not an output of this trainer: name it in tutti_training.outputs",
                i, fetch->tensor.id);
        if (!fetch->data && !kept) FAIL(TUTTI_INVALID, "the data of fetch %d are NULL", i);
        if (fetched->arrays.at[number]) FAIL(TUTTI_INVALID, "tensor %d is fetched twice", fetch->tensor.id);
        if (fetch->dtype != TUTTI_DTYPE_F32 && !is_rounded(fetch->dtype))
            FAIL(TUTTI_INVALID, "fetch %d has type %s: outputs are f32, or rounded to f16 or bf16", i,
                dtype_name(fetch->dtype));
        if (!fetch->data) TRY(keep(kept, number, (size_t)sizes.samples, outputs, sizes.length));
        fetched->arrays.at[number] = fetch->data ? fetch->data : kept->arrays.at[number];
        if (!is_rounded(fetch->dtype)) continue;
        fetched->rounded[number] =
            memory_new((size_t)sizes.samples, arrays_sample_bytes(outputs, number, sizes.length));
        if (!fetched->rounded[number]) return TUTTI_NO_MEMORY;
        fetched->arrays.at[number] = fetched->rounded[number];
    }
done:
    return status;
}

static void round_to(const tutti_fetch *fetch, const float *from, size_t count)
{
    uint16_t *to = fetch->data;
    for (size_t i = 0; i < count; i++)
        to[i] = fetch->dtype == TUTTI_DTYPE_BF16 ? bf16_from_float(from[i]) : half_from_float(from[i]);
}

tutti_status fetches_end(struct fetched *fetched, tutti_status status, const struct objective *objective,
    const struct array_list *outputs, const tutti_fetch *fetches, int count, int64_t samples)
{
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        const int number = find(objective, fetches[i].tensor);
        if (fetched->rounded[number])
            round_to(&fetches[i], fetched->rounded[number],
                (size_t)samples * arrays_sample_bytes(outputs, number, fetched->arrays.length) / sizeof(float));
    }
    for (int i = 0; i < PLAN_MAX_OUTPUTS; i++) free(fetched->rounded[i]);
    return status;
}
