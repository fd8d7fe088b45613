/* A transformer whose sequences have another length in each step learns what networks of fixed lengths learn. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "parallel/faults.h"
#include "parallel/rebalance.h"
#include "tutti_sequences.h"

#include <stdio.h>
#include <time.h>

enum { LONGEST = 12, WORDS = 11, WIDTH = 8, HEADS = 2, TEXTS = 6, STEPS = 8 };
#define ROUNDING 2e-5

static const int64_t lengths[STEPS] = { 5, 12, 1, 8, 5, 12, 3, 8 };

/* Texts of one step. */
struct texts {
    int32_t words[TEXTS * LONGEST], labels[TEXTS * LONGEST];
    int64_t wide[TEXTS * LONGEST];
};
static struct texts texts[2];

/* Some labels are excluded. */
static struct texts *make_texts(int step, int64_t length)
{
    struct texts *made = &texts[step % 2];
    for (int64_t i = 0; i < TEXTS * length; i++) {
        const int word = (int)random_below(5, (uint32_t)step, (uint64_t)i, WORDS);
        made->wide[i] = made->words[i] = word;
        made->labels[i] = word % 4 ? (int32_t)((word + i % length) % WORDS) : -1;
    }
    return made;
}

/* The numbers of words are int64 in every third step. */
static void feed(int step, int64_t length, tutti_feed feeds[2])
{
    struct texts *t = make_texts(step, length);
    const bool wide = step % 3 == 2;
    feeds[0] = (tutti_feed) { "labels", TUTTI_DTYPE_I32, t->labels };
    feeds[1] = (tutti_feed) { "words", wide ? TUTTI_DTYPE_I64 : TUTTI_DTYPE_I32, t->words, length };
    if (wide) feeds[1].data = t->wide;
}

/* ----------------------------------------------------------------------------------------------- the network ---- */

static tutti_tensor heads(tutti_network *network, tutti_tensor x, int64_t length, const char *name)
{
    x = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = name });
    x = tutti_reshape(network, x, TUTTI_SHAPE(length, HEADS, WIDTH / HEADS));
    return tutti_op(network, "transpose", &x, 1, "perm=1,0,2");
}

/* The first `length` elements along both axes, or the first one. */
static tutti_tensor cut(tutti_network *network, tutti_tensor x, int64_t length, bool both)
{
    char text[64];
    if (length == TUTTI_SEQUENCE) return tutti_op(network, "prefix", &x, 1, both ? NULL : "axes=0");
    snprintf(text, sizeof(text), both ? "starts=0,0 ends=%d,%d" : "starts=0 ends=%d", (int)length, (int)length);
    return tutti_op(network, "slice", &x, 1, text);
}

/* Added to what softmax reads: words do not see those after them. */
static tutti_tensor causal_mask(tutti_network *network, int64_t length)
{
    float mask[LONGEST * LONGEST];
    for (int i = 0; i < LONGEST * LONGEST; i++) mask[i] = i % LONGEST > i / LONGEST ? -1e9f : 0;
    return cut(network, tutti_constant(network, "mask", TUTTI_SHAPE(LONGEST, LONGEST), mask), length, true);
}

static tutti_tensor attention(tutti_network *network, tutti_tensor x, int64_t length)
{
    const tutti_tensor query = heads(network, x, length, "query"), key = heads(network, x, length, "key"),
                       value = heads(network, x, length, "value");
    const tutti_tensor scores =
        tutti_add(network, tutti_matmul(network, NULL, query, key, false, true), causal_mask(network, length));
    x = tutti_matmul(network, NULL, tutti_softmax(network, scores), value, false, false);
    x = tutti_op(network, "transpose", &x, 1, "perm=1,0,2");
    return tutti_dense(network, tutti_reshape(network, x, TUTTI_SHAPE(-1, WIDTH)), WIDTH,
        &(tutti_dense_options) { .name = "project" });
}

struct model {
    struct session session;
    tutti_tensor logits, loss;
};

