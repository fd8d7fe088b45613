/* A network with two inputs and two losses: from small images (bytes) and a table of two numbers for each, it learns
 * which way the image's bar runs, and a number that depends on the bar's brightness and the table. The filters that see
 * edges are given and frozen; one layer is used twice; biases are a group with a rate of their own and no weight decay.
 */
#include <stdint.h>
#include <stdio.h>
#include <tutti.h>
#include <tutti_finetune.h>

#define SAMPLES 1500
#define SIDE 8
#define COLUMNS 2
#define DIRECTIONS 4
#define FILTERS 4

static uint8_t images[SAMPLES][SIDE][SIDE];
static float tables[SAMPLES][COLUMNS], numbers[SAMPLES];
static int32_t directions[SAMPLES];

/* Numbers from 0 to 1, the same on every machine. */
static double draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24);
}

static bool is_on_bar(int direction, int at, int y, int x)
{
    const int across[DIRECTIONS] = { y - at, x - at, x - y + at - SIDE / 2, x + y - at - SIDE / 2 };
    return across[direction] == 0 || across[direction] == 1;
}

static void make_data(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        const int direction = i % DIRECTIONS, at = 1 + (int)(draw() * (SIDE - 3));
        const double brightness = 0.3 + 0.5 * draw();
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                images[i][y][x] = (uint8_t)(255 * ((is_on_bar(direction, at, y, x) ? brightness : 0) + 0.2 * draw()));
        for (int j = 0; j < COLUMNS; j++) tables[i][j] = (float)(2 * draw() - 1);
        directions[i] = direction;
        numbers[i] = (float)(2 * brightness + tables[i][0] - 0.5 * tables[i][1]);
    }
}

/* Filters of one channel: [filters][1][3][3]. */
static const float edges[FILTERS][9] = {
    { -1, -2, -1, 0, 0, 0, 1, 2, 1 },
    { -1, 0, 1, -2, 0, 2, -1, 0, 1 },
    { 0, 1, 2, -1, 0, 1, -2, -1, 0 },
    { -2, -1, 0, -1, 0, 1, 0, 1, 2 },
};

static tutti_tensor dense(
    tutti_network *network, tutti_tensor x, int64_t units, const char *name, const tutti_tensor *weight)
{
    tutti_dense_options options = { sizeof(options), name };
    options.weight = weight;
    return tutti_dense(network, x, units, &options);
}

struct heads {
    tutti_tensor direction, number, losses[2];
};

/* No call but those that return a status is checked: the first error stays in the network, and tutti_compile() reports
 * it. */
static tutti_status build(tutti_network *network, struct heads *heads)
{
    const int64_t sizes[] = { 1, SIDE, SIDE };
    tutti_normalise_options bytes = { sizeof(bytes) };
    tutti_conv2d_options eye = { sizeof(eye), "eye" };
    bytes.scale = 1.0f / 255;
    eye.padding = 1;
    tutti_tensor x = tutti_input_typed(network, "image", TUTTI_DTYPE_U8, sizes, 3);
    x = tutti_relu(network, tutti_conv2d(network, tutti_normalise(network, x, &bytes), FILTERS, 3, &eye));
    x = tutti_flatten(network, tutti_max_pool(network, x, 2, NULL));
    const tutti_tensor both[] = { tutti_tanh(network, dense(network, x, 24, "body", NULL)),
        tutti_input(network, "table", TUTTI_SHAPE(COLUMNS)) };
    x = tutti_tanh(network, dense(network, tutti_concat(network, both, 2, 0), 32, "join", NULL));
    x = tutti_tanh(network, dense(network, x, 32, "refine", NULL));
    const tutti_tensor shared = tutti_find_parameter(network, "refine.weight");
    x = tutti_tanh(network, dense(network, x, 32, "again", &shared));
    heads->direction = dense(network, x, DIRECTIONS, "direction", NULL);
    heads->number = dense(network, x, 1, "number", NULL);
    const tutti_tensor label = tutti_input_typed(network, "label", TUTTI_DTYPE_I32, NULL, 0),
                       wanted = tutti_input(network, "wanted", TUTTI_SHAPE(1));
    heads->losses[0] = tutti_cross_entropy(network, heads->direction, label, NULL);
    heads->losses[1] = tutti_huber(network, heads->number, wanted, NULL);
    tutti_group_options biases = { sizeof(biases), 2 /* times the learning rate */, true, 0 /* weight decay */ };
    tutti_status status = tutti_set_initial(network, "eye.weight", edges[0], FILTERS * 9);
    if (status == TUTTI_OK) status = tutti_freeze(network, "eye.*");
    return status == TUTTI_OK ? tutti_group(network, "*.bias", &biases) : status;
}

static tutti_status show(tutti_trainer *trainer, const struct heads *heads, const tutti_feed *feeds)
{
    tutti_metrics direction, number;
    static float found[SAMPLES];
    tutti_status status = tutti_evaluate(trainer, feeds, 4, SAMPLES, NULL);
    if (status == TUTTI_OK) status = tutti_loss_metrics(trainer, heads->losses[0], &direction);
    if (status == TUTTI_OK) status = tutti_loss_metrics(trainer, heads->losses[1], &number);
    if (status != TUTTI_OK) return status;
    printf("direction: loss %.4f, accuracy %.1f %%; number: loss %.4f\n", direction.loss, 100 * direction.accuracy,
        number.loss);
    const tutti_fetch fetch = { heads->number, TUTTI_DTYPE_F32, found };
    status = tutti_infer(trainer, feeds, 2, SAMPLES, &fetch, 1);
    if (status == TUTTI_OK) printf("the first number is %.2f, predicted %.2f\n", numbers[0], found[0]);
    return status;
}

static tutti_status train(tutti_runtime *runtime)
{
    struct heads heads;
    const tutti_feed feeds[] = { { "image", TUTTI_DTYPE_U8, images }, { "table", TUTTI_DTYPE_F32, tables },
        { "label", TUTTI_DTYPE_I32, directions }, { "wanted", TUTTI_DTYPE_F32, numbers } };
    const float weights[] = { 1, 2 };
    tutti_network *network = tutti_network_new(runtime);
    tutti_status status = build(network, &heads);
    tutti_training training = { sizeof(training), TUTTI_LOSS_NONE, TUTTI_ADAM, 0.005f };
    training.losses = heads.losses;
    training.loss_weights = weights;
    training.loss_count = 2;
    training.outputs = &heads.number;
    training.output_count = 1;
    training.batch = 50;
    training.weight_decay = 1e-4f;
    tutti_trainer *trainer = status == TUTTI_OK ? tutti_compile(network, heads.direction, &training) : NULL;
    tutti_fitting fitting = { sizeof(fitting), 15 /* epochs */ };
    if (status == TUTTI_OK) status = trainer ? tutti_fit(trainer, feeds, 4, SAMPLES, &fitting) : TUTTI_INVALID;
    if (status == TUTTI_OK) status = show(trainer, &heads, feeds);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    return status;
}

int main(void)
{
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_status status = TUTTI_NO_DEVICE;
    make_data();
    if (runtime) status = train(runtime);
    if (status != TUTTI_OK) fprintf(stderr, "two_heads: %s\n", tutti_message(runtime));
    tutti_close(runtime);
    return status == TUTTI_OK ? 0 : 1;
}
