#include "layers/interpreter/interpreter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/dft/dft.h"
#include "layers/grid_sample.h"
#include "layers/indices.h"
#include "layers/layers.h"
#include "layers/lines.h"
#include "layers/loop/loop.h"
#include "layers/recurrent/recurrent.h"

static double activate(struct nonlinearity f, double x)
{
    const double variables[POINTWISE_VARIABLES] = { [VARIABLE_A] = x };
    return f.activation ? activations[f.activation].y.function(variables, (double)f.low, (double)f.high) : x;
}

/* g times the derivative of the function, whose output is y. */
static double masked(struct nonlinearity f, double y, double g)
{
    const double variables[POINTWISE_VARIABLES] = { [VARIABLE_Y] = y, [VARIABLE_G] = g };
    if (!f.activation) return g;
    return activations[f.activation].derivatives[0].function(variables, (double)f.low, (double)f.high);
}

/* ----------------------------------------------------------------------------------------------------- loops ---- */

/* Returns the position of an operand's element at these coordinates. */
static int64_t place_in(const struct loop_operand *operand, const int64_t *at, int rank)
{
    int64_t place = operand->offset;
    for (int i = 0; i < rank; i++) place += at[i] * operand->strides[i];
    return place;
}

static double operand_at(const struct problem *problem, const struct node_arrays *arrays, const struct loop *loop,
    const struct loop_operand *operand, const int64_t *at)
{
    for (int i = 0; i < loop->rank; i++)
        if (operand_is_guarded(operand, i) && (at[i] < operand->low[i] || at[i] >= operand->high[i]))
            return (double)operand->outside;
    int64_t place = place_in(operand, at, loop->rank);
    if (operand->indexed) {
        double index = operand_at(problem, arrays, loop, &loop->operands[operand->index], at);
        if (operand->index_from_end && index < 0) index += (double)operand->index_size;
        if (!(index >= 0 && index < (double)operand->index_size)) return 0;
        place += (int64_t)index * operand->index_stride;
    }
    const double number = arrays->inputs[operand->input][place];
    return problem->inputs[operand->input]->type == TYPE_BOOL ? number != 0 : number;
}

static double loop_element(
    const struct problem *problem, const struct loop *loop, const struct node_arrays *arrays, const int64_t *at)
{
    double operands[LOOP_OPERANDS];
    for (int i = 0; i < loop->operand_count; i++)
        operands[i] = operand_at(problem, arrays, loop, &loop->operands[i], at);
    return loop_evaluate(loop, operands);
}

static void run_loop(const struct problem *problem, const struct loop *loop, const struct node_arrays *arrays)
{
    double *out = arrays->outputs[0];
    const int64_t outputs = value_elements(problem->outputs[0]);
    int64_t elements = 1, at[TUTTI_MAX_RANK];
    for (int i = 0; i < loop->rank; i++) elements *= loop->sizes[i];
    for (int64_t i = 0; loop->reduction && i < outputs; i++) out[i] = (double)reductions[loop->reduction].start;
    for (int64_t e = 0; e < elements; e++) {
        int64_t rest = e;
        for (int i = loop->rank - 1; i >= 0; i--) {
            at[i] = rest % loop->sizes[i];
            rest /= loop->sizes[i];
        }
        const double element = loop_element(problem, loop, arrays, at);
        double *to = out + place_in(&loop->out, at, loop->rank);
        const double variables[POINTWISE_VARIABLES] = { [VARIABLE_A] = *to, [VARIABLE_B] = element };
        *to = loop->reduction ? reductions[loop->reduction].operation->pointwise->y.function(variables, 0, 0) : element;
    }
    for (int64_t i = 0; loop->reduction && i < outputs; i++) out[i] *= loop->scale;
}

/* ------------------------------------------------------------------------------------- channels, embedding ---- */

/* db: dy summed over all axes but one. */
static void sum_channels(const struct value *dy, int axis, const double *from, double *to)
{
    const struct planes z = value_planes(dy, axis);
    memset(to, 0, (size_t)z.c * sizeof *to);
    for (int64_t i = 0; i < value_elements(dy); i++) to[i / z.pixels % z.c] += from[i];
}

