/* Trainers that read the parameters of another one: tutti_training.parameters_of. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIASES = 6 }; /* of the layer "conv" */

static tutti_trainer *reader_of(const struct session *session, const tutti_training *given)
{
    tutti_training training = given ? *given : (tutti_training) { .loss = TUTTI_LOSS_NONE };
    training.parameters_of = session->trainer;
    if (training.batch == 0) training.batch = 8;
    return tutti_compile(session->network, (tutti_tensor) { session->trainer->objective.outputs[0] }, &training);
}

/* Both infer the same, in either order, although the parameters and their EMA are swapped for it. */
static void same_outputs(const struct session *owner, tutti_trainer *reader, bool reader_first)
{
    static float wanted[SAMPLES * CLASSES], found[SAMPLES * CLASSES];
    for (int i = 0; i < 2; i++) {
        tutti_trainer *trainer = (i == 0) == reader_first ? reader : owner->trainer;
        float *outputs = trainer == reader ? found : wanted;
        ASSERT_OK(tutti_infer(trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(trainer, outputs)));
    }
    for (int i = 0; i < SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(found[i], wanted[i], 1e-5f);
}

static const struct {
    const char *devices;
    bool automatic;
    tutti_training training;
} owners[] = {
    { "0", false, { .momentum = 0.9f } },
    { "0", false, { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .ema_decay = 0.5f } },
    { "0,1", false, { .momentum = 0.9f, .ema_decay = 0.5f } },
    { "0,1", true, { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f } },
    { "0,1", false, { .momentum = 0.9f, .clip_norm = 0.1f, .step_limit_s = 60 } },
};
enum { OWNERS = sizeof(owners) / sizeof(*owners) };

static void open_owner(struct session *session, int number)
{
    if (owners[number].automatic)
        session_open_automatic(session, owners[number].devices, KIND_NORM, &owners[number].training);
    else
        session_open(session, owners[number].devices, KIND_NORM, &owners[number].training);
}

/* Trainings are the same with and without readers, which follow each step, what is set, and what is restored. */
START_TEST(readers_follow)
{
    struct session owner, alone;
    const double second[] = { 0, 1 };
    const float bias[BIASES] = { 1, 2, 3, -4, 5, -6 };
    float found[BIASES];
    open_owner(&owner, _i);
    open_owner(&alone, _i);
    tutti_trainer *all = reader_of(&owner, NULL);
    ck_assert_msg(all, "%s", tutti_message(NULL));
    tutti_trainer *one = reader_of(&owner,
        &(tutti_training) { .batch = SAMPLES, .shares = owner.trainer->count > 1 ? second : NULL, .step_limit_s = 60 });
    ck_assert_msg(one, "%s", tutti_message(NULL));
    ck_assert_ptr_null(one->replicas[0].update.states[0]);
    same_outputs(&owner, all, true);
    for (int step = 1; step < 4; step++) {
        session_steps(&owner, 1);
        session_steps(&alone, 1);
        if (step != 2) same_outputs(&owner, all, step == 1);
        same_outputs(&owner, one, step == 2);
    }
    if (!owners[_i].automatic) same_bytes(&owner, &alone);
    tutti_metrics wanted, metrics;
    ASSERT_OK(tutti_evaluate(owner.trainer, FEED_PAIR(images, labels), SAMPLES, &wanted));
    ASSERT_OK(tutti_evaluate(one, FEED_PAIR(images, labels), SAMPLES, &metrics));
    ck_assert_double_eq_tol(metrics.loss, wanted.loss, 1e-5);
    ck_assert_double_eq(metrics.accuracy, wanted.accuracy);
    tutti_snapshot *snapshot = tutti_snapshot_take(owner.trainer);
    ASSERT_OK(tutti_set_parameter(owner.trainer, "conv.bias", bias, BIASES));
    same_outputs(&owner, all, true);
    ASSERT_OK(tutti_get_parameter(all, "conv.bias", found, BIASES));
    ck_assert_mem_eq(found, bias, sizeof(bias));
    ASSERT_OK(tutti_snapshot_restore(owner.trainer, snapshot));
    same_outputs(&owner, all, true);
    ASSERT_OK(tutti_get_parameter(all, "conv.bias", found, BIASES));
    ck_assert_float_ne(found[0], bias[0]);
    tutti_snapshot_free(snapshot);
    tutti_trainer_free(one); /* before its owner; the other after it */
    same_outputs(&owner, all, false);
    tutti_trainer_free(owner.trainer);
    owner.trainer = NULL;
    fails_with(tutti_infer(all, FEED_ONE(images), 1, FETCH_FIRST(all, found)), TUTTI_INVALID, "was freed");
    fails_with(tutti_get_parameter(all, "conv.bias", found, BIASES), TUTTI_INVALID, "was freed");
    fails_with(tutti_save_weights(all, "never.safetensors"), TUTTI_INVALID, "was freed");
    tutti_trainer_free(all);
    session_close(&owner);
    session_close(&alone);
}
END_TEST

START_TEST(readers_see_what_is_loaded)
{
    struct session owner, other;
    char file[] = "/tmp/tutti-readers-XXXXXX.safetensors";
    const int descriptor = mkstemps(file, 12);
    ck_assert_int_ge(descriptor, 0);
    session_open(&owner, _i ? "0,1" : "0", KIND_PLAIN, NULL);
    session_open(&other, "0", KIND_PLAIN, &(tutti_training) { .momentum = 0.9f, .seed = 11 });
    tutti_trainer *reader = reader_of(&owner, NULL),
                  *second = reader_of(&(struct session) { owner.runtime, owner.network, reader }, NULL);
    ck_assert_msg(reader && second, "%s", tutti_message(NULL)); /* of a reader's owner */
    session_steps(&other, 2);
    ASSERT_OK(tutti_save_weights(other.trainer, file));
    same_outputs(&owner, reader, true);
    ASSERT_OK(tutti_load_weights(owner.trainer, file));
    same_outputs(&owner, reader, true);
    same_outputs(&other, second, true);
    ASSERT_OK(tutti_save_weights(reader, file));
    ASSERT_OK(tutti_load_weights(other.trainer, file));
    same_bytes(&owner, &other);
    ck_assert_int_eq(remove(file), 0);
    tutti_trainer_free(reader);
    same_outputs(&owner, second, true);
    tutti_trainer_free(second);
    session_close(&owner);
    session_close(&other);
}
END_TEST

static size_t read_file(const char *path, unsigned char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t count = fread(bytes, 1, most, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_lt(count, most);
    return count;
}

/* Also the texts and the count of steps. */
START_TEST(readers_save_what_their_owners_save)
{
    static unsigned char wanted[1 << 20], found[1 << 20];
    struct session owner;
    char file[] = "/tmp/tutti-readers-XXXXXX.safetensors";
    const int descriptor = mkstemps(file, 12);
    ck_assert_int_ge(descriptor, 0);
    (void)close(descriptor);
    session_open(&owner, "0", KIND_NORM, &(tutti_training) { .ema_decay = 0.5f });
    tutti_trainer *reader = reader_of(&owner, NULL);
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    session_steps(&owner, 2);
    ASSERT_OK(tutti_set_metadata(owner.trainer, "data", "shapes"));
    ASSERT_OK(tutti_save_weights(owner.trainer, file));
    const size_t bytes = read_file(file, wanted, sizeof(wanted));
    ASSERT_OK(tutti_save_weights(reader, file));
    ck_assert_uint_eq(read_file(file, found, sizeof(found)), bytes);
    ck_assert_mem_eq(found, wanted, bytes);
    ck_assert_int_eq(remove(file), 0);
    tutti_trainer_free(reader);
    session_close(&owner);
}
END_TEST

START_TEST(readers_only_read)
{
    struct session owner, other;
    float values[BIASES] = { 0 };
    tutti_view view = { .size = sizeof(view) };
    session_open(&owner, "0", KIND_PLAIN, NULL);
    session_open(&other, "0", KIND_NORM, NULL);
    tutti_trainer *reader = reader_of(&owner, &(tutti_training) { .momentum = 0.9f, .batch = STEP_SAMPLES });
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    const char *const reason = "reads the parameters of another one";
    fails_with(tutti_train_step(reader, FEED_PAIR(images, labels), 8, NULL), TUTTI_INVALID, reason);
    fails_with(tutti_backward(reader, FEED_PAIR(images, labels), 8, NULL), TUTTI_INVALID, reason);
    fails_with(tutti_fit(reader, FEED_PAIR(images, labels), 8, NULL), TUTTI_INVALID, reason);
    fails_with(tutti_set_parameter(reader, "conv.bias", values, BIASES), TUTTI_INVALID, reason);
    fails_with(tutti_load_weights(reader, "none.safetensors"), TUTTI_INVALID, reason);
    fails_with(tutti_load_matching(reader, "none.safetensors", NULL, NULL), TUTTI_INVALID, reason);
    fails_with(tutti_view_parameter(reader, "conv.bias", &view), TUTTI_INVALID, reason);
    fails_with(tutti_set_group(reader, "conv.*", NULL), TUTTI_INVALID, reason);
    fails_with(tutti_save(reader, "never"), TUTTI_INVALID, "another one's parameters");
    ASSERT_OK(tutti_view_parameter(owner.trainer, "conv.bias", &view));
    fails_with(tutti_evaluate(reader, FEED_PAIR(images, labels), 8, NULL), TUTTI_INVALID, "whose parameters it reads");
    ASSERT_OK(tutti_view_close(owner.trainer, &view, false));
    const tutti_tensor output = { owner.trainer->objective.outputs[0] };
    ASSERT_OK(tutti_infer_keep(owner.trainer, FEED_ONE(images), 4, &output, 1));
    ASSERT_OK(tutti_view_output(owner.trainer, output, &view)); /* which says nothing of parameters */
    ASSERT_OK(tutti_evaluate(reader, FEED_PAIR(images, labels), 8, NULL));
    ASSERT_OK(tutti_view_close(owner.trainer, &view, false));
    same_outputs(&owner, reader, true);
    tutti_trainer_free(reader);
    struct session mixed = { other.runtime, other.network, owner.trainer };
    ck_assert_ptr_null(reader_of(&mixed, NULL));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "another network"));
    session_close(&other);
    session_open(&other, "0", KIND_PLAIN, &(tutti_training) { .seed = 12 });
    mixed.network = other.network; /* with the same parameters */
    reader = reader_of(&mixed, NULL);
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    same_outputs(&owner, reader, false);
    tutti_trainer_free(reader);
    session_close(&other);
    session_close(&owner);
}
END_TEST

