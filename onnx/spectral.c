/* Fourier transforms, and the windows and matrices that go with them, which are known when a file is read. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { MOST = 1 << 20 };

static tutti_status transform(
    const struct onnx_node *node, const struct operand *x, tutti_tensor of, int axis, int64_t length)
{
    const bool inverse = node_integer(node, "inverse", 0) != 0, stft = !node->operation;
    const bool onesided = node_integer(node, "onesided", stft) != 0;
    char asked[40] = "";
    if (length) (void)snprintf(asked, sizeof asked, " length=%" PRId64, length);
    return node_set_output(node,
        node_op(node, "dft", &of, 1, "axis=%d inverse=%d onesided=%d%s", axis, inverse, onesided, asked), x->batch);
}

/* Opset 17 has the axis as an attribute, 20 as an input. */
tutti_status build_dft(struct onnx_node *node)
{
    struct operand x;
    int64_t axis[1] = { node->import->opset < 20 ? node_integer(node, "axis", 1) : -2 }, length[1] = { 0 };
    int tensor_axis = 0, axes = 0, lengths = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, length, 1, &lengths);
    if (status == TUTTI_OK && node->import->opset >= 20 && node_input(node, 2))
        status = node_list(node, 2, axis, 1, &axes);
    if (status == TUTTI_OK) status = operand_axis(&x, axis[0], &tensor_axis);
    if (status != TUTTI_OK) return status;
    if (operand_has_batch_axis(&x) && x.batch.axis == operand_rank(&x) - 1)
        return node_refuse("the last axis, of real and imaginary parts, is the batch");
    if (lengths && length[0] < 1) return fail(TUTTI_FORMAT, "its length is %" PRId64, length[0]);
    return transform(node, &x, x.tensor, tensor_axis, lengths ? length[0] : 0);
}

/* ------------------------------------------------------------------------------------------------------- STFT ---- */

struct frames {
    int64_t step, length, count;
};

/* Positions of each frame's elements, [frames][length]; the id is negative after a failure. */
static tutti_tensor frame_indices(const struct onnx_node *node, const struct frames *frames)
{
    tutti_tensor indices = { -1 };
    const int64_t sizes[] = { frames->count, frames->length };
    int32_t *numbers = (int32_t *)malloc((size_t)(frames->count * frames->length) * sizeof *numbers);
    if (!numbers) return indices;
    for (int64_t i = 0; i < frames->count * frames->length; i++)
        numbers[i] = (int32_t)(i / frames->length * frames->step + i % frames->length);
    indices = tutti_constant_typed(node->import->network, NULL, TUTTI_DTYPE_I32, sizes, 2, numbers);
    free(numbers);
    return indices;
}

/* Reads how a signal of `size` elements is cut into frames. Frames have the window's length if none is given. */
static tutti_status read_frames(
    const struct onnx_node *node, const struct operand *window, int64_t size, struct frames *to)
{
    int64_t numbers[1] = { 0 }, length[1] = { window ? window->shape.sizes[0] : 0 };
    int steps = 0, lengths = 0;
    tutti_status status = node_list(node, 1, numbers, 1, &steps);
    if (status == TUTTI_OK && node_input(node, 3)) status = node_list(node, 3, length, 1, &lengths);
    if (status != TUTTI_OK) return status;
    *to = (struct frames) { numbers[0], length[0], 0 };
    if (to->step < 1 || to->length < 1 || to->length > size || (window && window->shape.sizes[0] != to->length))
        return fail(TUTTI_FORMAT, "frames of %" PRId64 " elements, %" PRId64 " apart, do not fit its signal or window",
            to->length, to->step);
    to->count = 1 + (size - to->length) / to->step;
    if (to->count > MOST / to->length) return node_refuse("its frames have more than %d elements", MOST);
    return TUTTI_OK;
}

tutti_status build_stft(struct onnx_node *node)
{
    struct operand x, window;
    struct frames frames;
    int axis = 0;
    const bool has_window = node_input(node, 2) != NULL;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, 1, &axis);
    if (status == TUTTI_OK && has_window) status = node_fixed(node, 2, &window);
    if (status != TUTTI_OK) return status;
    if (x.batch.axis > 0 || (has_window && window.shape.rank != 1))
        return node_refuse("the batch is not the first axis, or the window has other axes than one");
    if (axis == x.shape.rank - 1) { /* real numbers without an axis of their own */
        x.shape.sizes[x.shape.rank++] = 1;
        x.tensor = node_reshape(node, x.tensor, &x.shape);
    }
    if (x.shape.sizes[axis] < 1 || x.shape.sizes[axis] > INT32_MAX)
        return node_refuse("its signal has no known length");
    status = read_frames(node, has_window ? &window : NULL, x.shape.sizes[axis], &frames);
    if (status != TUTTI_OK) return status;
    const tutti_tensor both[] = { x.tensor, frame_indices(node, &frames) };
    if (both[1].id < 0) return TUTTI_NO_MEMORY;
    tutti_tensor framed = node_op(node, "gather", both, 2, "axis=%d", axis);
    if (has_window) {
        const tutti_shape column = TUTTI_SHAPE(frames.length, 1);
        framed = tutti_mul(node->import->network, framed, node_reshape(node, window.tensor, &column));
    }
    return transform(node, &x, framed, axis + 1, 0);
}

