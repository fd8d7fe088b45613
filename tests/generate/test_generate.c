/* A generator gives, piece by piece, the logits that the whole text gives; and draws from them. */
#include "tests/train/training.h"

#include "base/random.h"
#include "graph/network.h"
#include "models/models.h"
#include "tutti_finetune.h"
#include "tutti_generate.h"
#include "tutti_sequences.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#undef fail

enum { VOCABULARY = 37, LENGTH = 84, TEXTS = 2, WIDTH = 24, HEADS = 4, MANY = 2000 };
/* Sums in another order; measured 2e-6. A token out of place gives 1e-1. */
#define ROUNDING 5e-5

static int32_t ids[TEXTS * LENGTH];
static float wanted[TEXTS * LENGTH * VOCABULARY];

static void make_ids(void)
{
    for (int i = 0; i < TEXTS * LENGTH; i++) ids[i] = (int32_t)random_below(3, 0, (uint64_t)i, VOCABULARY);
}

/* ------------------------------------------------------------------------------------------------ networks ---- */

static tutti_tensor of_model(tutti_network *network, tutti_tensor input, const char *name, struct model_config *config)
{
    const struct model *model = model_find(name);
    config->vocabulary = VOCABULARY;
    config->positions = LENGTH;
    config->layers = 2;
    config->deviation = 0.3f;
    const struct model_facts facts = { .config = config, .length = LENGTH, .tokens_are_classes = true };
    return model->build_for(network, input, VOCABULARY, &facts);
}

static tutti_tensor transformer(tutti_network *network, tutti_tensor input, const char *name)
{
    struct model_config config = *model_find(name)->config;
    config.width = WIDTH;
    config.hidden = 2 * WIDTH;
    config.heads = HEADS;
    config.kv_heads = config.family == FAMILY_LLAMA ? 2 : HEADS;
    config.head_width = WIDTH / HEADS;
    config.window.size = 9;
    config.window.layers[1] = true;
    return of_model(network, input, name, &config);
}

static tutti_tensor gpt(tutti_network *network, tutti_tensor input)
{
    return transformer(network, input, "gpt");
}

static tutti_tensor gpt2(tutti_network *network, tutti_tensor input)
{
    return transformer(network, input, "gpt2");
}

static tutti_tensor llama(tutti_network *network, tutti_tensor input)
{
    return transformer(network, input, "llama");
}

static tutti_tensor recurrent(tutti_network *network, tutti_tensor input, const char *name)
{
    struct model_config config = *model_find(name)->config;
    config.width = WIDTH;
    config.hidden = WIDTH;
    return of_model(network, input, name, &config);
}

static tutti_tensor lstm(tutti_network *network, tutti_tensor input)
{
    return recurrent(network, input, "lstm");
}

static tutti_tensor gru(tutti_network *network, tutti_tensor input)
{
    return recurrent(network, input, "gru");
}

/* Attention with a mask that is a constant, as programs for PyTorch have it. */
static tutti_tensor by_hand(tutti_network *network, tutti_tensor input)
{
    static float lower[LENGTH * LENGTH];
    static const float far = -INFINITY;
    for (int i = 0; i < LENGTH * LENGTH; i++) lower[i] = i % LENGTH > i / LENGTH;
    tutti_tensor mask = tutti_constant(network, NULL, TUTTI_SHAPE(1, LENGTH, LENGTH), lower);
    mask = tutti_op(network, "prefix", &mask, 1, "axes=1,2");
    const tutti_tensor x = tutti_embedding(network, "embedding", input, VOCABULARY, WIDTH);
    tutti_tensor heads[3];
    for (int i = 0; i < 3; i++) {
        heads[i] = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .no_bias = true });
        heads[i] = tutti_reshape(network, heads[i], TUTTI_SHAPE(TUTTI_SEQUENCE, HEADS, WIDTH / HEADS));
        heads[i] = tutti_op(network, "transpose", &heads[i], 1, i == 1 ? "perm=1,2,0" : "perm=1,0,2");
    }
    tutti_tensor scores = tutti_matmul(network, NULL, heads[0], heads[1], false, false);
    const tutti_tensor three[] = { mask, tutti_constant(network, NULL, TUTTI_SHAPE(1), &far), scores };
    scores = tutti_softmax(network, tutti_op(network, "where", three, 3, NULL));
    tutti_tensor y = tutti_matmul(network, NULL, scores, heads[2], false, false);
    y = tutti_op(network, "transpose", &y, 1, "perm=1,0,2");
    y = tutti_add(network, x, tutti_reshape(network, y, TUTTI_SHAPE(TUTTI_SEQUENCE, WIDTH)));
    return tutti_dense(network, y, VOCABULARY, NULL);
}

