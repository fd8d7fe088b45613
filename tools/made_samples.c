#include "tools/made_samples.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

tutti_loss measured_loss(const struct session *session)
{
    tutti_shape output = { 0 };
    (void)tutti_shape_of(session->network, session->output, &output);
    const bool classes = (output.rank == 1 && output.sizes[0] > 1) || output.rank > 2;
    return session->model->build || classes ? session->model->loss : TUTTI_MSE;
}

/* Makes room for [batch][shape]. *elements: the number of all elements. */
static tutti_status make_array(const struct session *session, struct made_samples *made, const tutti_shape *shape,
    size_t size, void **array, size_t *elements)
{
    const int64_t batch = session->training.batch, length = session->training.sequence;
    bool fits = true;
    *elements = (size_t)batch;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t have = shape->sizes[i] == TUTTI_SEQUENCE ? length : shape->sizes[i];
        fits = fits && size_multiply(*elements, (size_t)have, elements);
    }
    if (!fits)
        return fail(TUTTI_INVALID,
            "a batch of %lld such samples does not fit the memory of this machine: lower --batch", (long long)batch);
    *array = memory_new(*elements + 1, size);
    if (!*array) return TUTTI_NO_MEMORY;
    made->arrays[made->array_count++] = *array;
    return TUTTI_OK;
}

static tutti_status add_input(
    const struct session *session, tutti_tensor input, uint64_t stream, struct made_samples *made)
{
    const uint64_t tokens = (uint64_t)session->facts.vocabulary; /* of other networks: 0 */
    tutti_status status = TUTTI_OK;
    tutti_tensor_info info = { .size = sizeof info };
    void *array = NULL;
    size_t count;
    TRY(tutti_network_tensor(session->network, input, &info));
    const size_t size = tutti_dtype_bytes(info.dtype);
    TRY(make_array(session, made, &info.shape, size, &array, &count));
    if (info.dtype == TUTTI_DTYPE_F32) random_normals(1, RANDOM_BENCH, stream, count, array);
    if (session->facts.transcript > 0) /* no step is padding */
        for (size_t i = (size_t)info.shape.sizes[1] - 1; i < count; i += (size_t)info.shape.sizes[1])
            ((float *)array)[i] = 1;
    if (info.dtype == TUTTI_DTYPE_I32)
        for (size_t i = 0; i < count; i++)
            ((int32_t *)array)[i] = tokens ? (int32_t)random_below(1, RANDOM_BENCH, stream + i, tokens) : 1;
    else if (info.dtype != TUTTI_DTYPE_F32)
        memset(array, 1, count * size);
    made->feeds[made->input_count++] = (tutti_feed) { info.name, info.dtype, array };
done:
    return status;
}

/* Adds targets: one class for each position, or as many numbers as the output has. */
static tutti_status add_targets(const struct session *session, const tutti_shape *output, struct made_samples *made)
{
    const bool numbers = measured_loss(session) == TUTTI_MSE;
    const int first = session->facts.transcript > 0; /* not the blank */
    const tutti_shape labels = { .rank = 1, .sizes = { session->labels } };
    void *array = NULL;
    size_t count;
    const tutti_status status = make_array(session, made, numbers ? output : &labels, sizeof(float), &array, &count);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < count; i++) {
        if (numbers)
            ((float *)array)[i] = random_normal(1, RANDOM_BENCH + 1, i);
        else
            ((int32_t *)array)[i] =
                first + (int32_t)random_below(1, RANDOM_BENCH + 1, i, (uint64_t)(session->classes - first));
    }
    made->feeds[made->input_count] = (tutti_feed) { "targets", numbers ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32, array };
    return TUTTI_OK;
}

tutti_status made_samples_new(const struct session *session, struct made_samples *made)
{
    tutti_status status = TUTTI_OK;
    tutti_shape output = { 0 };
    tutti_tensor input;
    void *results = NULL;
    size_t count;
    *made = (struct made_samples) { 0 };
    for (int i = 0; i < TUTTI_ONNX_PORTS && tutti_network_input(session->network, i, &input) == TUTTI_OK; i++)
        TRY(add_input(session, input, (uint64_t)i << 40, made));
    TRY(tutti_shape_of(session->network, session->output, &output));
    TRY(add_targets(session, &output, made));
    TRY(make_array(session, made, &output, sizeof(float), &results, &count));
    made->fetch = (tutti_fetch) { session->output, TUTTI_DTYPE_F32, results };
done:
    if (status != TUTTI_OK) made_samples_free(made);
    return status;
}

void made_samples_free(struct made_samples *made)
{
    for (int i = 0; i < made->array_count; i++) free(made->arrays[i]);
    *made = (struct made_samples) { 0 };
}
