/* A Fourier neural operator (Li et al. 2021) learns Darcy flow: from a coefficient a(y, x), 3 or 12 in patches of
 * random form, it predicts the pressure u with -div(a grad u) = 1 inside and u = 0 on the edge of the unit square. The
 * program makes its data with a solver of its own. Each of the four layers keeps 16 x 9 frequencies of 24 channels (16
 * x 16 with the negative half of the second axis, which real images repeat), multiplies them by a matrix for each
 * frequency, and adds a product for each pixel.
 *
 *   fno [size samples epochs [folder]]     default 32 256 10; folder: gets samples.f32 and weights.safetensors, which
 *                                          tests/golden/fno.py trains with PyTorch */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>
#include <tutti_sequences.h>

#define CHANNELS 24
#define LAYERS 4
#define ROWS 16
#define COLUMNS 9
#define FREQUENCIES (ROWS * COLUMNS)
#define BATCH 8
#define TESTS 32
#define WAVES 12 /* of the random fields, in each direction */
#define PI 3.14159265358979323846

struct data {
    int size, samples; /* pixels in each direction; TESTS more samples are for tests */
    float *inputs;     /* [samples][3][size][size]: the coefficient as -1 and 1, y, x */
    float *targets;    /* [samples][1][size][size]: the pressure, less its mean, by its deviation */
    double mean, deviation;
};

/* ------------------------------------------------------------------------------------------------------- data ---- */

/* Numbers from 0 to 1, the same on every machine. */
static double draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* 12 where a smooth random field is positive, else 3. */
static void make_coefficient(int size, double *a)
{
    double waves[WAVES][WAVES];
    for (int k = 0; k < WAVES; k++)
        for (int l = 0; l < WAVES; l++) {
            double normal = -6; /* the sum of twelve such numbers is nearly normal */
            for (int i = 0; i < 12; i++) normal += draw();
            waves[k][l] = k + l == 0 ? 0 : normal / (PI * PI * (k * k + l * l) + 9);
        }
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            double field = 0;
            for (int k = 0; k < WAVES; k++)
                for (int l = 0; l < WAVES; l++)
                    field += waves[k][l] * cos(PI * k * (y + 0.5) / size) * cos(PI * l * (x + 0.5) / size);
            a[y * size + x] = field > 0 ? 12 : 3;
        }
}

/* out = A u: flows to the four neighbours, between which the coefficient is the harmonic mean. */
static void apply(int size, const double *a, const double *u, double *out)
{
    const double scale = (double)(size + 1) * (size + 1);
    static const int dy[] = { -1, 1, 0, 0 }, dx[] = { 0, 0, -1, 1 };
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const int at = y * size + x;
            double sum = 0;
            for (int i = 0; i < 4; i++) {
                const int ny = y + dy[i], nx = x + dx[i], to = ny * size + nx;
                const bool inside = ny >= 0 && ny < size && nx >= 0 && nx < size;
                const double between = inside ? 2 * a[at] * a[to] / (a[at] + a[to]) : a[at];
                sum += between * (u[at] - (inside ? u[to] : 0));
            }
            out[at] = scale * sum;
        }
}

static double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* Conjugate gradients (Hestenes and Stiefel 1952). work: three arrays of size * size. */
static void solve(int size, const double *a, double *u, double *work)
{
    const int count = size * size;
    double *rest = work, *direction = work + count, *product = work + 2 * count;
    for (int i = 0; i < count; i++) {
        u[i] = 0;
        rest[i] = direction[i] = 1;
    }
    double square = count;
    for (int step = 0; step < 20 * size && square > 1e-20 * count; step++) {
        apply(size, a, direction, product);
        const double length = square / dot(direction, product, count), before = square;
        for (int i = 0; i < count; i++) {
            u[i] += length * direction[i];
            rest[i] -= length * product[i];
        }
        square = dot(rest, rest, count);
        for (int i = 0; i < count; i++) direction[i] = rest[i] + square / before * direction[i];
    }
}