static const struct {
    const char *name;
    tutti_tensor (*build)(tutti_network *network, tutti_tensor input);
} networks[] = { { "gpt", gpt }, { "gpt2", gpt2 }, { "llama", llama }, { "lstm", lstm }, { "gru", gru },
    { "by hand", by_hand } };
enum { NETWORKS = sizeof(networks) / sizeof(*networks) };

struct whole {
    tutti_network *network;
    tutti_tensor ids, logits;
    tutti_trainer *trainer;
};

static void open_whole(struct whole *whole, tutti_tensor (*build)(tutti_network *, tutti_tensor), bool adapters)
{
    const int64_t length = TUTTI_SEQUENCE;
    whole->network = tutti_network_new(session_runtime("0,1", false));
    whole->ids = tutti_input_typed(whole->network, "tokens", TUTTI_DTYPE_I32, &length, 1);
    whole->logits = build(whole->network, whole->ids);
    ck_assert_msg(tutti_network_status(whole->network) == TUTTI_OK, "%s", tutti_message(NULL));
    if (adapters) ASSERT_OK(tutti_lora(whole->network, "*attn*", &(tutti_lora_options) { .rank = 2 }));
    whole->trainer = tutti_compile(whole->network, whole->logits,
        &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = TEXTS, .sequence = LENGTH, .seed = 5 });
    ck_assert_msg(whole->trainer, "%s", tutti_message(NULL));
}

static void close_whole(struct whole *whole)
{
    tutti_trainer_free(whole->trainer);
    tutti_network_free(whole->network);
}

static void infer_whole(const struct whole *whole)
{
    const tutti_feed feed = { NULL, TUTTI_DTYPE_I32, ids, LENGTH };
    const tutti_fetch fetch = { whole->logits, TUTTI_DTYPE_F32, wanted };
    ASSERT_OK(tutti_infer(whole->trainer, &feed, 1, TEXTS, &fetch, 1));
}

static void compare(const float *found, int texts, int64_t position)
{
    double largest = 0;
    for (int i = 0; i < TEXTS * LENGTH * VOCABULARY; i++) largest = fmax(largest, fabs((double)wanted[i]));
    for (int text = 0; text < texts; text++)
        for (int i = 0; i < VOCABULARY; i++) {
            const double right = (double)wanted[(text * LENGTH + position) * VOCABULARY + i];
            ck_assert_double_eq_tol((double)found[text * VOCABULARY + i], right, ROUNDING * largest);
        }
}

/* Feeds the texts in pieces of these sizes, and then token by token. */
static void feed_pieces(tutti_generator *generator, int texts, const int64_t *sizes)
{
    static int32_t piece[TEXTS * LENGTH];
    float found[TEXTS * VOCABULARY];
    for (int64_t at = 0, count = 0; at < LENGTH; at += count) {
        count = *sizes ? *sizes++ : 1;
        for (int text = 0; text < texts; text++)
            memcpy(piece + text * count, ids + text * LENGTH + at, (size_t)count * sizeof(*piece));
        ASSERT_OK(tutti_generator_feed(generator, piece, texts, count, found));
        compare(found, texts, at + count - 1);
    }
    ck_assert_int_eq(tutti_generator_length(generator), LENGTH);
}

static void check_generator(tutti_generator *generator)
{
    ck_assert_msg(generator, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_generator_vocabulary(generator), VOCABULARY);
    feed_pieces(generator, TEXTS, (const int64_t[]) { 74, 3, 0 });
    ASSERT_OK(tutti_generator_reset(generator));
    feed_pieces(generator, 1, (const int64_t[]) { 9, 1, 60, 0 });
}