tutti_status interpret_channel_sum(const struct problem *problem, const struct node_arrays *arrays)
{
    sum_channels(problem->inputs[0], axis_attributes(problem->node)->axis, arrays->inputs[0], arrays->outputs[0]);
    return TUTTI_OK;
}

/* Returns the number of a row, which may not exist; from_end: negative ids count from the end. */
static double row_of(double id, int64_t rows, bool from_end)
{
    return from_end && id < 0 ? id + (double)rows : id;
}

tutti_status interpret_embedding(const struct problem *problem, const struct node_arrays *arrays)
{
    const int64_t rows = problem->inputs[1]->shape.sizes[0], width = value_size(problem->outputs[0], 0);
    for (int64_t i = 0; i < value_elements(problem->outputs[0]); i++) {
        const double id = row_of(arrays->inputs[0][i / width], rows, embedding_attributes(problem->node)->from_end);
        arrays->outputs[0][i] = id >= 0 && id < (double)rows ? arrays->inputs[1][(int64_t)id * width + i % width] : 0;
    }
    return TUTTI_OK;
}

tutti_status interpret_embedding_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *table = problem->outputs[0];
    const int64_t rows = table->shape.sizes[0], width = value_size(table, 0);
    memset(arrays->outputs[0], 0, (size_t)value_elements(table) * sizeof *arrays->outputs[0]);
    for (int64_t i = 0; i < value_elements(problem->inputs[1]); i++) {
        const double id =
            row_of(arrays->inputs[0][i / width], rows, embedding_gradient_attributes(problem->node)->from_end);
        if (id >= 0 && id < (double)rows) arrays->outputs[0][(int64_t)id * width + i % width] += arrays->inputs[1][i];
    }
    return TUTTI_OK;
}

