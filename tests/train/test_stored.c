/* Frozen matrices in bfloat16 and in bytes: tutti_store(). */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "formats/safetensors.h"
#include "tutti_finetune.h"
#include "tutti_sequences.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 33 * 1030 };

static void setup(void)
{
    data_make();
    folder_new();
}

/* -------------------------------------------------------------------------------------------------- products ---- */

/* y [samples, units] = x W^T + bias; transposed: W lies as [features, units], and is the operand of a matmul. */
struct product {
    int samples, features, units;
    bool transposed;
    tutti_precision precision;
};

/* A few samples and many, blocks of 64 that end within vectors, widths that are no multiple of anything. */
static const struct product products[] = { { 1, 65, 7, false }, { 1, 1030, 131, false }, { 3, 64, 66, false },
    { 8, 5, 3, false }, { 9, 63, 65, false }, { 33, 130, 129, false }, { 33, 1, 1, false }, { 1, 130, 129, true },
    { 7, 65, 70, true }, { 33, 67, 131, true },
    /* large enough for products of bfloat16 numbers */
    { 160, 130, 150, false, TUTTI_BF16 }, { 160, 101, 150, true, TUTTI_BF16 }, { 130, 64, 176, false, TUTTI_BF16 } };
enum { PRODUCTS = sizeof(products) / sizeof(*products) };

struct made {
    struct session session;
    tutti_tensor x, y;
};

static void make_product(struct made *made, const struct product *p, tutti_storage storage)
{
    *made = (struct made) { .session.runtime = session_runtime("0", false) };
    tutti_network *network = made->session.network = tutti_network_new(made->session.runtime);
    made->x = tutti_input(network, "x", TUTTI_SHAPE(p->features));
    const tutti_tensor bias = tutti_parameter(network, "bias", TUTTI_SHAPE(p->units), NULL);
    if (p->transposed) {
        const tutti_tensor rows = tutti_reshape(network, made->x, TUTTI_SHAPE(1, p->features));
        const tutti_tensor weight = tutti_parameter(network, "layer.weight", TUTTI_SHAPE(p->features, p->units),
            &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = 0.3f });
        made->y = tutti_matmul(network, "product", rows, weight, false, false);
        made->y = tutti_add(network, tutti_flatten(network, made->y), bias);
    } else {
        made->y = tutti_dense(network, made->x, p->units, &(tutti_dense_options) { .name = "layer", .bias = &bias });
    }
    ASSERT_OK(tutti_freeze(network, "layer.weight"));
    ASSERT_OK(tutti_store(network, "*", storage));
    made->session.trainer = tutti_compile(network, made->y,
        &(tutti_training) { .loss = TUTTI_MSE,
            .batch = p->samples,
            .gradient_inputs = &made->x,
            .gradient_input_count = 1,
            .precision = p->precision,
            .seed = 5 });
    ck_assert_msg(made->session.trainer, "%s", tutti_message(NULL));
}

static double weight_at(const struct product *p, const float *weight, int unit, int feature)
{
    return (double)(p->transposed ? weight[feature * p->units + unit] : weight[unit * p->features + feature]);
}

/* Sums of products of one sample, and of their sizes: of y and, where y's gradient is given, of x's. */
struct sums {
    double sum[1030], size[1030];
};

static void add_term(struct sums *sums, int i, double term)
{
    sums->sum[i] += term;
    sums->size[i] += fabs(term);
}

static void check_sums(const struct sums *sums, const float *found, int count, double rounding, double least)
{
    for (int i = 0; i < count; i++)
        ck_assert_double_eq_tol((double)found[i], sums->sum[i], rounding * sums->size[i] + least);
}