static void build(struct model *model, int64_t length)
{
    tutti_network *network = model->session.network = tutti_network_new(model->session.runtime);
    const tutti_tensor words = tutti_input_typed(network, "words", TUTTI_DTYPE_I32, &length, 1),
                       answers = tutti_input_typed(network, "labels", TUTTI_DTYPE_I32, &length, 1);
    const tutti_tensor positions = tutti_parameter(network, "positions", TUTTI_SHAPE(LONGEST, WIDTH),
        &(tutti_parameter_options) { .init = TUTTI_INIT_NORMAL, .init_scale = 1 });
    tutti_tensor x = tutti_embedding(network, "words", words, WORDS, WIDTH);
    x = tutti_add(network, x, cut(network, positions, length, false));
    x = tutti_add(network, x, attention(network, tutti_layer_norm(network, "norm", x, 0), length));
    const tutti_tensor mean = tutti_op(network, "reduce_mean", &x, 1, "axes=0");
    x = tutti_tanh(network, tutti_add(network, x, mean));
    model->logits = tutti_dense(network, x, WORDS, &(tutti_dense_options) { .name = "logits" });
    model->loss = tutti_cross_entropy(network, model->logits, answers, &(tutti_loss_options) { .class_axis = -1 });
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
}

/* Without momentum, so that the parameters are all that a step depends on. */
static void set_training(tutti_training *training, const struct model *model, int64_t length)
{
    training->batch = TEXTS;
    training->learning_rate = 0.2f;
    training->seed = 3;
    training->losses = &model->loss;
    training->loss_count = 1;
    training->fetch_in_training = true;
    if (length == TUTTI_SEQUENCE) training->sequence = LONGEST;
}

static void compile(struct model *model, const struct way *way, int64_t length)
{
    tutti_training training = way->training;
    set_training(&training, model, length);
    model->session.runtime = session_runtime(way->devices, way->apart);
    build(model, length);
    model->session.trainer = tutti_compile(model->session.network, model->logits, &training);
    ck_assert_msg(model->session.trainer, "%s", tutti_message(NULL));
}

static void copy_parameters(const struct model *from, const struct model *to)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(from->session.network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        float values[WORDS * LONGEST * WIDTH];
        const int64_t count = shape_elements(&shape);
        ASSERT_OK(tutti_get_parameter(from->session.trainer, name, values, count));
        ASSERT_OK(tutti_set_parameter(to->session.trainer, name, values, count));
    }
}

static void close_fixed(struct model *fixed)
{
    for (int i = 0; i <= LONGEST; i++)
        if (fixed[i].session.trainer) session_close(&fixed[i].session);
}

/* The model of this length, with the parameters of the other one. */
static struct model *fixed_like(struct model *fixed, const struct model *other, int64_t length)
{
    struct model *model = &fixed[length];
    if (!model->session.trainer) compile(model, &training_ways[0], length);
    copy_parameters(other, model);
    return model;
}

/* ----------------------------------------------------------------------------------------------------- steps ---- */

static void same_floats(const float *a, const float *b, int64_t count, bool exact)
{
    if (exact) ck_assert_mem_eq(a, b, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) ck_assert_float_eq_tol(a[i], b[i], 1e-4f);
}

/* Each step's samples are announced before, of another length. One device does the very same as with fixed lengths. */
START_TEST(varied_learns_as_fixed)
{
    const bool exact = _i == 0;
    struct model varied = { 0 }, fixed[LONGEST + 1] = { 0 };
    compile(&varied, &training_ways[_i], TUTTI_SEQUENCE);
    for (int step = 0; step < STEPS; step++) {
        const int64_t length = lengths[step];
        tutti_feed now[2], next[2];
        tutti_metrics a, b;
        float left[TEXTS * LONGEST * WORDS], right[TEXTS * LONGEST * WORDS];
        struct model *like = fixed_like(fixed, &varied, length);
        feed(step, length, now);
        feed(step + 1, lengths[(step + 1) % STEPS], next);
        ASSERT_OK(tutti_train_prefetch(varied.session.trainer, next, 2, TEXTS));
        ASSERT_OK(tutti_train_fetch(varied.session.trainer, now, 2, TEXTS, FETCH_ONE(varied.logits, left), &a));
        now[1].length = 0;
        ASSERT_OK(tutti_train_fetch(like->session.trainer, now, 2, TEXTS, FETCH_ONE(like->logits, right), &b));
        ck_assert_double_eq_tol(a.loss, b.loss, 1e-5);
        ck_assert_double_eq_tol(a.accuracy, b.accuracy, 1e-6);
        same_floats(left, right, TEXTS * length * WORDS, exact);
        if (exact) same_bytes(&varied.session, &like->session);
        close_to(&varied.session, &like->session, ROUNDING);
    }
    close_fixed(fixed);
    session_close(&varied.session);
}
END_TEST