tutti_status interpret_resample(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct resample_attributes *a = resample_attributes(problem->node);
    const struct planes z = value_planes(problem->outputs[0], a->axis);
    const int64_t from = problem->inputs[0]->shape.sizes[a->axis];
    const double *x = arrays->inputs[0], *starts = arrays->inputs[1], *positions = arrays->inputs[2];
    for (int64_t i = 0; i < z.n * z.c * z.pixels; i++) {
        const int64_t row = i / z.pixels, begin = (int64_t)starts[row % z.c], end = (int64_t)starts[row % z.c + 1];
        double sum = begin < end ? 0 : (double)a->outside;
        for (int64_t t = begin; t < end; t++)
            sum += arrays->inputs[3][t] * x[(row / z.c * from + (int64_t)positions[t]) * z.pixels + i % z.pixels];
        arrays->outputs[0][i] = sum;
    }
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------ batch norm ---- */

/* Element `position` of channel c. */
static int64_t channel_place(const struct planes *z, int64_t c, int64_t position)
{
    return (position / z->pixels * z->c + c) * z->pixels + position % z->pixels;
}

static void moments(const struct planes *z, const double *x, int64_t c, double *mean, double *variance)
{
    const int64_t count = z->n * z->pixels;
    double sum = 0, squares = 0;
    for (int64_t p = 0; p < count; p++) sum += x[channel_place(z, c, p)];
    *mean = sum / (double)count;
    for (int64_t p = 0; p < count; p++) {
        const double d = x[channel_place(z, c, p)] - *mean;
        squares += d * d;
    }
    *variance = squares / (double)count;
}

/* Row `number` of the statistics that another node made (FUSION_GIVEN); NULL: there are none. */
static const double *given_statistics(const struct problem *problem, const struct node_arrays *arrays, int number)
{
    const struct fusion *given = node_fusion(problem->node, FUSION_GIVEN);
    return given ? arrays->inputs[given->input] + number * value_size(problem->inputs[given->input], 0) : NULL;
}

tutti_status interpret_batch_norm(const struct problem *problem, const struct node_arrays *arrays)
{
    const double *means = given_statistics(problem, arrays, 1), *squares = given_statistics(problem, arrays, 2);
    const struct planes z = value_planes(problem->inputs[0], CHANNEL_AXIS);
    const bool running = arrays->inference || problem->node->operation == &operation_batch_norm_inference;
    const double count = (double)(z.n * z.pixels);
    const double weight = running ? 0 : (double)z.n * (double)arrays->constants->gradient_weight;
    double *const *in = arrays->inputs, *const *out = arrays->outputs;
    for (int64_t c = 0; c < z.c; c++) {
        double mean = means ? means[c] : in[NORM_MEAN][c], variance = squares ? squares[c] / count : in[NORM_VAR][c];
        if (!running && !means) moments(&z, in[NORM_X], c, &mean, &variance);
        const double rstd = 1 / sqrt(variance + (double)batch_norm_attributes(problem->node)->epsilon);
        write_if(out[NORM_SAVED_MEAN], c, mean);
        write_if(out[NORM_SAVED_RSTD], c, rstd);
        write_if(out[NORM_BATCH_MEAN], c, mean * weight);
        write_if(out[NORM_BATCH_VAR], c, variance * weight * count / (count > 1 ? count - 1 : 1));
        for (int64_t p = 0; out[NORM_Y] && p < z.n * z.pixels; p++) {
            const int64_t i = channel_place(&z, c, p);
            out[NORM_Y][i] = (in[NORM_X][i] - mean) * rstd * in[NORM_GAMMA][c] + in[NORM_BETA][c];
        }
    }
    return TUTTI_OK;
}

tutti_status interpret_batch_norm_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct planes z = value_planes(problem->inputs[0], CHANNEL_AXIS);
    double *const *in = arrays->inputs, *const *out = arrays->outputs;
    const double *gamma = in[GRADIENT_GAMMA], *mean = in[GRADIENT_MEAN], *rstd = in[GRADIENT_RSTD];
    const double *g = in[GRADIENT_DY];
    const double *sums = given_statistics(problem, arrays, 0), *products = given_statistics(problem, arrays, 1);
    const int64_t count = z.n * z.pixels;
    for (int64_t c = 0; c < z.c; c++) {
        double sum = sums ? sums[c] : 0, product = products ? products[c] * rstd[c] : 0; /* of g, of g times normal x */
        for (int64_t p = 0; !sums && p < count; p++) {
            const int64_t i = channel_place(&z, c, p);
            sum += g[i];
            product += g[i] * (in[GRADIENT_X][i] - mean[c]) * rstd[c];
        }
        write_if(out[GRADIENT_DGAMMA], c, product);
        write_if(out[GRADIENT_DBETA], c, sum);
        for (int64_t p = 0; out[GRADIENT_DX] && p < count; p++) {
            const int64_t i = channel_place(&z, c, p);
            const double normal = (in[GRADIENT_X][i] - mean[c]) * rstd[c];
            out[GRADIENT_DX][i] = gamma[c] * rstd[c] * (g[i] - (sum + normal * product) / (double)count);
        }
    }
    return TUTTI_OK;
}