/* The arrays of the moment at which a reader's device began to hang stay; later ones are freed. */
START_TEST(readers_that_hang_leak_once)
{
    static float outputs[SAMPLES * CLASSES];
    struct session owner;
    session_open(&owner, "0", KIND_PLAIN, NULL);
    tutti_trainer *reader = reader_of(&owner, NULL);
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    struct parameter_store *store = owner.trainer->store;
    session_steps(&owner, 1);
    membership_lose(&reader->members, 0);
    reader->replicas[0].worker.abandoned = true;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_ne(tutti_infer(reader, FEED_ONE(images), 8, FETCH_FIRST(reader, outputs)), TUTTI_OK);
        float *const read = store->master.parameters;
        ck_assert_int_eq(store->leaked, i == 0);
        session_steps(&owner, 1);
        ck_assert(!store->leaked && store->frozen_leaked);
        if (i == 0) free(read); /* it does not come back here */
    }
    reader->replicas[0].worker.abandoned = false;
    tutti_trainer_free(reader);
    session_close(&owner);
}
END_TEST

enum { INFERENCES = 60 };

static void *infer_often(void *argument)
{
    static float outputs[SAMPLES * CLASSES];
    tutti_trainer *reader = argument;
    for (int i = 0; i < INFERENCES; i++) {
        ASSERT_OK(tutti_infer(reader, FEED_ONE(images), SAMPLES, FETCH_FIRST(reader, outputs)));
        ASSERT_OK(tutti_evaluate(reader, FEED_PAIR(images, labels), SAMPLES, NULL));
    }
    return NULL;
}