START_TEST(pieces_are_the_whole)
{
    struct whole whole;
    make_ids();
    open_whole(&whole, networks[_i].build, false);
    infer_whole(&whole);
    tutti_generator *generator = tutti_generator_new(whole.network, whole.ids, whole.logits,
        &(tutti_generator_options) {
            .length = LENGTH, .texts = TEXTS, .training = &(tutti_training) { .parameters_of = whole.trainer } });
    check_generator(generator);
    tutti_generator_free(generator);
    close_whole(&whole);
}
END_TEST

/* Adapters are layers as others; what the owner changes, the generator reads. */
START_TEST(parameters_are_the_newest)
{
    struct whole whole;
    static float up[3 * WIDTH * 2];
    const char *name = "transformer.h.0.attn.c_attn.lora_B.weight";
    make_ids();
    open_whole(&whole, gpt, true);
    tutti_generator *generator = tutti_generator_new(whole.network, whole.ids, whole.logits,
        &(tutti_generator_options) {
            .length = LENGTH, .texts = TEXTS, .training = &(tutti_training) { .parameters_of = whole.trainer } });
    infer_whole(&whole);
    check_generator(generator);
    for (int i = 0; i < 3 * WIDTH * 2; i++) up[i] = (float)(i % 7) / 7;
    ASSERT_OK(tutti_set_parameter(whole.trainer, name, up, 3 * WIDTH * 2));
    infer_whole(&whole);
    ASSERT_OK(tutti_generator_reset(generator));
    check_generator(generator);
    tutti_generator_free(generator);
    close_whole(&whole);
}
END_TEST

/* A file of weights gives a generator of its own the same parameters. */
START_TEST(weights_are_loaded)
{
    struct whole whole;
    make_ids();
    open_whole(&whole, llama, false);
    infer_whole(&whole);
    ASSERT_OK(tutti_save_weights(whole.trainer, "generate.safetensors"));
    tutti_generator *generator = tutti_generator_new(
        whole.network, whole.ids, whole.logits, &(tutti_generator_options) { .length = LENGTH, .texts = TEXTS });
    close_whole(&whole);
    ASSERT_OK(tutti_load_weights(tutti_generator_trainer(generator), "generate.safetensors"));
    check_generator(generator);
    tutti_generator_free(generator);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- draws ---- */

START_TEST(tokens_are_drawn)
{
    const float logits[] = { 1, 3, -INFINITY, 2, NAN, 3 };
    int counts[6] = { 0 };
    ck_assert_int_eq(tutti_sample(logits, 6, NULL, 0), 1);
    tutti_sampling sampling = { .temperature = 1, .seed = 4 };
    enum { DRAWS = 20000 };
    for (int i = 0; i < DRAWS; i++) counts[tutti_sample(logits, 6, &sampling, (uint64_t)i)]++;
    const double sum = exp(1) + 2 * exp(3) + exp(2);
    ck_assert_int_eq(counts[2] + counts[4], 0);
    ck_assert_double_eq_tol(counts[0], DRAWS * exp(1) / sum, 150);
    ck_assert_double_eq_tol(counts[3], DRAWS * exp(2) / sum, 250);
    ck_assert_double_eq_tol(counts[5], DRAWS * exp(3) / sum, 350);
    for (int i = 0; i < 100; i++) {
        const uint64_t draw = (uint64_t)i;
        sampling = (tutti_sampling) { .temperature = 9, .top_k = 2 };
        ck_assert(tutti_sample(logits, 6, &sampling, draw) == 1 || tutti_sample(logits, 6, &sampling, draw) == 5);
        sampling = (tutti_sampling) { .temperature = 1, .top_p = 0.2f };
        ck_assert_int_eq(tutti_sample(logits, 6, &sampling, draw), 1);
        sampling = (tutti_sampling) { .temperature = 1e-3f };
        ck_assert_int_ne(tutti_sample(logits, 6, &sampling, draw), 3);
    }
    ck_assert_int_lt(tutti_sample(logits, 6, &(tutti_sampling) { .temperature = -1 }, 0), 0);
    ck_assert_int_lt(tutti_sample(logits, 6, &(tutti_sampling) { .top_p = 1.5f }, 0), 0);
    ck_assert_int_lt(tutti_sample(logits, 6, &(tutti_sampling) { .top_k = -1 }, 0), 0);
    ck_assert_int_lt(tutti_sample(logits + 4, 1, NULL, 0), 0);
    ck_assert_int_eq(tutti_last_status(), TUTTI_NOT_FINITE);
}
END_TEST

struct ranked {
    float logit;
    int32_t token;
};

static int likelier_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->token - y->token;
}