tutti_status interpret_fold_batch_norm(const struct problem *problem, const struct node_arrays *arrays)
{
    enum { W, BIAS, GAMMA, BETA, MEAN, VAR };
    const int64_t inner = interpreter_stride(problem->inputs[W], 0), channels = problem->inputs[W]->shape.sizes[0];
    double *const *in = arrays->inputs;
    for (int64_t k = 0; k < channels; k++) {
        const double scale = in[GAMMA][k] / sqrt(in[VAR][k] + (double)batch_norm_attributes(problem->node)->epsilon);
        for (int64_t i = k * inner; i < (k + 1) * inner; i++) arrays->outputs[0][i] = in[W][i] * scale;
        arrays->outputs[1][k] = ((in[BIAS] ? in[BIAS][k] : 0) - in[MEAN][k]) * scale + in[BETA][k];
    }
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------ layer norm ---- */

tutti_status interpret_layer_norm(const struct problem *problem, const struct node_arrays *arrays)
{
    const int64_t width = value_size(problem->inputs[0], 0), rows = value_elements(problem->inputs[0]) / width;
    for (int64_t row = 0; row < rows; row++) {
        const double *x = arrays->inputs[0] + row * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += x[i] / (double)width;
        for (int64_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)width;
        const double rstd = 1 / sqrt(variance + (double)layer_norm_attributes(problem->node)->epsilon);
        for (int64_t i = 0; i < width; i++)
            write_if(arrays->outputs[0], row * width + i,
                (x[i] - mean) * rstd * arrays->inputs[1][i] + arrays->inputs[2][i]);
        write_if(arrays->outputs[1], row, mean);
        write_if(arrays->outputs[2], row, rstd);
    }
    return TUTTI_OK;
}

/* dx = rstd * (h - mean of h - n * mean of h n), where n is x normalised and h is dy gamma. */
tutti_status interpret_layer_norm_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    enum { X, DY, GAMMA, MEAN, RSTD };
    enum { DX, DGAMMA, DBETA };
    double *const *in = arrays->inputs, *const *out = arrays->outputs;
    const int64_t width = value_size(problem->inputs[X], 0), rows = value_elements(problem->inputs[X]) / width;
    for (int i = DGAMMA; i <= DBETA; i++)
        if (out[i]) memset(out[i], 0, (size_t)width * sizeof *out[i]);
    for (int64_t row = 0; row < rows; row++) {
        const double *x = in[X] + row * width, *dy = in[DY] + row * width, mean = in[MEAN][row], rstd = in[RSTD][row];
        double sum = 0, product = 0;
        for (int64_t i = 0; i < width; i++) {
            const double normal = (x[i] - mean) * rstd, h = dy[i] * in[GAMMA][i];
            sum += h / (double)width;
            product += h * normal / (double)width;
            if (out[DGAMMA]) out[DGAMMA][i] += dy[i] * normal;
            if (out[DBETA]) out[DBETA][i] += dy[i];
        }
        for (int64_t i = 0; i < width; i++)
            write_if(out[DX], row * width + i, rstd * (dy[i] * in[GAMMA][i] - sum - (x[i] - mean) * rstd * product));
    }
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------ softmax, dropout ---- */

tutti_status interpret_softmax(const struct problem *problem, const struct node_arrays *arrays)
{
    const int64_t width = value_size(problem->inputs[0], 0);
    for (int64_t row = 0; row < value_elements(problem->inputs[0]); row += width) {
        const double *x = arrays->inputs[0] + row;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < width; i++) most = fmax(most, x[i]);
        for (int64_t i = 0; i < width; i++) sum += exp(x[i] - most);
        for (int64_t i = 0; i < width; i++) arrays->outputs[0][row + i] = exp(x[i] - most) / sum;
    }
    return TUTTI_OK;
}

tutti_status interpret_softmax_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    const int64_t width = value_size(problem->inputs[0], 0);
    for (int64_t row = 0; row < value_elements(problem->inputs[0]); row += width) {
        const double *y = arrays->inputs[0] + row, *dy = arrays->inputs[1] + row;
        double sum = 0;
        for (int64_t i = 0; i < width; i++) sum += y[i] * dy[i];
        for (int64_t i = 0; i < width; i++) arrays->outputs[0][row + i] = y[i] * (dy[i] - sum);
    }
    return TUTTI_OK;
}

