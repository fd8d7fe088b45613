/* nanoGPT's network (github.com/karpathy/nanoGPT), built by hand and trained on the bytes of a text. Then it writes
 * one:
 *
 *   gpt FILE.txt [epochs layers heads width length batch]
 *
 * Without numbers: 15 epochs, 6 layers of 6 heads, width 384, 12 samples of 256 bytes. The last tenth of the text is
 * held out. The text that it writes is as long as a sample. */
#include <tutti.h>
#include <tutti_data.h>
#include <tutti_finetune.h>
#include <tutti_generate.h>
#include <tutti_sequences.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCABULARY = 256 }; /* tokens are bytes */
static const float dropout = 0.2f, temperature = 0.8f;

struct sizes {
    int64_t epochs, layers, heads, width, length, batch;
};

/* ---------------------------------------------------------------------------------------------------- network ---- */

static tutti_tensor table(tutti_network *network, const char *name, int64_t rows, int64_t width)
{
    tutti_parameter_options options = { sizeof(options), TUTTI_INIT_NORMAL, 0.02f };
    return tutti_parameter(network, name, TUTTI_SHAPE(rows, width), &options);
}

static tutti_tensor dense(tutti_network *network, tutti_tensor x, const char *name, int64_t units, float deviation)
{
    tutti_dense_options options = { sizeof(options), name, true, TUTTI_INIT_NORMAL };
    options.init_scale = deviation;
    return tutti_dense(network, x, units, &options);
}

static tutti_tensor columns(tutti_network *network, tutti_tensor x, int64_t first, int64_t count)
{
    char text[96];
    snprintf(text, sizeof text, "axes=-1 starts=%lld ends=%lld", (long long)first, (long long)(first + count));
    return tutti_op(network, "slice", &x, 1, text);
}

static tutti_tensor block(tutti_network *network, tutti_tensor x, const struct sizes *sizes)
{
    const int64_t width = sizes->width;
    const float last = 0.02f / sqrtf(2 * (float)sizes->layers); /* a sum of so many results begins like one */
    tutti_attention_options options = TUTTI_OPTIONS(tutti_attention_options);
    options.heads = sizes->heads;
    options.causal = true;
    options.dropout = dropout;
    tutti_tensor y = dense(network, tutti_layer_norm(network, "ln_1", x, 1e-5f), "c_attn", 3 * width, 0.02f);
    y = tutti_attention(network, columns(network, y, 0, width), columns(network, y, width, width),
        columns(network, y, 2 * width, width), &options);
    x = tutti_add(network, x, tutti_dropout(network, dense(network, y, "attn.c_proj", width, last), dropout));
    y = dense(network, tutti_layer_norm(network, "ln_2", x, 1e-5f), "c_fc", 4 * width, 0.02f);
    y = dense(network, tutti_op(network, "gelu", &y, 1, NULL), "mlp.c_proj", width, last);
    return tutti_add(network, x, tutti_dropout(network, y, dropout));
}

/* Returns the logits of each next token, [length, VOCABULARY]. Their weights are those of the embedding. No call is
 * checked: the first error stays in the network, and tutti_compile() reports it. */
static tutti_tensor build(tutti_network *network, const struct sizes *sizes)
{
    const int64_t shape[] = { TUTTI_SEQUENCE };
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, shape, 1);
    const tutti_tensor tokens = table(network, "wte.weight", VOCABULARY, sizes->width),
                       positions = table(network, "wpe.weight", sizes->length, sizes->width);
    const tutti_tensor both[] = { ids, tokens };
    tutti_tensor x = tutti_add(
        network, tutti_op(network, "embedding", both, 2, NULL), tutti_op(network, "prefix", &positions, 1, "axes=0"));
    x = tutti_dropout(network, x, dropout);
    for (int64_t i = 0; i < sizes->layers; i++) {
        char scope[32];
        snprintf(scope, sizeof scope, "h.%lld", (long long)i);
        tutti_scope_push(network, scope);
        x = block(network, x, sizes);
        tutti_scope_pop(network);
    }
    tutti_dense_options tied = { sizeof(tied), "logits", true };
    tied.weight = &tokens;
    return tutti_dense(network, tutti_layer_norm(network, "ln_f", x, 1e-5f), VOCABULARY, &tied);
}

/* --------------------------------------------------------------------------------------------------- training ---- */

