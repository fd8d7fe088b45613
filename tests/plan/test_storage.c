/* Values that are stored as bfloat16. */
#include "tests/plan/test_plan.h"

#include <string.h>

#include "layers/layers.h"
#include "plan/plan.h"
#include "runtime/verdicts.h"

/* The type of the first output of the only node with this operation in this layer. */
static enum value_type stored(const struct made *made, const struct operation *operation, const char *layer)
{
    const struct graph *graph = &made->plan->graph;
    const struct node *found = NULL;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation != operation || strcmp(made->network->layers[node->layer].name, layer)) continue;
        ck_assert_ptr_null(found);
        found = node;
    }
    ck_assert_ptr_nonnull(found);
    return graph_at(graph, found->outputs[0])->type;
}

static size_t arena(const struct made *made)
{
    size_t bytes = 0;
    for (int i = 0; i < made->memory.slab_count; i++) bytes += made->memory.slabs[i];
    return bytes;
}

START_TEST(values_between_kernels_that_can_are_bf16)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16);
    size_t floats = arena(&made);
    drop(&made);
    bf16 = true;
    make(&made, PLAN_TRAIN, separable);
    /* The stem's convolution makes floats, and its weight gradient reads them; the mean is what a dense layer would
     * read.
     */
    ck_assert_int_eq(stored(&made, &operation_conv2d, "stem"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "wide"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "apart"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_batch_norm, "other"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_batch_norm_gradient, "bn0"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d_data_gradient, "apart"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d_data_gradient, "wide"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_conv2d_weight_gradient, "wide"), TYPE_F32);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        if (!value_has_layouts(&made.plan->graph.values[v]))
            ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16); /* statistics, features */
    ck_assert_uint_lt(arena(&made), floats * 3 / 4);
    replay(&made);
    drop(&made);
}
END_TEST

START_TEST(kernels_that_cannot_keep_floats)
{
    struct made made;
    make_device(DEVICE_GPU, (size_t)1 << 30);
    bf16 = true;
    make(&made, PLAN_TRAIN, separable);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16);
    drop(&made);
    make_device(DEVICE_CPU, (size_t)1 << 30);
    bf16 = true;
    blacklist_add(&device, "conv2d/depthwise/bf16", "wrong"); /* its kernels for floats are right */
    make(&made, PLAN_TRAIN, separable);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "wide"), TYPE_F32); /* which the next one normalises itself */
    ck_assert_int_eq(stored(&made, &operation_conv2d, "apart"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_batch_norm, "other"), TYPE_BF16);
    drop(&made);
}
END_TEST

void add_storage(TCase *cases)
{
    tcase_add_test(cases, values_between_kernels_that_can_are_bf16);
    tcase_add_test(cases, kernels_that_cannot_keep_floats);
}
