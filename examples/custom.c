/* Two custom operations, trained on all OpenCL devices of the machine: a network removes spikes and noise from signals.
 *
 *   median3   the median of each number and its neighbours
 *   shrink    soft threshold (Donoho 1995) with a learned threshold for each channel:
 *             y = sign(x) max(|x| - threshold, 0) */
#include <math.h>
#include <stdio.h>
#include <tutti.h>
#include <tutti_custom.h>

enum { LENGTH = 32, SAMPLES = 256, CHANNELS = 4 };

/* Both bodies run for each element i of x [channels, length], and see one sample. */
static const char *median_source =
    "float at(global const float *x, int row, int j)\n"
    "{\n"
    "    return x[row + clamp(j, 0, x_size1 - 1)];\n"
    "}\n"
    "int middle(float a, float b, float c) /* which of them is the median */\n"
    "{\n"
    "    if ((a <= b) == (b <= c)) return 0;\n"
    "    return (b <= a) == (a <= c) ? -1 : 1;\n"
    "}\n"
    "int median_at(global const float *x, int row, int j) /* where it is */\n"
    "{\n"
    "    const int to = j + middle(at(x, row, j - 1), at(x, row, j), at(x, row, j + 1));\n"
    "    return clamp(to, 0, x_size1 - 1);\n"
    "}\n";
static const char *median_forward = "const int j = i % x_size1, row = i - j;\n"
                                    "y[i] = x[row + median_at(x, row, j)];\n";
/* dx[i] is gathered: the sum over the outputs that took x[i]. */
static const char *median_backward = "const int j = i % x_size1, row = i - j;\n"
                                     "float sum = 0;\n"
                                     "for (int k = max(j - 1, 0); k <= min(j + 1, x_size1 - 1); k++)\n"
                                     "    if (median_at(x, row, k) == j) sum += dy[row + k];\n"
                                     "dx[i] = sum;\n";

static const char *shrink_forward = "const float t = threshold[i / x_size1];\n"
                                    "y[i] = copysign(fmax(fabs(x[i]) - t, 0.0f), x[i]);\n";
/* One item for each channel: it alone writes dthreshold of the channel, and the channel's dx. */
static const char *shrink_backward = "float sum = 0;\n"
                                     "for (int k = i * x_size1; k < (i + 1) * x_size1; k++) {\n"
                                     "    const float passed = fabs(x[k]) > threshold[i] ? dy[k] : 0.0f;\n"
                                     "    dx[k] = passed;\n"
                                     "    sum -= copysign(passed, passed * x[k]);\n"
                                     "}\n"
                                     "dthreshold[i] = sum;\n";

static tutti_tensor median3(tutti_network *network, tutti_tensor x)
{
    tutti_custom_options options = TUTTI_OPTIONS(tutti_custom_options);
    options.operation = "median3";
    options.source = median_source;
    options.forward = median_forward;
    options.backward = median_backward;
    return tutti_custom(network, &x, 1, &options);
}

static tutti_tensor shrink(tutti_network *network, tutti_tensor x)
{
    tutti_parameter_options start = TUTTI_OPTIONS(tutti_parameter_options);
    float thresholds[CHANNELS];
    for (int i = 0; i < CHANNELS; i++) thresholds[i] = 0.1f;
    start.values = thresholds;
    tutti_tensor inputs[2] = { x, tutti_parameter(network, "threshold", TUTTI_SHAPE(CHANNELS), &start) };
    tutti_custom_options options = TUTTI_OPTIONS(tutti_custom_options);
    options.operation = "shrink";
    options.input_names = "x threshold";
    options.forward = shrink_forward;
    options.backward = shrink_backward;
    options.backward_items = CHANNELS;
    return tutti_custom(network, inputs, 2, &options);
}

/* Sines, and the same with spikes and noise. */
static void make_signals(float *noisy, float *clean)
{
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        const int sample = i / LENGTH;
        clean[i] = (float)sin(0.05 * (1 + sample % 7) * (i % LENGTH) + sample);
        noisy[i] = clean[i] + 0.2f * (float)sin(12.9898 * i) + (i % 11 == sample % 11 ? 2.0f : 0.0f);
    }
}

int main(void)
{
    static float noisy[SAMPLES * LENGTH], clean[SAMPLES * LENGTH];
    make_signals(noisy, clean);
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(1, LENGTH));
    tutti_conv_options same = TUTTI_OPTIONS(tutti_conv_options);
    same.padding[0] = 2;
    tutti_tensor features = tutti_conv(network, median3(network, x), CHANNELS, TUTTI_SHAPE(5), &same);
    tutti_tensor y = tutti_conv(network, shrink(network, features), 1, TUTTI_SHAPE(5), &same);
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    training.loss = TUTTI_MSE;
    training.optimizer = TUTTI_ADAM;
    training.learning_rate = 0.01f;
    tutti_fitting fitting = TUTTI_OPTIONS(tutti_fitting);
    fitting.epochs = 30;
    tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, noisy }, { "targets", TUTTI_DTYPE_F32, clean } };
    tutti_metrics before, after;
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    const bool good = trainer && tutti_evaluate(trainer, feeds, 2, SAMPLES, &before) == TUTTI_OK &&
        tutti_fit(trainer, feeds, 2, SAMPLES, &fitting) == TUTTI_OK &&
        tutti_evaluate(trainer, feeds, 2, SAMPLES, &after) == TUTTI_OK;
    if (good)
        printf("loss %.4f, after training %.4f\n", before.loss, after.loss);
    else
        fprintf(stderr, "custom: %s\n", tutti_message(NULL));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return good && after.loss < 0.5 * before.loss ? 0 : 1;
}