/* Evaluation and inference of any number of samples. */
START_TEST(forward_of_any_length)
{
    struct model varied = { 0 }, fixed[LONGEST + 1] = { 0 };
    compile(&varied, &training_ways[_i], TUTTI_SEQUENCE);
    for (int step = 0; step < STEPS; step++) {
        const int64_t length = lengths[step], samples = 1 + step % TEXTS;
        tutti_feed feeds[2];
        tutti_metrics a, b;
        float left[TEXTS * LONGEST * WORDS], right[TEXTS * LONGEST * WORDS];
        struct model *like = fixed_like(fixed, &varied, length);
        feed(step, length, feeds);
        ASSERT_OK(tutti_evaluate(varied.session.trainer, feeds, 2, samples, &a));
        ASSERT_OK(tutti_infer(varied.session.trainer, feeds + 1, 1, samples, FETCH_ONE(varied.logits, left)));
        feeds[1].length = 0;
        ASSERT_OK(tutti_evaluate(like->session.trainer, feeds, 2, samples, &b));
        ASSERT_OK(tutti_infer(like->session.trainer, feeds + 1, 1, samples, FETCH_ONE(like->logits, right)));
        ck_assert_double_eq_tol(a.loss, b.loss, 1e-5);
        same_floats(left, right, samples * length * WORDS, _i == 0);
    }
    close_fixed(fixed);
    session_close(&varied.session);
}
END_TEST

static void next_step(struct model *model, int *step)
{
    tutti_feed feeds[2];
    feed(*step, lengths[*step % STEPS], feeds);
    ASSERT_OK(tutti_train_step(model->session.trainer, feeds, 2, TEXTS, NULL));
    ++*step;
}

/* A device that trains alone is lost: the other one replays its steps, each with its own length. */
START_TEST(lost_steps_are_replayed)
{
    struct model one = { 0 }, two = { 0 };
    int step = 0;
    compile(&one, &training_ways[0], TUTTI_SEQUENCE);
    compile(&two, &training_ways[4], TUTTI_SEQUENCE);
    tutti_trainer *trainer = two.session.trainer;
    for (int tries = 0; trainer->balance.parts[0] != TEXTS; tries++) {
        ck_assert_int_lt(tries, 100);
        trainer->balance.wanted[0] = TEXTS;
        trainer->balance.wanted[1] = 0;
        rebalance_start(trainer);
        while (!background_is_done(&trainer->replicas[0])) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        next_step(&two, &step);
    }
    trainer->balance.steps = 0; /* no other division meanwhile */
    for (int i = 0; i < 5; i++) next_step(&two, &step);
    ck_assert_ptr_eq(parameters_holder(trainer->store), &trainer->replicas[0]);
    ck_assert_int_eq(trainer_lose(trainer, &trainer->replicas[0], TUTTI_DEVICE), TUTTI_OK);
    for (int i = 0; i < 3; i++) next_step(&two, &step);
    for (int i = 0; i < step;) next_step(&one, &i);
    close_to(&one.session, &two.session, ROUNDING);
    session_close(&one.session);
    session_close(&two.session);
}
END_TEST

/* ------------------------------------------------------------------------------------------- masks by position ---- */

static const struct masks {
    tutti_attention_options options;
    bool counts; /* key_counts */
} all_masks[] = {
    { { .heads = HEADS, .causal = true }, false },
    { { .heads = HEADS, .window_before = 3, .window_after = 2 }, false },
    { { .heads = HEADS }, true },
    { { .heads = HEADS, .causal = true }, true },
    { { .heads = HEADS, .window_before = 2, .window_after = 4, .dropout = 0.25f }, true },
};
enum { MASKS = sizeof(all_masks) / sizeof(*all_masks) };

