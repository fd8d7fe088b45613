/* Grids are positions: whatever --precision allows products to round, those of affine_grid are floats, and so are the
 * gradients of theta. */
#include <check.h>
#undef fail /* base/status.h has its own */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "runtime/device.h"
#include "tests/layers/device_suite.h"
#include "tutti.h"

enum { SAMPLES = 2, SIDE = 96, PIXELS = SIDE * SIDE, THETA = 6 };
static const float thetas[SAMPLES * THETA] = { 0.913f, -0.217f, 0.1037f, 0.171f, 0.877f, -0.0619f, 1.037f, 0.0531f,
    -0.2113f, 0.0977f, 0.713f, 0.3331f };
static tutti_runtime *runtime;

/* The centre of pixel i, where -1 and 1 are the edges of the image. */
static double centre(int i)
{
    return (2 * (double)i + 1) / SIDE - 1;
}

static tutti_trainer *grid_trainer(tutti_precision precision, tutti_network **network, tutti_tensor *grid)
{
    *network = tutti_network_new(runtime);
    tutti_tensor theta = tutti_input(*network, "theta", TUTTI_SHAPE(2, 3));
    theta = tutti_add(*network, theta,
        tutti_parameter(*network, "moved", TUTTI_SHAPE(2, 3), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS }));
    *grid = tutti_op(*network, "affine_grid", &theta, 1, "size=96,96");
    tutti_trainer *trainer = tutti_compile(*network, *grid,
        &(tutti_training) { .loss = TUTTI_MSE, .batch = SAMPLES, .precision = precision, .fetch_in_training = true });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    return trainer;
}

/* Returns the gradient of the mean of all squared positions with respect to an element of `moved`. */
static double gradient_of(int row, int column)
{
    double sum = 0;
    for (int n = 0; n < SAMPLES; n++)
        for (int p = 0; p < PIXELS; p++) {
            const double at[] = { centre(p % SIDE), centre(p / SIDE), 1 };
            const float *theta = thetas + n * THETA + row * 3;
            for (int k = 0; k < 3; k++) sum += (double)theta[k] * at[k] * at[column];
        }
    return 2 * sum / (SAMPLES * PIXELS * 2);
}

static void check_grid(const float *grid, const char *precision)
{
    double most = 0;
    for (int e = 0; e < SAMPLES * PIXELS * 2; e++) {
        const int pixel = e / 2 % PIXELS;
        const float *theta = thetas + e / 2 / PIXELS * THETA + e % 2 * 3;
        const double is =
            (double)theta[0] * centre(pixel % SIDE) + (double)theta[1] * centre(pixel / SIDE) + (double)theta[2];
        most = fmax(most, fabs((double)grid[e] - is));
    }
    ck_assert_msg(most < 3e-7, "%s: positions are off by %g, %g pixels", precision, most, most * SIDE / 2);
}

START_TEST(grids_are_not_rounded)
{
    static const struct {
        tutti_precision precision;
        const char *name;
    } precisions[] = { { TUTTI_FP32, "fp32" }, { TUTTI_TF32, "tf32" }, { TUTTI_BF16, "bf16" }, { TUTTI_FP16, "fp16" } };
    tutti_network *network;
    tutti_tensor grid;
    tutti_trainer *trainer = grid_trainer(precisions[_i].precision, &network, &grid);
    float *found = memory_new(SAMPLES * PIXELS * 2, sizeof *found),
          *zeros = memory_new(SAMPLES * PIXELS * 2, sizeof *zeros);
    ck_assert(found && zeros);
    const tutti_feed feeds[] = { { "theta", TUTTI_DTYPE_F32, thetas, 0 }, { "targets", TUTTI_DTYPE_F32, zeros, 0 } };
    const tutti_fetch fetch = { grid, TUTTI_DTYPE_F32, found };
    ck_assert_msg(
        tutti_train_fetch(trainer, feeds, 2, SAMPLES, &fetch, 1, NULL) == TUTTI_OK, "%s", tutti_message(NULL));
    check_grid(found, precisions[_i].name);
    float gradient[THETA];
    ck_assert_msg(tutti_get_gradient(trainer, "moved", gradient, THETA) == TUTTI_OK, "%s", tutti_message(NULL));
    for (int i = 0; i < THETA; i++) {
        const double is = gradient_of(i / 3, i % 3);
        ck_assert_msg(fabs((double)gradient[i] - is) < 1e-6, "%s: gradient %d is %.9g, not %.9g", precisions[_i].name,
            i, (double)gradient[i], is);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    free(found);
    free(zeros);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_loop_test(cases, grids_are_not_rounded, 0, 4);
}

int main(void)
{
    return device_suite_run("positions", "0", &runtime, add_tests);
}