static int show(void *user, const tutti_progress *now)
{
    (void)user;
    if (now->end_of_epoch)
        printf("epoch %d  loss %.4f  held out %.4f\n", (int)now->epoch, now->train.loss, now->test.loss);
    else if (now->step % 100 == 0)
        printf("  step %d of %d  loss %.4f\n", (int)now->step, (int)now->steps_in_epoch, now->train.loss);
    fflush(stdout);
    return 0;
}

/* AdamW decays matrices alone. The rate rises for 100 steps, then falls along half a cosine. */
static tutti_trainer *compile(tutti_network *network, tutti_tensor logits, const struct sizes *sizes)
{
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    tutti_loss_options of_loss = TUTTI_OPTIONS(tutti_loss_options);
    tutti_group_options none = TUTTI_OPTIONS(tutti_group_options);
    const int64_t shape[] = { TUTTI_SEQUENCE };
    none.has_weight_decay = true;
    of_loss.class_axis = -1;
    const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, shape, 1);
    const tutti_tensor loss = tutti_cross_entropy(network, logits, targets, &of_loss);
    training.losses = &loss;
    training.loss_count = 1;
    training.optimizer = TUTTI_ADAMW;
    training.learning_rate = 1e-3f;
    training.beta2 = 0.99f;
    training.weight_decay = 0.1f;
    training.clip_norm = 1;
    training.batch = sizes->batch;
    training.sequence = sizes->length;
    training.seed = 1;
    return tutti_group(network, "*ln_*", &none) == TUTTI_OK ? tutti_compile(network, logits, &training) : NULL;
}

static tutti_status train(tutti_trainer *trainer, tutti_data *data, const struct sizes *sizes)
{
    tutti_schedule schedule = TUTTI_OPTIONS(tutti_schedule);
    tutti_fitting fitting = TUTTI_OPTIONS(tutti_fitting);
    schedule.kind = TUTTI_SCHEDULE_COSINE;
    schedule.warmup_steps = 100;
    schedule.lowest = 1e-4f;
    fitting.epochs = sizes->epochs;
    fitting.schedule = &schedule;
    fitting.test = tutti_data_source(data, TUTTI_DATA_VAL);
    fitting.progress = show;
    return tutti_fit_source(trainer, tutti_data_source(data, TUTTI_DATA_TRAIN), &fitting);
}

/* --------------------------------------------------------------------------------------------------- sampling ---- */

static int write_byte(void *user, int32_t token)
{
    (void)user;
    return putchar(token) == EOF;
}

/* Writes a text of the training's length, which follows an end of line. Tokens are drawn from logits that are divided
 * by the temperature. */
static tutti_status write_text(
    tutti_trainer *trainer, tutti_network *network, tutti_tensor ids, tutti_tensor logits, int64_t length)
{
    const int32_t prompt = '\n';
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    tutti_generator_options options = TUTTI_OPTIONS(tutti_generator_options);
    tutti_generation generation = TUTTI_OPTIONS(tutti_generation);
    training.parameters_of = trainer;
    options.length = length;
    options.training = &training;
    generation.prompt = &prompt;
    generation.prompt_count = 1;
    generation.sampling.temperature = temperature;
    generation.token = write_byte;
    tutti_generator *generator = tutti_generator_new(network, ids, logits, &options);
    const tutti_status status = generator ? tutti_generate(generator, &generation, NULL, NULL) : tutti_last_status();
    putchar('\n');
    tutti_generator_free(generator);
    return status;
}

int main(int count, char **arguments)
{
    int64_t numbers[] = { 15, 6, 6, 384, 256, 12 };
    for (int i = 2; i < count && i < 8; i++) numbers[i - 2] = atoi(arguments[i]);
    const struct sizes sizes = { numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5] };
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    options.length = sizes.length;
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_data *data = runtime && count > 1 ? tutti_data_open(arguments[1], &options) : NULL;
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor logits = build(network, &sizes);
    tutti_trainer *trainer = data ? compile(network, logits, &sizes) : NULL;
    tutti_tensor ids = { -1 };
    const bool good = trainer && tutti_network_input(network, 0, &ids) == TUTTI_OK &&
        train(trainer, data, &sizes) == TUTTI_OK && write_text(trainer, network, ids, logits, sizes.length) == TUTTI_OK;
    if (!good)
        fprintf(stderr, "gpt: %s\n",
            count > 1 ? tutti_message(NULL) : "gpt FILE.txt [epochs layers heads width length batch]");
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_data_free(data);
    tutti_close(runtime);
    return good ? 0 : 1;
}