static void check_product(struct made *made, const struct product *p, const float *weight, const float *bias)
{
    static float x[MOST], targets[MOST], y[MOST], dx[MOST];
    static struct sums of_y, of_x;
    tutti_trainer *trainer = made->session.trainer;
    const double rounding = p->precision == TUTTI_BF16 ? 0x1p-7 : 1e-6;
    for (int i = 0; i < p->samples * p->features; i++) x[i] = (float)(i * 37 % 101 - 50) / 64;
    for (int i = 0; i < p->samples * p->units; i++) targets[i] = (float)(i % 7) / 8;
    ASSERT_OK(tutti_infer(trainer, FEED_ONE(x), p->samples, FETCH_ONE(made->y, y)));
    ASSERT_OK(tutti_backward(trainer, FEED_PAIR(x, (const float *)targets), p->samples, NULL));
    ASSERT_OK(tutti_get_input_gradient(trainer, made->x, dx, p->samples * p->features));
    for (int n = 0; n < p->samples; n++) {
        of_y = of_x = (struct sums) { 0 };
        for (int u = 0; u < p->units; u++) {
            add_term(&of_y, u, (double)bias[u]);
            for (int f = 0; f < p->features; f++)
                add_term(&of_y, u, (double)x[n * p->features + f] * weight_at(p, weight, u, f));
            const double d = 2 * (of_y.sum[u] - (double)targets[n * p->units + u]) / (p->samples * p->units);
            for (int f = 0; f < p->features; f++) add_term(&of_x, f, d * weight_at(p, weight, u, f));
        }
        check_sums(&of_y, y + n * p->units, p->units, rounding, 1e-7);
        check_sums(&of_x, dx + n * p->features, p->features, rounding, 2e-6);
    }
}

/* Forward and the gradient of x, computed by kernels from what is stored and in double precision from what
 * tutti_get_parameter() tells. */
START_TEST(products_are_right)
{
    static float weight[MOST * 5], bias[1030];
    const struct product *p = &products[_i / 2];
    struct made made;
    make_product(&made, p, _i % 2 ? TUTTI_STORE_INT8 : TUTTI_STORE_BF16);
    ASSERT_OK(tutti_get_parameter(made.session.trainer, "layer.weight", weight, (int64_t)p->features * p->units));
    ASSERT_OK(tutti_get_parameter(made.session.trainer, "bias", bias, p->units));
    check_product(&made, p, weight, bias);
    session_close(&made.session);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- numbers ---- */

/* What is kept is near what was set, the same after it was set again, and the same in files. */
START_TEST(numbers_are_rounded_once)
{
    static const double relative[] = { [TUTTI_STORE_BF16] = 0x1p-8, [TUTTI_STORE_INT8] = 1 / 253.9 };
    static float given[70 * 67], kept[70 * 67], again[70 * 67];
    const tutti_storage storage = _i ? TUTTI_STORE_INT8 : TUTTI_STORE_BF16;
    struct made made;
    make_product(&made, &(struct product) { 2, 67, 70, false }, storage);
    tutti_trainer *trainer = made.session.trainer;
    for (int i = 0; i < 70 * 67; i++) given[i] = sinf((float)i) * ldexpf(1, i / 67 % 40 - 20);
    ASSERT_OK(tutti_set_parameter(trainer, "layer.weight", given, 70 * 67));
    ASSERT_OK(tutti_get_parameter(trainer, "layer.weight", kept, 70 * 67));
    for (int i = 0; i < 70 * 67; i++) {
        float size = fabsf(given[i]);
        const int row = i / 67 * 67, first = i - row < 64 ? row : row + 64, end = i - row < 64 ? row + 64 : row + 67;
        for (int j = first; storage == TUTTI_STORE_INT8 && j < end; j++) size = fmaxf(size, fabsf(given[j]));
        ck_assert_double_le(fabs((double)kept[i] - (double)given[i]), relative[storage] * (double)size);
    }
    ASSERT_OK(tutti_set_parameter(trainer, "layer.weight", kept, 70 * 67));
    ASSERT_OK(tutti_get_parameter(trainer, "layer.weight", again, 70 * 67));
    ck_assert_mem_eq(again, kept, sizeof(kept));
    ASSERT_OK(tutti_save(trainer, in_folder("kept")));
    ASSERT_OK(tutti_set_parameter(trainer, "layer.weight", given, 70 * 67));
    ASSERT_OK(tutti_resume(trainer, in_folder("kept")));
    ASSERT_OK(tutti_get_parameter(trainer, "layer.weight", again, 70 * 67));
    ck_assert_mem_eq(again, kept, sizeof(kept));
    tutti_snapshot *snapshot = tutti_snapshot_take(trainer);
    ck_assert_ptr_nonnull(snapshot);
    ASSERT_OK(tutti_set_parameter(trainer, "layer.weight", given, 70 * 67));
    ASSERT_OK(tutti_snapshot_restore(trainer, snapshot));
    tutti_snapshot_free(snapshot);
    ASSERT_OK(tutti_get_parameter(trainer, "layer.weight", again, 70 * 67));
    ck_assert_mem_eq(again, kept, sizeof(kept));
    session_close(&made.session);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- adapters ---- */

enum { ROWS = 11, WIDTH = 70, LENGTH = 6, HIDDEN = 133 };

/* Rows of a table, dense layers of which one has an adapter, a matrix that something else reads, and logits that share
 * the table. */
static void make_adapted(struct made *made, const char *devices, tutti_storage storage)
{
    *made = (struct made) { .session.runtime = session_runtime(devices, false) };
    tutti_network *network = made->session.network = tutti_network_new(made->session.runtime);
    made->x = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, (const int64_t[]) { LENGTH }, 1);
    tutti_tensor x = tutti_embedding(network, "table", made->x, ROWS, WIDTH);
    x = tutti_tanh(network, tutti_dense(network, x, HIDDEN, &(tutti_dense_options) { .name = "up" }));
    const tutti_tensor other = tutti_parameter(network, "other.weight", TUTTI_SHAPE(LENGTH, HIDDEN), NULL);
    x = tutti_add(network, x, other);
    x = tutti_tanh(network, tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "down" }));
    const tutti_tensor table = tutti_find_parameter(network, "table.weight");
    x = tutti_dense(network, x, ROWS, &(tutti_dense_options) { .weight = &table, .no_bias = true });
    made->y = tutti_dense(network, tutti_flatten(network, x), CLASSES, &(tutti_dense_options) { .name = "head" });
    ASSERT_OK(tutti_lora(network, "up.weight", &(tutti_lora_options) { .rank = 3 }));
    ASSERT_OK(tutti_lora(network, "down.weight", &(tutti_lora_options) { .rank = 3 }));
    if (storage != TUTTI_STORE_F32) ASSERT_OK(tutti_store(network, "*", storage));
    made->session.trainer = tutti_compile(network, made->y,
        &(tutti_training) { .learning_rate = 0.2f, .batch = STEP_SAMPLES, .seed = 7, .sharing = TUTTI_SHARES_EQUAL });
    ck_assert_msg(made->session.trainer, "%s", tutti_message(NULL));
}

