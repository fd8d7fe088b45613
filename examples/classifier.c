/* A network built by hand tells two interleaved spirals apart: trained on arrays of the caller, saved, loaded into a
 * second trainer that only infers, used there.
 *
 *     classifier [FILE.safetensors]      where the weights are saved; default: spirals.safetensors */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <tutti.h>

#define SAMPLES 2000
#define CLASSES 2

/* Numbers between -0.5 and 0.5, the same on every machine. */
static double noise(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24) - 0.5;
}

/* points[SAMPLES][2], every other one of the second spiral: the first one turned by half a circle. */
static void make_spirals(float *points, int32_t *labels)
{
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < SAMPLES; i++) {
        int label = i % CLASSES;
        double along = (double)i / SAMPLES;
        double angle = 3 * pi * along + pi * label, radius = 0.15 + 0.85 * along;
        points[2 * i] = (float)(radius * cos(angle) + 0.05 * noise());
        points[2 * i + 1] = (float)(radius * sin(angle) + 0.05 * noise());
        labels[i] = label;
    }
}

/* Two hidden layers. No call is checked: the first error stays in the network and tutti_compile() reports it. */
static tutti_tensor build(tutti_network *network)
{
    tutti_tensor x = tutti_input(network, "point", TUTTI_SHAPE(2));
    x = tutti_tanh(network, tutti_dense(network, x, 64, NULL));
    x = tutti_tanh(network, tutti_dense(network, x, 64, NULL));
    return tutti_dense(network, x, CLASSES, NULL);
}

static int show_progress(void *user, const tutti_progress *progress)
{
    (void)user;
    if (progress->end_of_epoch && progress->epoch % 10 == 0)
        printf("epoch %2d: loss %.4f, accuracy %.1f %%\n", (int)progress->epoch, progress->train.loss,
            100 * progress->train.accuracy);
    return 0;
}

/* Each function below returns a status; the text that explains it is tutti_message()'s. */
static tutti_status train(tutti_runtime *runtime, const float *points, const int32_t *labels, const char *file)
{
    tutti_status status = TUTTI_INVALID;
    tutti_network *network = tutti_network_new(runtime);
    tutti_training training = { sizeof(training), TUTTI_CROSS_ENTROPY, TUTTI_ADAM, 0.01f };
    training.batch = 50;
    training.seed = 7;
    tutti_trainer *trainer = tutti_compile(network, build(network), &training);
    if (trainer) {
        tutti_fitting fitting = { sizeof(fitting), 40 /* epochs */ };
        fitting.progress = show_progress;
        const tutti_feed feeds[] = { { "point", TUTTI_DTYPE_F32, points }, { "targets", TUTTI_DTYPE_I32, labels } };
        status = tutti_fit(trainer, feeds, 2, SAMPLES, &fitting);
        if (status == TUTTI_OK) status = tutti_save_weights(trainer, file);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    return status;
}

static tutti_status use(tutti_runtime *runtime, const float *points, const int32_t *labels, const char *file)
{
    static float logits[SAMPLES][CLASSES];
    tutti_status status = TUTTI_INVALID;
    tutti_network *network = tutti_network_new(runtime);
    tutti_training inference = { sizeof(inference), TUTTI_LOSS_NONE };
    const tutti_tensor output = build(network);
    tutti_trainer *trainer = tutti_compile(network, output, &inference);
    if (trainer) {
        status = tutti_load_weights(trainer, file);
        const tutti_feed feed = { "point", TUTTI_DTYPE_F32, points };
        const tutti_fetch fetch = { output, TUTTI_DTYPE_F32, logits[0] };
        if (status == TUTTI_OK) status = tutti_infer(trainer, &feed, 1, SAMPLES, &fetch, 1);
    }
    if (status == TUTTI_OK) {
        int correct = 0;
        for (int i = 0; i < SAMPLES; i++) correct += (logits[i][1] > logits[i][0]) == (labels[i] == 1);
        printf("loaded from %s: %d of %d points are classified correctly\n", file, correct, SAMPLES);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    return status;
}

int main(int argc, char **argv)
{
    static float points[2 * SAMPLES];
    static int32_t labels[SAMPLES];
    const char *file = argc > 1 ? argv[1] : "spirals.safetensors";
    make_spirals(points, labels);

    tutti_runtime *runtime = tutti_open(NULL);
    tutti_status status = TUTTI_NO_DEVICE;
    if (runtime) status = train(runtime, points, labels, file);
    if (status == TUTTI_OK) status = use(runtime, points, labels, file);
    if (status != TUTTI_OK) fprintf(stderr, "classifier: %s\n", tutti_message(runtime));
    tutti_close(runtime);
    return status == TUTTI_OK ? 0 : 1;
}
