/* The interpreter against PyTorch's steps in double precision, which make.py recorded: with the nodes as the network
 * and the gradients are appended, and with those that are fused for the device. */
#include <check.h>
#undef fail /* base/status.h has its own */

#include "graph/network.h"
#include "runtime/device.h"
#include "tests/golden/golden.h"
#include "tests/interpreted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A file has 9 digits of a norm and 7 of an element. The momentum of a running statistic is a float. ROUNDING: for
 * gradients that are 0 in theory. */
#define OF_NORM 4e-8
#define OF_ELEMENT 1e-6
#define ROUNDING 1e-15

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

static int compare(const struct array *want, const double *got)
{
    double squares = 0, projection = 0;
    const uint32_t hash = name_hash("projection ", want->name);
    for (int64_t i = 0; i < want->size; i++) {
        squares += got[i] * got[i];
        projection += got[i] * uniform(hash, i);
    }
    const double limit = OF_NORM * want->norm + ROUNDING;
    bool good = fabs(sqrt(squares) - want->norm) <= limit && fabs(projection - want->projection) <= limit;
    for (int i = 0; i < want->samples; i++) {
        const double allowed =
            OF_ELEMENT * fabs(want->sample[i]) + OF_NORM * want->norm / sqrt((double)want->size) + ROUNDING;
        good = good && fabs(got[golden_position(want, i)] - want->sample[i]) <= allowed;
    }
    if (!good)
        fprintf(stderr, "%s of %s: norm %.12g and projection %.12g, not %.12g and %.12g\n", want->kind, want->name,
            sqrt(squares), projection, want->norm, want->projection);
    return !good;
}

static void write_data(const struct golden *golden, const struct interpreted *made)
{
    const tutti_network *network = made->plan->network;
    for (size_t p = 0; p < network->parameter_count; p++) {
        const struct parameter *how = &network->parameters[p];
        for (int64_t i = 0; i < how->elements; i++)
            interpreted_parameter(made, (int)p)[i] = golden_initial(golden, how->name, &how->shape, i);
    }
    double *inputs = made->interpreter.values[made->plan->feeds[0]];
    double *targets = made->interpreter.values[made->plan->feeds[1]];
    for (int64_t i = 0; i < GOLDEN_BATCH * golden_elements(&golden->shape); i++)
        inputs[i] = uniform(name_hash("", golden->inputs), i);
    for (int i = 0; i < GOLDEN_BATCH; i++) targets[i] = golden_target(i);
}

/* The gradient of a trained parameter; the running statistic after the step. */
static int compare_array(const struct interpreted *made, const struct array *want)
{
    const int p = interpreted_find(made, want->name);
    ck_assert_msg(p >= 0, "there is no parameter %s", want->name);
    const struct parameter *how = &made->plan->network->parameters[p];
    double *got = interpreted_gradient(made, p), *running = interpreted_parameter(made, p);
    ck_assert_msg(got && how->elements == want->size, "%s has no gradient of its size", want->name);
    if (how->kind == PARAMETER_STATISTIC) {
        for (int64_t i = 0; i < how->elements; i++) running[i] += (double)how->momentum * (got[i] - running[i]);
        got = running;
    }
    return compare(want, got);
}

START_TEST(test_interpreter)
{
    const struct golden *golden = &cases[_i / 2];
    const bool fused = _i % 2;
    double loss;
    int correct, arrays, wrong = 0;
    FILE *file = golden_open(golden, &loss, &correct, &arrays);
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor output = golden->build(network, tutti_input(network, "x", golden->shape), CLASSES);
    GOOD(network_layout(network));
    const struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = GOLDEN_BATCH, .objective = objective_of(output, TUTTI_CROSS_ENTROPY)
    };
    struct interpreted made;
    GOOD(interpreted_new(&runtime->devices[0], network, &options, fused, &made));
    made.interpreter.constants.gradient_weight = 1.0f / GOLDEN_BATCH;
    write_data(golden, &made);
    GOOD(interpreter_run(&made.interpreter, made.plan->graph.node_count));
    const double *metrics = made.interpreter.values[made.plan->metrics];
    for (int i = 0; i < arrays; i++) {
        struct array want;
        golden_read(file, &want);
        wrong += compare_array(&made, &want);
    }
    fclose(file);
    ck_assert_msg(fabs(metrics[0] / GOLDEN_BATCH - loss) <= 1e-10 * loss, "loss %.12g, not %.12g",
        metrics[0] / GOLDEN_BATCH, loss);
    ck_assert_int_eq((int)lrint(metrics[1]), correct);
    ck_assert_msg(wrong == 0, "%d of %s's %d arrays are wrong, nodes are %s", wrong, golden->name, arrays,
        fused ? "fused" : "not fused");
    interpreted_free(&made);
    tutti_network_free(network);
    tutti_close(runtime);
}
END_TEST

/* All but custom operations, which are a program's own. */
START_TEST(test_operations)
{
    for (const struct operation *const *o = operations; *o; o++)
        ck_assert_msg(interpreter_knows(*o) || strncmp((*o)->name, "custom", strlen("custom")) == 0,
            "layers/interpreter/interpreter.c lacks the operation %s", (*o)->name);
}
END_TEST

/* few: the smooth networks with fused nodes, the others without. */
int main(int count, char **words)
{
    const bool few = count > 1 && !strcmp(words[1], "few");
    Suite *suite = suite_create("interpreter");
    TCase *test_case = tcase_create("steps");
    tcase_set_timeout(test_case, 900);
    tcase_add_test(test_case, test_operations);
    for (int i = 0; i < 2 * PAIRED; i++)
        if (!few || cases[i / 2].smooth == i % 2) tcase_add_loop_test(test_case, test_interpreter, i, i + 1);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
