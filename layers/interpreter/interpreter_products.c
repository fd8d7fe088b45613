/* Convolutions and products of matrices, on several threads. */
#include "layers/interpreter/interpreter.h"

#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "layers/conv2d/conv2d.h"
#include "layers/layers.h"

/* Runs `part` for 0 to count - 1, on several threads where there are some. */
static void run_parts(
    const struct node_arrays *arrays, int count, void (*part)(void *argument, int number), void *argument)
{
    if (arrays->threads) {
        thread_pool_run(arrays->threads, count, part, argument);
        return;
    }
    for (int i = 0; i < count; i++) part(argument, i);
}

/* --------------------------------------------------------------------------------------- parts of convolutions ---- */

/* The one of y, x and w that is computed from the other two. */
enum product { PRODUCT_Y, PRODUCT_X, PRODUCT_W };

static double dot(const double *a, const double *b, int64_t count)
{
    double sums[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int u = 0; u < 4; u++) sums[u] += a[i + u] * b[i + u];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

static void add_scaled(double *restrict to, double factor, const double *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

/* Applies a kernel's tap at (r, s) of channel c to the row oh of output channel k. */
static void convolve_row(
    const struct conv2d_sizes *z, enum product wanted, double *image, double *weight, double *row, int64_t s)
{
    const int64_t left = s * z->dilation_w - z->padding_w; /* the column that the first output reads */
    int64_t begin = 0, end = z->ow;
    while (begin < end && left + begin * z->stride_w < 0) begin++;
    while (begin < end && left + (end - 1) * z->stride_w >= z->w) end--;
    if (begin == end) return;
    image += left + begin * z->stride_w;
    const double w = *weight;
    double sum = 0;
    if (z->stride_w == 1 && wanted == PRODUCT_Y)
        add_scaled(row + begin, w, image, end - begin);
    else if (z->stride_w == 1 && wanted == PRODUCT_X)
        add_scaled(image, w, row + begin, end - begin);
    else if (z->stride_w == 1)
        sum = dot(image, row + begin, end - begin);
    else if (wanted == PRODUCT_Y)
        for (int64_t i = begin; i < end; i++, image += z->stride_w) row[i] += *image * w;
    else if (wanted == PRODUCT_X)
        for (int64_t i = begin; i < end; i++, image += z->stride_w) *image += row[i] * w;
    else
        for (int64_t i = begin; i < end; i++, image += z->stride_w) sum += *image * row[i];
    if (wanted == PRODUCT_W) *weight += sum;
}

struct convolution {
    const struct conv2d_sizes *z;
    enum product wanted;
    double *x, *w, *y;
};

/* Computes the results for output channel `channel`, or, if x is wanted, for input channel `channel`. */
static void convolve_channel(void *argument, int channel)
{
    const struct convolution *all = argument;
    const struct conv2d_sizes *z = all->z;
    const bool of_x = all->wanted == PRODUCT_X;
    const int64_t group = of_x ? channel / z->c_group : channel / z->k_group;
    const int64_t first_k = of_x ? group * z->k_group : channel, ks = of_x ? z->k_group : 1;
    const int64_t first_c = of_x ? channel % z->c_group : 0, cs = of_x ? 1 : z->c_group;
    for (int64_t i = 0; i < z->n * ks * z->oh; i++) {
        const int64_t n = i / z->oh / ks, k = first_k + i / z->oh % ks, oh = i % z->oh;
        for (int64_t c = first_c; c < first_c + cs; c++)
            for (int64_t r = 0; r < z->r; r++) {
                const int64_t ih = oh * z->stride_h - z->padding_h + r * z->dilation_h;
                for (int64_t s = 0; s < z->s && ih >= 0 && ih < z->h; s++)
                    convolve_row(z, all->wanted, all->x + ((n * z->c + group * z->c_group + c) * z->h + ih) * z->w,
                        all->w + ((k * z->c_group + c) * z->r + r) * z->s + s,
                        all->y + ((n * z->k + k) * z->oh + oh) * z->ow, s);
            }
    }
}

static void convolve(const struct node_arrays *arrays, const struct conv2d_sizes *z, enum product wanted, double *x,
    double *w, double *y)
{
    struct convolution all = { z, wanted, x, w, y };
    const int channels = (int)(wanted == PRODUCT_X ? z->c : z->k);
    if (wanted == PRODUCT_Y) memset(y, 0, (size_t)(z->n * z->k * z->oh * z->ow) * sizeof *y);
    if (wanted == PRODUCT_X) memset(x, 0, (size_t)(z->n * z->c * z->h * z->w) * sizeof *x);
    if (wanted == PRODUCT_W) memset(w, 0, (size_t)(z->k * z->c_group * z->r * z->s) * sizeof *w);
    run_parts(arrays, channels, convolve_channel, &all);
}

static void add_bias(const double *bias, const struct value *y, int axis, double *to)
{
    const int64_t inner = interpreter_stride(y, axis), channels = y->shape.sizes[axis];
    for (int64_t i = 0; bias && i < value_elements(y); i++) to[i] += bias[i / inner % channels];
}

/* conv2d and its weight gradient. */
tutti_status interpret_conv2d(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool weights = conv2d_is_weight_gradient(problem);
    double *out = arrays->outputs[0];
    convolve(arrays, &z, weights ? PRODUCT_W : PRODUCT_Y, arrays->inputs[0], weights ? out : arrays->inputs[1],
        weights ? arrays->inputs[1] : out);
    if (!weights) add_bias(arrays->inputs[2], problem->outputs[0], CHANNEL_AXIS, out);
    return TUTTI_OK;
}

tutti_status interpret_conv2d_data_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    convolve(arrays, &z, PRODUCT_X, arrays->outputs[0], arrays->inputs[1], arrays->inputs[0]);
    return TUTTI_OK;
}

void interpret_conv2d_weights(
    const struct problem *problem, const struct node_arrays *arrays, double *x, double *dw, double *dy)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    convolve(arrays, &z, PRODUCT_W, x, dw, dy);
}