static int32_t ids[SAMPLES * LENGTH];

static void train(struct made *made, int steps)
{
    for (int i = 0; i < SAMPLES * LENGTH; i++) ids[i] = i * i % 13 - 1; /* some are of no row */
    for (int s = 0; s < steps; s++) {
        const int first = s * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
        const tutti_feed feeds[] = { { NULL, TUTTI_DTYPE_I32, ids + first * LENGTH },
            { NULL, TUTTI_DTYPE_I32, labels + first } };
        ASSERT_OK(tutti_train_step(made->session.trainer, feeds, 2, STEP_SAMPLES, NULL));
    }
}

static void copy(struct made *from, struct made *to)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(from->session.network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        static float values[WIDTH * HIDDEN];
        int64_t count = 1;
        for (int axis = 0; axis < shape.rank; axis++) count *= shape.sizes[axis];
        ASSERT_OK(tutti_get_parameter(from->session.trainer, name, values, count));
        ASSERT_OK(tutti_set_parameter(to->session.trainer, name, values, count));
    }
}

static void same_outputs(struct made *a, struct made *b, int samples)
{
    static float found[SAMPLES * CLASSES], wanted[SAMPLES * CLASSES];
    const tutti_feed feeds[] = { { NULL, TUTTI_DTYPE_I32, ids } };
    ASSERT_OK(tutti_infer(a->session.trainer, feeds, 1, samples, FETCH_ONE(a->y, found)));
    ASSERT_OK(tutti_infer(b->session.trainer, feeds, 1, samples, FETCH_ONE(b->y, wanted)));
    for (int i = 0; i < samples * CLASSES; i++) ck_assert_float_eq_tol(found[i], wanted[i], 2e-5f);
}