/* The token that a number from 0 to 1 draws of sorted logits, by plain sums. *margin: how far the sums are from drawing
 * another one. */
static int32_t drawn(
    const struct ranked *sorted, int count, const tutti_sampling *sampling, double number, double *margin)
{
    double weights[MANY], sum = 0, part = 0;
    int kept = sampling->top_k > 0 && sampling->top_k < count ? (int)sampling->top_k : count;
    for (int i = 0; i < kept; i++) {
        weights[i] = exp(((double)sorted[i].logit - (double)sorted[0].logit) / (double)sampling->temperature);
        sum += weights[i];
    }
    *margin = 1;
    for (int i = 0; i < kept && sampling->top_p > 0; i++) {
        part += weights[i];
        *margin = fmin(*margin, fabs(part / sum - (double)sampling->top_p));
        if (part < (double)sampling->top_p * sum) continue;
        kept = i + 1;
        sum = part;
    }
    part = 0;
    for (int i = 0; i < kept; i++) {
        part += weights[i];
        *margin = fmin(*margin, fabs(part / sum - number));
        if (part > number * sum) return sorted[i].token;
    }
    return -1;
}

/* Many logits, a third of them equal, in three orders, against draws from sorted ones. */
START_TEST(draws_are_those_of_sorted_logits)
{
    const tutti_sampling samplings[] = { { .temperature = 0.8f }, { .temperature = 3, .top_k = 40 },
        { .temperature = 1, .top_p = 0.9f }, { .temperature = 2, .top_k = 700, .top_p = 0.5f }, { .temperature = 1e3f },
        { .temperature = 1, .top_k = 1 }, { .temperature = 1, .top_k = MANY + 5 } };
    float logits[MANY];
    struct ranked sorted[MANY];
    int compared = 0;
    random_normals(5, 1, 0, MANY, logits);
    for (int i = 0; i < MANY; i += 3) logits[i] = 0.25f;
    for (int i = 0; i < MANY; i++) sorted[i] = (struct ranked) { logits[i], i };
    qsort(sorted, MANY, sizeof *sorted, likelier_first);
    for (int order = 0; order < 3; order++) {
        for (int i = 0; order > 0 && i < MANY; i++) logits[i] = sorted[order == 1 ? i : MANY - 1 - i].logit;
        for (int i = 0; i < MANY; i++) sorted[i] = (struct ranked) { logits[i], i };
        qsort(sorted, MANY, sizeof *sorted, likelier_first);
        for (size_t s = 0; s < sizeof samplings / sizeof *samplings; s++)
            for (uint64_t draw = 0; draw < 100; draw++) {
                double margin = 0;
                const double number = (double)random_uniform(samplings[s].seed, RANDOM_SAMPLING, draw);
                const int32_t wanted_token = drawn(sorted, MANY, &samplings[s], number, &margin);
                if (margin < 1e-12) continue;
                ck_assert_int_eq(tutti_sample(logits, MANY, &samplings[s], draw), wanted_token);
                compared++;
            }
    }
    ck_assert_int_gt(compared, 2000);
}
END_TEST

static int count_calls(void *user, int32_t token)
{
    (void)token;
    return ++*(int *)user == 5;
}