/* x [length, WIDTH], and the number of keys of each sample. */
static void compile_masked(struct model *model, const struct way *way, int64_t length, const struct masks *masks)
{
    tutti_training training = way->training;
    tutti_attention_options options = masks->options;
    model->session.runtime = session_runtime(way->devices, way->apart);
    tutti_network *network = model->session.network = tutti_network_new(model->session.runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(length, WIDTH)),
                       counts = tutti_input_typed(network, "counts", TUTTI_DTYPE_I32, NULL, 0);
    const tutti_tensor q = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "q" }),
                       v = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "v" });
    if (masks->counts) options.key_counts = &counts;
    model->logits = tutti_attention(network, q, x, v, &options);
    const tutti_tensor shifted[] = { model->logits, x };
    const tutti_tensor difference = tutti_op(network, "sub", shifted, 2, NULL);
    model->loss =
        tutti_mean(network, tutti_op(network, "mul", (tutti_tensor[]) { difference, difference }, 2, NULL), NULL);
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
    set_training(&training, model, length);
    model->session.trainer = tutti_compile(network, model->logits, &training);
    ck_assert_msg(model->session.trainer, "%s", tutti_message(NULL));
}

/* Causal masks, windows and numbers of keys are those of networks with a fixed length, which tests/layers compares with
 * a reference. Some samples have no keys, or more than there are. */
START_TEST(masks_by_position_of_any_length)
{
    static const int64_t some[] = { 5, LONGEST, 1 };
    const struct masks *masks = &all_masks[_i % MASKS];
    struct model varied = { 0 };
    float x[TEXTS * LONGEST * WIDTH], left[TEXTS * LONGEST * WIDTH], right[TEXTS * LONGEST * WIDTH];
    int32_t counts[TEXTS];
    compile_masked(&varied, &training_ways[_i < MASKS ? 0 : 3], TUTTI_SEQUENCE, masks);
    for (int i = 0; i < TEXTS * LONGEST * WIDTH; i++) x[i] = random_normal(5, 1, (uint64_t)i);
    for (int l = 0; l < 3; l++) {
        struct model fixed = { 0 };
        const int64_t length = some[l];
        tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, x, length }, { "counts", TUTTI_DTYPE_I32, counts } };
        tutti_metrics a, b;
        for (int i = 0; i < TEXTS; i++) counts[i] = (int32_t)(length * i / 4);
        compile_masked(&fixed, &training_ways[0], length, masks);
        copy_parameters(&varied, &fixed);
        fixed.session.trainer->state.position.steps = varied.session.trainer->state.position.steps; /* dropout's */
        ASSERT_OK(tutti_train_fetch(varied.session.trainer, feeds, 2, TEXTS, FETCH_ONE(varied.logits, left), &a));
        feeds[0].length = 0;
        ASSERT_OK(tutti_train_fetch(fixed.session.trainer, feeds, 2, TEXTS, FETCH_ONE(fixed.logits, right), &b));
        ck_assert_double_eq_tol(a.loss, b.loss, 1e-5);
        for (int64_t i = 0; i < TEXTS * length * WIDTH; i++) ck_assert_float_eq_tol(left[i], right[i], 1e-5f);
        close_to(&varied.session, &fixed.session, ROUNDING);
        session_close(&fixed.session);
    }
    session_close(&varied.session);
}
END_TEST

static int plan_count(const struct replica *replica)
{
    int count = 0;
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) count += replica->plans.plans[i].plan != NULL;
    return count;
}

/* More lengths than plans are kept: each gives the same when it comes again, in no more memory. */
START_TEST(plans_are_bounded)
{
    enum { FLOATS = TEXTS * LONGEST * WORDS };
    static float first[LONGEST + 1][FLOATS], again[FLOATS];
    struct model varied = { 0 };
    compile(&varied, &training_ways[0], TUTTI_SEQUENCE);
    struct replica *replica = &varied.session.trainer->replicas[0];
    const uint64_t bytes = replica_memory(replica);
    ck_assert_int_gt(LONGEST, PLAN_CACHE_PLANS);
    for (int round = 0; round < 2; round++)
        for (int64_t length = 1; length <= LONGEST; length++) {
            float *logits = round ? again : first[length];
            tutti_feed feeds[2];
            feed((int)length, length, feeds);
            ASSERT_OK(tutti_infer(varied.session.trainer, feeds, 2, TEXTS, FETCH_ONE(varied.logits, logits)));
            if (round) ck_assert_mem_eq(again, first[length], (size_t)(TEXTS * length * WORDS) * sizeof(float));
            ck_assert_uint_eq(replica_memory(replica), bytes);
            const struct bound_sizes sizes = { replica->capacity < 8 ? replica->capacity : 8, length };
            ck_assert_ptr_nonnull(plan_cache_find(&replica->plans, (struct plan_key) { PLAN_INFER, sizes }));
        }
    ck_assert_int_eq(plan_count(replica), PLAN_CACHE_PLANS);
    session_close(&varied.session);
}
END_TEST