static const struct {
    const char *devices;
    tutti_storage storage;
} ways[] = { { "0", TUTTI_STORE_BF16 }, { "0", TUTTI_STORE_INT8 }, { "0,1", TUTTI_STORE_BF16 },
    { "0,1", TUTTI_STORE_INT8 } };
enum { WAYS_OF_STORING = sizeof(ways) / sizeof(*ways) };

/* A training with adapters ends as one whose weights are the floats that are stored. */
START_TEST(adapters_train_as_on_rounded_floats)
{
    struct made stored, floats;
    make_adapted(&stored, ways[_i].devices, ways[_i].storage);
    make_adapted(&floats, ways[_i].devices, TUTTI_STORE_F32);
    copy(&stored, &floats);
    train(&stored, 6);
    train(&floats, 6);
    close_to(&stored.session, &floats.session, 1e-5);
    same_outputs(&stored, &floats, SAMPLES);
    same_outputs(&stored, &floats, 1);
    ASSERT_OK(tutti_save_merged(stored.session.trainer, in_folder("merged.safetensors")));
    struct safetensors *file;
    ASSERT_OK(safetensors_open(in_folder("merged.safetensors"), &file));
    ck_assert_int_eq(safetensors_find(file, "up.weight")->type, SAFETENSORS_F32);
    ck_assert_int_eq(safetensors_find(file, "table.weight")->type,
        ways[_i].storage == TUTTI_STORE_BF16 ? SAFETENSORS_BF16 : SAFETENSORS_F32);
    safetensors_close(file);
    session_close(&stored.session);
    session_close(&floats.session);
}
END_TEST

/* The memory of what is stored. */
START_TEST(matrices_take_less_memory)
{
    static const double bytes[] = { [TUTTI_STORE_F32] = 4, [TUTTI_STORE_BF16] = 2, [TUTTI_STORE_INT8] = 1.0625 };
    for (int storage = TUTTI_STORE_F32; storage <= TUTTI_STORE_INT8; storage++) {
        struct made made;
        make_product(&made, &(struct product) { 1, 512, 256, false }, (tutti_storage)storage);
        ck_assert_double_eq((double)made.session.network->frozen_floats * 4, bytes[storage] * 512 * 256);
        session_close(&made.session);
    }
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    struct made made;
    tutti_view view = { .size = sizeof(view) };
    make_product(&made, &products[0], TUTTI_STORE_BF16);
    tutti_network *network = made.session.network;
    fails_with(
        tutti_view_parameter(made.session.trainer, "layer.weight", &view), TUTTI_UNSUPPORTED, "is not stored as");
    fails_with(tutti_store(network, "*", TUTTI_STORE_INT8), TUTTI_INVALID, "a trainer uses this network");
    tutti_trainer_free(made.session.trainer);
    made.session.trainer = NULL;
    fails_with(tutti_store(network, "bias", TUTTI_STORE_INT8), TUTTI_INVALID, "no matrix is frozen");
    fails_with(tutti_store(network, "none", TUTTI_STORE_INT8), TUTTI_INVALID, "no parameter has a name");
    fails_with(tutti_store(network, "", TUTTI_STORE_INT8), TUTTI_INVALID, "pattern is empty");
    fails_with(tutti_store(network, "*", (tutti_storage)3), TUTTI_INVALID, "storage 3 does not exist");
    session_close(&made.session);
}
END_TEST

Suite *suite_stored(void)
{
    Suite *suite = suite_create("stored");
    TCase *cases = cases_new(suite, "stored", setup, folder_remove);
    tcase_add_loop_test(cases, products_are_right, 0, 2 * PRODUCTS);
    tcase_add_loop_test(cases, numbers_are_rounded_once, 0, 2);
    tcase_add_loop_test(cases, adapters_train_as_on_rounded_floats, 0, WAYS_OF_STORING);
    tcase_add_test(cases, matrices_take_less_memory);
    tcase_add_test(cases, wrong_uses_are_refused);
    return suite;
}