/* Inference during a training in another thread changes nothing of it. */
START_TEST(readers_in_a_thread)
{
    struct session owner, alone;
    pthread_t thread;
    const int number = _i; /* without automatic shares, whose sums depend on times */
    const tutti_fitting fitting = { .epochs = 8, .no_shuffle = true };
    open_owner(&owner, number);
    open_owner(&alone, number);
    tutti_trainer *reader = reader_of(&owner, &(tutti_training) { .batch = 20 });
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    ck_assert_int_eq(pthread_create(&thread, NULL, infer_often, reader), 0);
    ASSERT_OK(tutti_fit(owner.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ASSERT_OK(tutti_fit(alone.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
    same_bytes(&owner, &alone);
    same_outputs(&owner, reader, true);
    tutti_trainer_free(reader);
    session_close(&owner);
    session_close(&alone);
}
END_TEST

enum { STEPS_SEEN = 200 };

/* What a training reads of itself after its steps. */
struct seen {
    tutti_trainer *trainer;
    float biases[STEPS_SEEN][BIASES];
    int count;
};

static int look(void *user, const tutti_progress *progress)
{
    struct seen *seen = user;
    (void)progress;
    if (seen->count == STEPS_SEEN) return 0;
    tutti_snapshot *snapshot = tutti_snapshot_take(seen->trainer);
    ck_assert_ptr_nonnull(snapshot);
    tutti_snapshot_free(snapshot);
    ASSERT_OK(tutti_get_parameter(seen->trainer, "conv.bias", seen->biases[seen->count++], BIASES));
    return 0;
}

static atomic_bool infers;

static void *infer_on(void *argument)
{
    static float outputs[SAMPLES * CLASSES];
    tutti_trainer *reader = argument;
    while (atomic_load(&infers)) ASSERT_OK(tutti_infer(reader, FEED_ONE(images), 8, FETCH_FIRST(reader, outputs)));
    return NULL;
}

/* Parameters that a training reads between its steps are never the averages, which a reader infers with. */
START_TEST(readers_do_not_show_their_averages)
{
    static struct seen seen, wanted;
    struct session owner, alone;
    pthread_t thread;
    open_owner(&owner, 1 + _i);
    open_owner(&alone, 1 + _i);
    seen = (struct seen) { .trainer = owner.trainer };
    wanted = (struct seen) { .trainer = alone.trainer };
    tutti_fitting fitting = { .epochs = 20, .no_shuffle = true, .progress = look, .user = &wanted };
    ASSERT_OK(tutti_fit(alone.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
    tutti_trainer *reader = reader_of(&owner, NULL);
    ck_assert_msg(reader, "%s", tutti_message(NULL));
    atomic_store(&infers, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, infer_on, reader), 0);
    fitting.user = &seen;
    ASSERT_OK(tutti_fit(owner.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
    atomic_store(&infers, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(seen.count, wanted.count);
    ck_assert_mem_eq(seen.biases, wanted.biases, sizeof(seen.biases));
    same_bytes(&owner, &alone);
    tutti_trainer_free(reader);
    session_close(&owner);
    session_close(&alone);
}
END_TEST

enum { TURNS = 20, TURNS_AT_MOST = 2000 };

static atomic_int turns_left;

static void *take_turns(void *argument)
{
    struct parameter_store *store = argument;
    while (atomic_load(&turns_left) > 0) {
        parameters_lock(store);
        parameters_lock(store);
        atomic_fetch_sub(&turns_left, 1);
        parameters_unlock(store);
        parameters_unlock(store);
    }
    return NULL;
}

/* A thread that locks the parameters again at once lets another one have its turn first. */
START_TEST(threads_take_turns)
{
    struct session session;
    pthread_t thread;
    int taken = 0, steps = 0;
    session_open(&session, "0", KIND_PLAIN, NULL);
    struct parameter_store *store = session.trainer->store;
    atomic_store(&turns_left, TURNS);
    parameters_lock(store);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_turns, store), 0);
    while ((taken = TURNS - atomic_load(&turns_left)) < TURNS && steps++ < TURNS_AT_MOST) {
        (void)usleep(1000); /* a step */
        parameters_unlock(store);
        parameters_lock(store);
    }
    parameters_unlock(store);
    atomic_store(&turns_left, 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(taken, TURNS);
    ck_assert_int_lt(steps, 25 * TURNS);
    session_close(&session);
}
END_TEST

Suite *suite_readers(void)
{
    Suite *suite = suite_create("readers");
    TCase *cases = cases_new(suite, "readers", data_make, NULL);
    add_cases(cases, readers_follow, OWNERS);
    add_cases(cases, readers_see_what_is_loaded, 2);
    tcase_add_test(cases, readers_save_what_their_owners_save);
    tcase_add_test(cases, readers_only_read);
    tcase_add_test(cases, readers_that_hang_leak_once);
    add_cases(cases, readers_in_a_thread, 3);
    add_cases(cases, readers_do_not_show_their_averages, 2);
    tcase_add_test(cases, threads_take_turns);
    return suite;
}