/* The random numbers are defined in clkernels/dropout.cl. */
tutti_status interpret_dropout(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[0];
    const struct step_constants *s = arrays->constants;
    const int64_t count = value_elements(x), samples = value_samples(x);
    const uint64_t begin = x->batched ? (uint64_t)s->first_sample * (uint64_t)(count / samples) : 0;
    const double probability = (double)dropout_attributes(problem->node)->probability;
    const uint32_t key[2] = { s->seed_low, s->seed_high ^ s->step_high }, threshold = (uint32_t)(probability * 0x1p32);
    const uint32_t stream = (uint32_t)RANDOM_DROPOUT + (uint32_t)dropout_attributes(problem->node)->stream;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t position = begin + (uint64_t)i;
        const uint64_t block = position / 64 * 16 + position % 16;
        const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), s->step_low, stream };
        uint32_t numbers[4];
        philox4x32(key, counter, numbers);
        const bool kept = arrays->inference || numbers[position % 64 / 16] >= threshold;
        const double scale = arrays->inference ? 1 : (double)(float)(1 / (1 - probability));
        arrays->outputs[0][i] = kept ? arrays->inputs[0][i] * scale : 0;
    }
    return TUTTI_OK;
}

/* The random numbers are defined in clkernels/random_like.cl. */
tutti_status interpret_random(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *y = problem->outputs[0];
    const struct step_constants *s = arrays->constants;
    const struct random_attributes *a = random_attributes(problem->node);
    const uint32_t key[2] = { s->seed_low, s->seed_high ^ s->step_high };
    const uint64_t count = (uint64_t)value_elements(y), samples = (uint64_t)value_samples(y);
    const uint64_t begin = y->batched ? s->first_sample * (count / samples) : 0;
    const bool normal = problem->node->operation == &operation_random_normal;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t position = begin + i, block = position / 4, pair = position % 4 / 2 * 2;
        const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), s->step_low,
            (uint32_t)RANDOM_LAYERS + (uint32_t)a->stream };
        uint32_t words[4];
        philox4x32(key, counter, words);
        const double uniform = (words[position % 4] >> 8) * 0x1p-24, pi = 3.14159265358979323846;
        const double radius = sqrt(-2 * log1p(-(double)(words[pair] >> 8) * 0x1p-24));
        const double angle = 2 * pi * (words[pair + 1] >> 8) * 0x1p-24;
        const double number = !normal ? uniform : radius * (position % 2 ? sin(angle) : cos(angle));
        arrays->outputs[0][i] = (double)a->offset + (double)a->scale * number;
    }
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- movement ---- */

tutti_status interpret_copy(const struct problem *problem, const struct node_arrays *arrays)
{
    memcpy(arrays->outputs[0], arrays->inputs[0], (size_t)value_elements(problem->outputs[0]) * sizeof(double));
    return TUTTI_OK;
}

tutti_status interpret_concat(const struct problem *problem, const struct node_arrays *arrays)
{
    const int axis = axis_attributes(problem->node)->axis;
    const int64_t row = interpreter_stride(problem->outputs[0], axis) * problem->outputs[0]->shape.sizes[axis];
    int64_t first = 0;
    for (int i = 0; i < problem->node->input_count; i++) {
        const struct value *x = problem->inputs[i];
        const int64_t width = interpreter_stride(x, axis) * x->shape.sizes[axis];
        for (int64_t k = 0; k < value_elements(x); k++)
            arrays->outputs[0][k / width * row + first + k % width] = arrays->inputs[i][k];
        first += width;
    }
    return TUTTI_OK;
}

tutti_status interpret_convert(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[0];
    const struct convert_attributes *a = convert_attributes(problem->node);
    const int64_t count = value_elements(x), each = count / x->shape.sizes[0] / (a->channels > 1 ? a->channels : 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = a->channels > 1 ? i / each % a->channels : 0;
        const double number = x->type == TYPE_BOOL ? arrays->inputs[0][i] != 0 : arrays->inputs[0][i];
        arrays->outputs[0][i] = a->channels ? (double)a->scale[c] * number + (double)a->shift[c] : number;
    }
    return TUTTI_OK;
}

bool interpreter_knows(const struct operation *operation)
{
    return operation->loop || operation->reference;
}

/* --------------------------------------------------------------------------------------------------- fusions ---- */

/* The coefficients of a batch normalisation, of each channel, and the function after it. */
struct normalisation {
    const double *gamma, *beta, *mean, *rstd; /* beta NULL: 0 */
    struct nonlinearity function;
    struct planes planes;
};