static void make_sample(struct data *data, int n, double *work)
{
    const int size = data->size, count = size * size;
    double *a = work, *u = work + count;
    float *input = data->inputs + (size_t)n * 3 * count, *target = data->targets + (size_t)n * count;
    make_coefficient(size, a);
    solve(size, a, u, work + 2 * count);
    for (int i = 0; i < count; i++) {
        input[i] = (float)((a[i] - 7.5) / 4.5);
        input[count + i] = (float)((i / size + 1.0) / (size + 1));
        input[2 * count + i] = (float)((i % size + 1.0) / (size + 1));
        target[i] = (float)u[i];
    }
}

static bool make_data(struct data *data)
{
    const size_t count = (size_t)data->size * data->size, all = (size_t)data->samples + TESTS;
    const size_t pixels = (size_t)data->samples * count;
    double *work = (double *)malloc(5 * count * sizeof(double));
    data->inputs = (float *)malloc(all * 3 * count * sizeof(float));
    data->targets = (float *)malloc(all * count * sizeof(float));
    if (!work || !data->inputs || !data->targets) {
        free(work);
        return false;
    }
    for (int n = 0; n < data->samples + TESTS; n++) make_sample(data, n, work);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < pixels; i++) sum += (double)data->targets[i] / (double)pixels;
    for (size_t i = 0; i < pixels; i++) squares += ((double)data->targets[i] - sum) * ((double)data->targets[i] - sum);
    data->mean = sum;
    data->deviation = sqrt(squares / (double)pixels);
    for (size_t i = 0; i < all * count; i++) data->targets[i] = (float)((data->targets[i] - sum) / data->deviation);
    free(work);
    return true;
}

/* ---------------------------------------------------------------------------------------------------- network ---- */

/* A product of the channels at each pixel. */
static tutti_tensor mix(tutti_network *network, tutti_tensor x, int64_t channels, const char *name)
{
    tutti_conv2d_options options = { sizeof(options), name };
    return tutti_conv2d(network, x, channels, 1, &options);
}

/* Real or imaginary parts, [CHANNELS][1][FREQUENCIES]. */
static tutti_tensor part(tutti_network *network, tutti_tensor spectrum, int which)
{
    const tutti_tensor cut =
        tutti_op(network, "slice", &spectrum, 1, which ? "axes=3 starts=1 ends=2" : "axes=3 starts=0 ends=1");
    return tutti_reshape(network, cut, TUTTI_SHAPE(CHANNELS, 1, FREQUENCIES));
}

/* The sum over input channels of a b + c d or a b - c d, [CHANNELS][ROWS][COLUMNS][1]. */
static tutti_tensor products(
    tutti_network *network, tutti_tensor a, tutti_tensor b, tutti_tensor c, tutti_tensor d, const char *operation)
{
    const tutti_tensor both[] = { tutti_mul(network, a, b), tutti_mul(network, c, d) };
    const tutti_tensor joined = tutti_op(network, operation, both, 2, NULL);
    const tutti_tensor sum = tutti_op(network, "reduce_sum", &joined, 1, "axes=0 keepdims=0");
    return tutti_reshape(network, sum, TUTTI_SHAPE(CHANNELS, ROWS, COLUMNS, 1));
}

/* Each frequency's channels are multiplied by a complex matrix of its own, [in][out][frequency]. */
static tutti_tensor spectral(tutti_network *network, tutti_tensor x, int size)
{
    tutti_parameter_options options = { sizeof(options), TUTTI_INIT_NORMAL, 1.0f / CHANNELS };
    const tutti_shape shape = TUTTI_SHAPE(CHANNELS, CHANNELS, FREQUENCIES);
    const tutti_tensor real = tutti_parameter(network, "real", shape, &options),
                       imaginary = tutti_parameter(network, "imaginary", shape, &options);
    const tutti_tensor spectrum = tutti_rfft2_modes(network, x, ROWS, COLUMNS);
    const tutti_tensor re = part(network, spectrum, 0), im = part(network, spectrum, 1);
    const tutti_tensor parts[] = { products(network, re, real, im, imaginary, "sub"),
        products(network, re, imaginary, im, real, "add") };
    return tutti_irfft2_modes(network, tutti_concat(network, parts, 2, 3), size, size);
}

static tutti_tensor gelu(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "gelu", &x, 1, NULL);
}