START_TEST(texts_are_generated)
{
    struct whole whole;
    int32_t made[LENGTH], again[LENGTH];
    int64_t count = 0;
    int calls = 0;
    make_ids();
    open_whole(&whole, gpt, false);
    tutti_generator *generator = tutti_generator_new(whole.network, whole.ids, whole.logits,
        &(tutti_generator_options) {
            .length = LENGTH, .training = &(tutti_training) { .parameters_of = whole.trainer } });
    tutti_generation generation = { .prompt = ids, .prompt_count = 11 };
    ASSERT_OK(tutti_generate(generator, &generation, made, &count));
    ck_assert_int_eq(count, LENGTH - 11 + 1);
    /* Each token is the likeliest after the whole text before it. */
    memcpy(ids + 11, made, (LENGTH - 11) * sizeof(*made));
    infer_whole(&whole);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(made[i], tutti_sample(wanted + (10 + i) * VOCABULARY, VOCABULARY, NULL, 0));
    generation.sampling = (tutti_sampling) { .temperature = 1, .top_k = 10, .seed = 7 };
    generation.tokens = 20;
    ASSERT_OK(tutti_generate(generator, &generation, made, &count));
    ck_assert_int_eq(count, 20);
    generation.token = count_calls;
    generation.user = &calls;
    ASSERT_OK(tutti_generate(generator, &generation, again, &count));
    ck_assert_int_eq(count, 5);
    ck_assert_mem_eq(again, made, 5 * sizeof(*made));
    generation = (tutti_generation) { .prompt = ids, .prompt_count = 11, .ends = made, .end_count = 1 };
    generation.sampling = (tutti_sampling) { .temperature = 1, .top_k = 10, .seed = 7 };
    ASSERT_OK(tutti_generate(generator, &generation, NULL, &count));
    ck_assert_int_eq(count, 0);
    generation.tokens = LENGTH;
    fails_with(tutti_generate(generator, &generation, NULL, NULL), TUTTI_INVALID, "more than the generator");
    generation.prompt_count = 0;
    fails_with(tutti_generate(generator, &generation, NULL, NULL), TUTTI_INVALID, "no tokens");
    tutti_generator_free(generator);
    close_whole(&whole);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ refusals ---- */

static tutti_tensor both_directions(tutti_network *network, tutti_tensor input)
{
    const tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, WIDTH);
    const tutti_recurrent_options options = { .name = "both", .bidirectional = true };
    return tutti_dense(network, tutti_lstm(network, x, WIDTH, &options), VOCABULARY, NULL);
}

static tutti_tensor with_sum(tutti_network *network, tutti_tensor input)
{
    const tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, VOCABULARY);
    return tutti_add(network, x, tutti_op(network, "reduce_sum", &x, 1, "axes=0 keepdims=1"));
}

static tutti_tensor with_cumsum(tutti_network *network, tutti_tensor input)
{
    const tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, VOCABULARY);
    return tutti_op(network, "cumsum", &x, 1, "axis=0");
}

static tutti_tensor softmax_of_tokens(tutti_network *network, tutti_tensor input)
{
    tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, VOCABULARY);
    x = tutti_op(network, "transpose", &x, 1, "perm=1,0");
    x = tutti_softmax(network, x);
    return tutti_op(network, "transpose", &x, 1, "perm=1,0");
}

/* Each token sees later ones: a wrong number, not a refusal, without the check. */
static tutti_tensor not_causal(tutti_network *network, tutti_tensor input)
{
    tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, WIDTH);
    x = tutti_attention(network, x, x, x, &(tutti_attention_options) { .name = "all", .heads = HEADS });
    return tutti_dense(network, x, VOCABULARY, NULL);
}

/* Probabilities whose sum counts later tokens, which are left out afterwards. */
static tutti_tensor masked_late(tutti_network *network, tutti_tensor input)
{
    static float lower[LENGTH * LENGTH];
    for (int i = 0; i < LENGTH * LENGTH; i++) lower[i] = i % LENGTH <= i / LENGTH;
    tutti_tensor mask = tutti_constant(network, NULL, TUTTI_SHAPE(LENGTH, LENGTH), lower);
    mask = tutti_op(network, "prefix", &mask, 1, "axes=0,1");
    const tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, VOCABULARY);
    const tutti_tensor scores = tutti_matmul(network, NULL, x, x, false, true);
    const tutti_tensor both[] = { tutti_softmax(network, scores), mask };
    return tutti_matmul(network, NULL, tutti_op(network, "mul", both, 2, NULL), x, false, false);
}

/* What is added to a token depends on how many follow it. */
static tutti_tensor counted_from_the_end(tutti_network *network, tutti_tensor input)
{
    const tutti_tensor x = tutti_embedding(network, NULL, input, VOCABULARY, VOCABULARY);
    static float ones[LENGTH];
    for (int i = 0; i < LENGTH; i++) ones[i] = 1;
    tutti_tensor left = tutti_constant(network, NULL, TUTTI_SHAPE(LENGTH, 1), ones);
    left = tutti_op(network, "prefix", &left, 1, "axes=0");
    left = tutti_op(network, "cumsum", &left, 1, "axis=0 reverse=1");
    return tutti_add(network, x, left);
}