static struct normalisation normalisation_of(const struct value *x, struct nonlinearity function, double *const *inputs)
{
    return (struct normalisation) { inputs[NORMALISED_GAMMA], inputs[NORMALISED_BETA], inputs[NORMALISED_MEAN],
        inputs[NORMALISED_RSTD], function, value_planes(x, CHANNEL_AXIS) };
}

static int64_t channel_of(const struct normalisation *by, int64_t i)
{
    return i / by->planes.pixels % by->planes.c;
}

/* Element i after the normalisation of x. */
static double normalised(const struct normalisation *by, const double *x, int64_t i)
{
    const int64_t c = channel_of(by, i);
    const double scaled = (x[i] - by->mean[c]) * by->rstd[c] * by->gamma[c];
    return activate(by->function, scaled + (by->beta ? by->beta[c] : 0));
}

/* Returns a new array, normalised; NULL: there is no memory. */
static double *normalised_array(const struct normalisation *by, const struct value *value, const double *x)
{
    double *array = memory_new((size_t)value_elements(value), sizeof *array);
    for (int64_t i = 0; array && i < value_elements(value); i++) array[i] = normalised(by, x, i);
    return array;
}

static tutti_status normalise_input(
    const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct value *x = problem->inputs[0];
    const struct normalisation by = normalisation_of(x, fusion->function, arrays->inputs + fusion->input);
    arrays->inputs[0] = normalised_array(&by, x, arrays->inputs[0]);
    return arrays->inputs[0] ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status mask_input(const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct value *dy = problem->inputs[GRADIENT_DY];
    double *const *in = arrays->inputs, *dadd = arrays->outputs[fusion->output];
    const double *y = in[fusion->input + MASKED_Y];
    double *const coefficients[NORMALISED_INPUTS] = { in[GRADIENT_GAMMA], in[fusion->input + MASKED_BETA],
        in[GRADIENT_MEAN], in[GRADIENT_RSTD] };
    const struct normalisation by = normalisation_of(dy, fusion->function, coefficients);
    double *g = memory_new((size_t)value_elements(dy), sizeof *g);
    for (int64_t i = 0; g && i < value_elements(dy); i++) {
        g[i] = masked(fusion->function, y ? y[i] : normalised(&by, in[GRADIENT_X], i), in[GRADIENT_DY][i]);
        write_if(dadd, i, g[i]);
    }
    arrays->inputs[GRADIENT_DY] = g;
    return g ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status add(const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    (void)fusion;
    for (int64_t i = 0; i < value_elements(problem->outputs[0]); i++) arrays->outputs[0][i] += arrays->add[i];
    return TUTTI_OK;
}

static tutti_status apply_function(
    const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    double *y = arrays->outputs[0];
    for (int64_t i = 0; i < value_elements(problem->outputs[0]); i++) y[i] = activate(fusion->function, y[i]);
    return TUTTI_OK;
}

static tutti_status mask(const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const double *y = arrays->inputs[fusion->input];
    double *dx = arrays->outputs[0];
    for (int64_t i = 0; i < value_elements(problem->outputs[0]); i++) dx[i] = masked(fusion->function, y[i], dx[i]);
    return TUTTI_OK;
}

/* Applies the mask, and sums over g. */
static tutti_status gate(const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct value *x = problem->inputs[fusion->input + GATE_X], *statistics = problem->outputs[fusion->output];
    double *const *in = arrays->inputs + fusion->input, *g = arrays->outputs[0],
                  *sums = arrays->outputs[fusion->output];
    const struct normalisation by = normalisation_of(x, fusion->function, in + GATE_GAMMA);
    memset(sums, 0, (size_t)value_elements(statistics) * sizeof *sums);
    for (int64_t i = 0; i < value_elements(x); i++) {
        const int64_t c = channel_of(&by, i);
        g[i] = masked(fusion->function, in[GATE_Y] ? in[GATE_Y][i] : normalised(&by, in[GATE_X], i), g[i]);
        sums[c] += g[i];
        sums[value_size(statistics, 0) + c] += g[i] * (in[GATE_X][i] - by.mean[c]);
    }
    return TUTTI_OK;
}

/* Computes count, mean and sum of squared deviations of each channel. */
static tutti_status statistics(const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct value *y = problem->outputs[0], *of = problem->outputs[fusion->output];
    const int64_t count = value_elements(y);
    const struct planes z = value_planes(y, CHANNEL_AXIS);
    double *counts = arrays->outputs[fusion->output], *means = counts + value_size(of, 0),
           *squares = means + value_size(of, 0);
    memset(counts, 0, (size_t)value_elements(of) * sizeof *counts);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i / z.pixels % z.c;
        counts[c]++;
        means[c] += arrays->outputs[0][i] / ((double)count / (double)z.c);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i / z.pixels % z.c;
        squares[c] += (arrays->outputs[0][i] - means[c]) * (arrays->outputs[0][i] - means[c]);
    }
    return TUTTI_OK;
}

static tutti_status bias_gradient(
    const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct value *dy = problem->inputs[1];
    sum_channels(dy, dy->shape.rank - 1, arrays->inputs[1], arrays->outputs[fusion->output]);
    return TUTTI_OK;
}

static tutti_status weight_gradient(
    const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion)
{
    const struct fusion *of = node_fusion(problem->node, FUSION_GATE);
    const struct value *x = problem->inputs[of->input + GATE_X];
    double *const *in = arrays->inputs + of->input;
    const struct normalisation by = normalisation_of(x, of->function, in + GATE_GAMMA);
    double *normal = normalised_array(&by, x, in[GATE_X]);
    if (!normal) return TUTTI_NO_MEMORY;
    interpret_conv2d_weights(problem, arrays, normal, arrays->outputs[fusion->output], arrays->inputs[0]);
    free(normal);
    return TUTTI_OK;
}

/* How fusions run. Before FUSION_ADD, they replace an input's array by a new one; others follow the operation. */
static tutti_status (*const fusions[FUSION_KINDS])(
    const struct problem *problem, struct node_arrays *arrays, const struct fusion *fusion) = {
    [FUSION_NORMALISED] = normalise_input,
    [FUSION_MASKED] = mask_input,
    [FUSION_ADD] = add,
    [FUSION_ACTIVATION] = apply_function,
    [FUSION_MASK] = mask,
    [FUSION_GATE] = gate,
    [FUSION_STATISTICS] = statistics,
    [FUSION_BIAS] = bias_gradient,
    [FUSION_WEIGHTS] = weight_gradient,
};

static tutti_status run_fusions(const struct problem *problem, struct node_arrays *arrays, bool after)
{
    tutti_status status = TUTTI_OK;
    const struct node *node = problem->node;
    for (int k = 0; k < node->fusion_count && status == TUTTI_OK; k++) {
        const struct fusion *fusion = &node->fusions[k];
        if (after == (fusion->kind >= FUSION_ADD) && fusions[fusion->kind])
            status = fusions[fusion->kind](problem, arrays, fusion);
    }
    return status;
}

static tutti_status run_operation(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct operation *operation = problem->node->operation;
    struct loop loop;
    if (operation->reference) return operation->reference(problem, arrays);
    operation->loop(problem, &loop);
    run_loop(problem, &loop, arrays);
    return TUTTI_OK;
}

tutti_status interpret_node(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct operation *operation = problem->node->operation;
    struct node_arrays with = *arrays;
    if (!interpreter_knows(operation))
        return fail(TUTTI_UNSUPPORTED,
            "the interpreter does not know the operation '%s': it has neither a reference nor a loop", operation->name);
    tutti_status status = run_fusions(problem, &with, false);
    if (status == TUTTI_OK) status = run_operation(problem, &with);
    if (status == TUTTI_OK && with.outputs[0]) status = run_fusions(problem, &with, true);
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++)
        if (with.inputs[i] != arrays->inputs[i]) free(with.inputs[i]);
    return status;
}