/* No call is checked: the first error stays in the network, and tutti_compile() reports it. */
static tutti_tensor build(tutti_network *network, int size)
{
    tutti_tensor x = mix(network, tutti_input(network, "x", TUTTI_SHAPE(3, size, size)), CHANNELS, "lift");
    for (int layer = 0; layer < LAYERS; layer++) {
        char scope[32];
        snprintf(scope, sizeof scope, "layers.%d", layer);
        tutti_scope_push(network, scope);
        const tutti_tensor far = spectral(network, x, size), near = mix(network, x, CHANNELS, "mix");
        x = tutti_add(network, far, near);
        if (layer + 1 < LAYERS) x = gelu(network, x);
        tutti_scope_pop(network);
    }
    return mix(network, gelu(network, mix(network, x, 2 * CHANNELS, "project")), 1, "result");
}

/* --------------------------------------------------------------------------------------------------- training ---- */

static tutti_status write_files(tutti_trainer *trainer, const struct data *data, const char *folder)
{
    char path[1024];
    const size_t count = ((size_t)data->samples + TESTS) * data->size * data->size;
    snprintf(path, sizeof path, "%s/samples.f32", folder);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(data->inputs, sizeof(float), 3 * count, file) == 3 * count &&
        fwrite(data->targets, sizeof(float), count, file) == count;
    good = file && fclose(file) == 0 && good;
    if (!good) fprintf(stderr, "fno: %s cannot be written\n", path);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    const tutti_status status = tutti_save_weights(trainer, path);
    return good ? status : TUTTI_FILE;
}

/* Batches in the order of the samples, so that any other program can repeat it. */
static tutti_status train_epoch(tutti_trainer *trainer, const struct data *data, int epoch)
{
    const size_t count = (size_t)data->size * data->size;
    tutti_metrics metrics, test;
    double loss = 0;
    for (int n = 0; n + BATCH <= data->samples; n += BATCH) {
        const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, data->inputs + (size_t)n * 3 * count },
            { "targets", TUTTI_DTYPE_F32, data->targets + (size_t)n * count } };
        const tutti_status status = tutti_train_step(trainer, feeds, 2, BATCH, &metrics);
        if (status != TUTTI_OK) return status;
        loss += metrics.loss / (data->samples / BATCH);
    }
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, data->inputs + (size_t)data->samples * 3 * count },
        { "targets", TUTTI_DTYPE_F32, data->targets + (size_t)data->samples * count } };
    const tutti_status status = tutti_evaluate(trainer, feeds, 2, TESTS, &test);
    if (status == TUTTI_OK) printf("epoch %d  loss %.6f  test loss %.6f\n", epoch, loss, test.loss);
    fflush(stdout);
    return status;
}

static tutti_status run(tutti_runtime *runtime, struct data *data, int epochs, const char *folder)
{
    tutti_network *network = tutti_network_new(runtime);
    tutti_training training = { sizeof(training), TUTTI_MSE, TUTTI_ADAM, 0.002f };
    training.batch = BATCH;
    training.seed = 1;
    const tutti_tensor output = build(network, data->size);
    tutti_trainer *trainer = tutti_compile(network, output, &training);
    tutti_status status = trainer ? TUTTI_OK : tutti_network_status(network);
    if (!trainer && status == TUTTI_OK) status = TUTTI_DEVICE;
    if (status == TUTTI_OK && folder) status = write_files(trainer, data, folder);
    for (int epoch = 1; epoch <= epochs && status == TUTTI_OK; epoch++) status = train_epoch(trainer, data, epoch);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    return status;
}

int main(int count, char **arguments)
{
    struct data data = { count > 1 ? atoi(arguments[1]) : 32, count > 2 ? atoi(arguments[2]) : 256 };
    const int epochs = count > 3 ? atoi(arguments[3]) : 10;
    if (data.size < ROWS || data.size > 512 || data.samples < BATCH || data.samples > 100000 || epochs < 1) {
        fprintf(stderr, "fno: fno [size (16 to 512) samples (8 or more) epochs [folder]]\n");
        return 2;
    }
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_status status = TUTTI_NO_DEVICE;
    if (runtime) status = make_data(&data) ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = run(runtime, &data, epochs, count > 4 ? arguments[4] : NULL);
    if (status != TUTTI_OK) fprintf(stderr, "fno: %s\n", tutti_message(runtime));
    tutti_close(runtime);
    free(data.inputs);
    free(data.targets);
    return status == TUTTI_OK ? 0 : 1;
}
