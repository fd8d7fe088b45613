/* Run by mpirun with two processes: tests that need gradients which no data set gives. */
#include "tests/feeds.h"
#include "tutti.h"
#include "tutti_hosts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* One weight w = 0 and one sample for each rank: the gradient of the mean square of (w x - t) is -x t. */
static tutti_trainer *training_new(tutti_network *network, tutti_hosts *hosts, tutti_precision precision)
{
    const tutti_training training = { .loss = TUTTI_MSE,
        .optimizer = TUTTI_SGD,
        .learning_rate = 1e-30f,
        .batch = 2,
        .precision = precision,
        .hosts = hosts };
    const float zero = 0;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(1));
    const tutti_tensor y = tutti_dense(network, x, 1, &(tutti_dense_options) { .name = "fc", .no_bias = true });
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    if (!trainer || tutti_set_parameter(trainer, "fc.weight", &zero, 1) != TUTTI_OK) return NULL;
    return trainer;
}

/* A step in which each rank's gradient is `gradient`; the weight afterwards. */
static tutti_status step(tutti_trainer *trainer, double gradient, float *weight)
{
    const float x = (float)(gradient / 1e10), t = -1e10f;
    tutti_metrics metrics;
    const tutti_status status = tutti_train_step(trainer, FEED_PAIR(&x, &t), 1, &metrics);
    const tutti_status read = tutti_get_parameter(trainer, "fc.weight", weight, 1);
    return status == TUTTI_OK ? read : status;
}

/* Where losses are scaled by 65536, 4e33 is such a gradient: all ranks leave the step out, and find the
 * scale that will do. */
static bool overflow_halves_the_scale(tutti_hosts *hosts)
{
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_network *network = tutti_network_new(runtime);
    tutti_trainer *trainer = training_new(network, hosts, TUTTI_FP16);
    float after_first = NAN, after_second = NAN;
    const tutti_status first = trainer ? step(trainer, 4e33, &after_first) : TUTTI_INTERNAL;
    const tutti_status second = trainer ? step(trainer, 4e33, &after_second) : TUTTI_INTERNAL;
    const bool good = first == TUTTI_OK && after_first == 0 && second == TUTTI_OK && fabsf(after_second + 8e3f) < 1;
    if (!good)
        printf("rank %d, scaled: %d, weight %.9g, then %d, weight %.9g: %s\n", tutti_hosts_rank(hosts), (int)first,
            (double)after_first, (int)second, (double)after_second, tutti_message(runtime));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return good;
}

/* The sum of two gradients of 1.6e38 fits a float, that of two of 2e38 does not: then nothing is updated. */
static bool overflow_is_noticed(tutti_hosts *hosts)
{
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_network *network = tutti_network_new(runtime);
    tutti_trainer *trainer = training_new(network, hosts, TUTTI_FP32);
    float before = NAN, after = NAN;
    const tutti_status large = trainer ? step(trainer, 1.6e38, &before) : TUTTI_INTERNAL;
    const tutti_status overflow = trainer ? step(trainer, 2e38, &after) : TUTTI_INTERNAL;
    const bool good =
        large == TUTTI_OK && fabsf(before + 3.2e8f) < 1e3f && overflow == TUTTI_NOT_FINITE && after == before;
    if (!good)
        printf("rank %d: %d, weight %.9g, then %d, weight %.9g: %s\n", tutti_hosts_rank(hosts), (int)large,
            (double)before, (int)overflow, (double)after, tutti_message(runtime));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return good;
}

int main(void)
{
    tutti_hosts *hosts = tutti_hosts_open(NULL);
    const bool good = tutti_hosts_count(hosts) == 2 && overflow_is_noticed(hosts) && overflow_halves_the_scale(hosts);
    printf("rank %d: %s\n", tutti_hosts_rank(hosts), good ? "good" : "bad");
    tutti_hosts_close(hosts);
    return good ? 0 : 1;
}