/* -------------------------------------------------------------------------------------------------- constants ---- */

/* Reads the number of a known input; 0: the input is absent. */
static tutti_status read_integer(const struct onnx_node *node, size_t position, int64_t most, int64_t *number)
{
    int count = 0;
    const tutti_status status = node_list(node, position, number, 1, &count);
    if (status != TUTTI_OK) return status;
    if (count != 1 || *number < 0 || *number > most)
        return node_refuse("input %zu is not a number from 0 to %" PRId64, position, most);
    return TUTTI_OK;
}

/* first - second cos(2 pi n / N) + third cos(4 pi n / N) */
tutti_status build_window(struct onnx_node *node)
{
    static const struct window {
        const char *type;
        double first, second, third;
    } windows[] = { { "HannWindow", 0.5, 0.5, 0 }, { "HammingWindow", 25.0 / 46, 21.0 / 46, 0 },
        { "BlackmanWindow", 0.42, 0.5, 0.08 } };
    const struct window *w = windows;
    int64_t size = 0;
    const int type = (int)node_integer(node, "output_datatype", ONNX_FLOAT);
    const tutti_status status = read_integer(node, 0, MOST, &size);
    if (status != TUTTI_OK) return status;
    if (!onnx_type_is_float(type)) return node_refuse("its type is %d: only float types are read", type);
    while (strcmp(w->type, node->proto->op_type)) w++;
    const int64_t period = node_integer(node, "periodic", 1) || size == 1 ? size : size - 1;
    struct array *y = array_new(1, &size, true);
    for (int64_t n = 0; y && n < size; n++) {
        const double angle = 2 * PI * (double)n / (double)period;
        y->floats[n] = (float)(w->first - w->second * cos(angle) + w->third * cos(2 * angle));
    }
    node_set_type(node, 0, type);
    return node_set_array(node, y);
}

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* One filter: a triangle over the spectrum's elements. */
static void fill_filter(struct array *y, int64_t filter, int64_t low, int64_t centre, int64_t high)
{
    const int64_t bins = y->sizes[0], filters = y->sizes[1];
    for (int64_t j = low; j <= centre && j < bins; j++)
        y->floats[j * filters + filter] = centre == low ? 1 : (float)((double)(j - low) / (double)(centre - low));
    for (int64_t j = centre; j < high && j < bins; j++)
        y->floats[j * filters + filter] = (float)((double)(high - j) / (double)(high - centre));
}

tutti_status build_mel_weight_matrix(struct onnx_node *node)
{
    int64_t filters = 0, length = 0, rate = 0;
    float low = 0, high = 0;
    size_t count = 0;
    tutti_status status = read_integer(node, 0, MOST, &filters);
    if (status == TUTTI_OK) status = read_integer(node, 1, MOST, &length);
    if (status == TUTTI_OK) status = read_integer(node, 2, INT32_MAX, &rate);
    if (status == TUTTI_OK) status = node_scalar(node, 3, 0, &low);
    if (status == TUTTI_OK) status = node_scalar(node, 4, 0, &high);
    if (status != TUTTI_OK) return status;
    const int64_t sizes[] = { length / 2 + 1, filters };
    if (rate == 0 || !(low >= 0) || !(high >= low) || !(high <= 1e9f))
        return fail(TUTTI_FORMAT, "its frequencies must be at least 0 and ascend, and its rate must be positive");
    if (!array_count(2, sizes, &count) || count > MOST) return node_refuse("it has more than %d elements", MOST);
    struct array *y = array_new(2, sizes, true);
    if (!y) return TUTTI_NO_MEMORY;
    const double from = mel_of((double)low), each = (mel_of((double)high) - from) / (double)(filters + 2);
    int64_t edges[3] = { 0 };
    for (int64_t i = 0; i < filters + 2; i++) {
        const double hertz = 700 * (pow(10, ((double)i * each + from) / 2595) - 1);
        edges[0] = edges[1];
        edges[1] = edges[2];
        edges[2] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        if (i >= 2) fill_filter(y, i - 2, edges[0], edges[1], edges[2]);
    }
    node_set_type(node, 0, ONNX_FLOAT);
    return node_set_array(node, y);
}