/* Arrays that are shorter than the longest sequence: epochs over them are the same steps. */
START_TEST(fit_has_the_length_of_its_arrays)
{
    struct model steps = { 0 }, fitted = { 0 };
    tutti_feed feeds[2];
    tutti_metrics metrics;
    compile(&steps, &training_ways[0], TUTTI_SEQUENCE);
    compile(&fitted, &training_ways[_i], TUTTI_SEQUENCE);
    feed(1, 7, feeds);
    for (int step = 0; step < 3; step++) ASSERT_OK(tutti_train_step(steps.session.trainer, feeds, 2, TEXTS, &metrics));
    ASSERT_OK(tutti_fit(fitted.session.trainer, feeds, 2, TEXTS, &(tutti_fitting) { .epochs = 3, .no_shuffle = true }));
    close_to(&steps.session, &fitted.session, ROUNDING);
    session_close(&fitted.session);
    session_close(&steps.session);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- errors ---- */

static const struct wrong {
    int64_t lengths[2];
    const char *message;
} wrongs[] = {
    { { 0, LONGEST + 1 }, "is 13: it must be from 1 to tutti_training.sequence, 12" },
    { { -1, 0 }, "is -1: it must be from 1" },
    { { 5, 6 }, "feed 1 has sequences of length 6, but one before it of length 5" },
};

START_TEST(lengths_are_checked)
{
    struct model varied = { 0 };
    tutti_feed feeds[2];
    compile(&varied, &training_ways[0], TUTTI_SEQUENCE);
    feed(0, LONGEST, feeds);
    for (int i = 0; i < 2; i++) feeds[i].length = wrongs[_i].lengths[i];
    tutti_trainer *trainer = varied.session.trainer;
    fails_with(tutti_train_step(trainer, feeds, 2, 1, NULL), TUTTI_INVALID, wrongs[_i].message);
    fails_with(tutti_fit(trainer, feeds, 2, 1, NULL), TUTTI_INVALID, wrongs[_i].message);
    session_close(&varied.session);
}
END_TEST

START_TEST(networks_without_sequences_have_no_length)
{
    struct model fixed = { 0 };
    tutti_feed feeds[2];
    compile(&fixed, &training_ways[0], 5);
    feed(0, 5, feeds);
    fails_with(
        tutti_train_step(fixed.session.trainer, feeds, 2, 1, NULL), TUTTI_INVALID, "no input has TUTTI_SEQUENCE");
    session_close(&fixed.session);
}
END_TEST

START_TEST(the_longest_must_be_given)
{
    struct model model = { .session.runtime = session_runtime("0", false) };
    build(&model, TUTTI_SEQUENCE);
    ck_assert_ptr_null(tutti_compile(
        model.session.network, model.logits, &(tutti_training) { .losses = &model.loss, .loss_count = 1 }));
    fails_with(TUTTI_INVALID, TUTTI_INVALID, "tutti_training.sequence is 0");
    session_close(&model.session);
}
END_TEST

Suite *suite_sequences(void)
{
    Suite *suite = suite_create("sequences");
    TCase *cases = cases_new(suite, "sequences", NULL, NULL);
    add_cases(cases, varied_learns_as_fixed, WAYS);
    add_cases(cases, forward_of_any_length, WAYS);
    tcase_add_test(cases, lost_steps_are_replayed);
    add_cases(cases, masks_by_position_of_any_length, 2 * MASKS);
    tcase_add_test(cases, plans_are_bounded);
    add_cases(cases, fit_has_the_length_of_its_arrays, WAYS);
    add_cases(cases, lengths_are_checked, (int)(sizeof(wrongs) / sizeof(*wrongs)));
    tcase_add_test(cases, networks_without_sequences_have_no_length);
    tcase_add_test(cases, the_longest_must_be_given);
    return suite;
}