/* ----------------------------------------------------------------------------------------------------- dense ---- */

enum { BLOCK_ROWS = 16 };

/* y [rows][units] = x [rows][features] w^T, or one of the others from it. */
struct dense_product {
    enum product wanted;
    int64_t rows, features, units;
    double *x, *w, *y;
};

/* BLOCK_ROWS rows of y or x, or of w: they stay in the cache while the rows of another operand pass once. */
static void multiply_block(void *argument, int block)
{
    const struct dense_product *p = argument;
    const bool of_w = p->wanted == PRODUCT_W;
    const int64_t all = of_w ? p->units : p->rows, passing = of_w ? p->rows : p->units;
    const int64_t begin = (int64_t)block * BLOCK_ROWS, end = begin + BLOCK_ROWS < all ? begin + BLOCK_ROWS : all;
    for (int64_t other = 0; other < passing; other++)
        for (int64_t own = begin; own < end; own++) {
            const int64_t row = of_w ? other : own, unit = of_w ? own : other;
            double *x = p->x + row * p->features, *w = p->w + unit * p->features, *y = &p->y[row * p->units + unit];
            if (p->wanted == PRODUCT_Y)
                *y = dot(x, w, p->features);
            else
                add_scaled(of_w ? w : x, *y, of_w ? x : w, p->features);
        }
}

static void multiply(const struct node_arrays *arrays, const struct dense_product *product)
{
    struct dense_product p = *product;
    const int64_t rows = p.wanted == PRODUCT_W ? p.units : p.rows;
    if (p.wanted == PRODUCT_X) memset(p.x, 0, (size_t)(p.rows * p.features) * sizeof *p.x);
    if (p.wanted == PRODUCT_W) memset(p.w, 0, (size_t)(p.units * p.features) * sizeof *p.w);
    run_parts(arrays, (int)divide_up(rows, BLOCK_ROWS), multiply_block, &p);
}

tutti_status interpret_dense(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    const int64_t features = value_size(x, 0), rows = value_elements(x) / features;
    multiply(arrays,
        &(struct dense_product) { PRODUCT_Y, rows, features, .units = value_size(y, 0), .x = arrays->inputs[0],
            .w = arrays->inputs[1], .y = arrays->outputs[0] });
    add_bias(arrays->inputs[2], y, y->shape.rank - 1, arrays->outputs[0]);
    return TUTTI_OK;
}

tutti_status interpret_dense_data_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const int64_t units = value_size(problem->inputs[0], 0), rows = value_elements(problem->inputs[0]) / units;
    multiply(arrays,
        &(struct dense_product) { PRODUCT_X, rows, .features = value_size(problem->outputs[0], 0), .units = units,
            .x = arrays->outputs[0], .w = arrays->inputs[1], .y = arrays->inputs[0] });
    return TUTTI_OK;
}

tutti_status interpret_dense_weight_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[0], *dy = problem->inputs[1];
    const int64_t features = value_size(x, 0), rows = value_elements(x) / features;
    multiply(arrays,
        &(struct dense_product) { PRODUCT_W, rows, features, .units = value_size(dy, 0), .x = arrays->inputs[0],
            .w = arrays->outputs[0], .y = arrays->inputs[1] });
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------ matmul ---- */

/* Elements from one row or column of a matrix to the next. */
struct matrix {
    double *first;
    int64_t row, column;
};

static struct matrix matrix_of(double *first, bool transposed, int64_t rows, int64_t columns)
{
    return transposed ? (struct matrix) { first, 1, rows } : (struct matrix) { first, columns, 1 };
}

struct product_rows {
    const struct problem *problem;
    const struct node_arrays *arrays;
    int64_t rows, columns, depth; /* of each product */
};

/* Computes a row of the result. An input with fewer matrices than the output has a single one. */
static void multiply_row(void *argument, int number)
{
    const struct product_rows *p = argument;
    const struct matmul_attributes *attributes = matmul_attributes(p->problem->node);
    const int64_t product = number / p->rows, row = number % p->rows;
    const int64_t first_a = product * p->rows * p->depth % value_elements(p->problem->inputs[0]);
    const int64_t first_b = product * p->depth * p->columns % value_elements(p->problem->inputs[1]);
    const struct matrix a = matrix_of(p->arrays->inputs[0] + first_a, attributes->transpose_a, p->rows, p->depth);
    const struct matrix b = matrix_of(p->arrays->inputs[1] + first_b, attributes->transpose_b, p->depth, p->columns);
    double *y = p->arrays->outputs[0] + (int64_t)number * p->columns;
    memset(y, 0, (size_t)p->columns * sizeof *y);
    for (int64_t k = 0; k < p->depth; k++) {
        const double of_a = a.first[row * a.row + k * a.column], *of_b = b.first + k * b.row;
        for (int64_t i = 0; i < p->columns; i++) y[i] += of_a * of_b[i * b.column];
    }
}

tutti_status interpret_matmul(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *a = problem->inputs[0], *y = problem->outputs[0];
    struct product_rows rows = { problem, arrays, .rows = y->shape.sizes[y->shape.rank - 2],
        .columns = value_size(y, 0) };
    rows.depth = a->shape.sizes[a->shape.rank - (matmul_attributes(problem->node)->transpose_a ? 2 : 1)];
    run_parts(arrays, (int)(value_elements(y) / rows.columns), multiply_row, &rows);
    return TUTTI_OK;
}