static const struct {
    tutti_tensor (*build)(tutti_network *network, tutti_tensor input);
    const char *message;
} refused[] = { { both_directions, "begins with the last token" }, { with_sum, "all tokens of a text" },
    { with_cumsum, "cumsum" }, { softmax_of_tokens, "several tokens" }, { not_causal, "later tokens" },
    { masked_late, "later tokens" }, { counted_from_the_end, "depends on the length of the text" } };
enum { REFUSED = sizeof(refused) / sizeof(*refused) };

START_TEST(other_networks_are_refused)
{
    struct whole whole;
    open_whole(&whole, refused[_i].build, false);
    tutti_generator *generator = tutti_generator_new(whole.network, whole.ids, whole.logits,
        &(tutti_generator_options) {
            .length = LENGTH, .training = &(tutti_training) { .parameters_of = whole.trainer } });
    ck_assert_ptr_null(generator);
    fails_with(tutti_last_status(), TUTTI_UNSUPPORTED, refused[_i].message);
    close_whole(&whole);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    struct whole whole;
    const int32_t wrong[] = { 3, VOCABULARY };
    make_ids();
    open_whole(&whole, lstm, false);
    ck_assert_ptr_null(tutti_generator_new(NULL, whole.ids, whole.logits, NULL));
    ck_assert_ptr_null(tutti_generator_new(whole.network, whole.logits, whole.logits, NULL));
    fails_with(tutti_last_status(), TUTTI_INVALID, "are an input of int32");
    ck_assert_ptr_null(tutti_generator_new(whole.network, whole.ids, whole.ids, NULL));
    fails_with(tutti_last_status(), TUTTI_SHAPE, "vocabulary");
    tutti_generator *generator = tutti_generator_new(whole.network, whole.ids, whole.logits,
        &(tutti_generator_options) {
            .length = 4, .texts = 2, .training = &(tutti_training) { .parameters_of = whole.trainer } });
    ck_assert_ptr_nonnull(generator);
    fails_with(tutti_generator_feed(NULL, ids, 1, 1, NULL), TUTTI_INVALID, "NULL");
    fails_with(tutti_generator_feed(generator, NULL, 1, 1, NULL), TUTTI_INVALID, "no tokens");
    fails_with(tutti_generator_feed(generator, wrong, 1, 2, NULL), TUTTI_INVALID, "token 1 is 37");
    fails_with(tutti_generator_feed(generator, ids, 3, 1, NULL), TUTTI_INVALID, "at most 2");
    fails_with(tutti_generator_feed(generator, ids, 1, 5, NULL), TUTTI_INVALID, "made for, 4");
    ASSERT_OK(tutti_generator_feed(generator, ids, 1, 3, NULL));
    fails_with(tutti_generator_feed(generator, ids, 2, 1, NULL), TUTTI_INVALID, "the present ones are 1");
    fails_with(tutti_generator_feed(generator, ids, 1, 2, NULL), TUTTI_INVALID, "2 tokens after 3");
    fails_with(tutti_generator_reset(NULL), TUTTI_INVALID, "NULL");
    tutti_generator_free(generator);
    tutti_generator_free(NULL);
    close_whole(&whole);
}
END_TEST

static Suite *suite_generate(void)
{
    Suite *suite = suite_create("generate");
    TCase *cases = tcase_create("generate");
    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, pieces_are_the_whole, 0, NETWORKS);
    tcase_add_test(cases, parameters_are_the_newest);
    tcase_add_test(cases, weights_are_loaded);
    tcase_add_test(cases, tokens_are_drawn);
    tcase_add_test(cases, draws_are_those_of_sorted_logits);
    tcase_add_test(cases, texts_are_generated);
    tcase_add_loop_test(cases, other_networks_are_refused, 0, REFUSED);
    tcase_add_test(cases, wrong_calls_are_refused);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(suite_generate());
    srunner_run_all(runner, CK_ENV);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures > 0;
}
