/* A trainer: tutti_compile() makes it, tutti_trainer_free() frees it. The public calls for single steps, evaluation and
 * inference, whose work parallel/step.c does. */
#include "base/memory.h"
#include "base/options.h"
#include "graph/twin.h"
#include "parallel/division.h"
#include "parallel/exchange.h"
#include "parallel/faults.h"
#include "parallel/journal.h"
#include "parallel/newest.h"
#include "parallel/ranks.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/ranks_sum.h"
#include "parallel/rebalance.h"
#include "parallel/step.h"
#include "runtime/builder.h"
#include "runtime/forked.h"
#include "train/carried.h"
#include "train/checks.h"
#include "train/fetches.h"
#include "train/metadata.h"
#include "train/objective.h"
#include "train/views.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- compile ---- */

static tutti_status read_advanced(tutti_advanced_options *advanced, const tutti_advanced_options *given)
{
    tutti_status status = OPTIONS_READ(advanced, given, tutti_advanced_options);
    if (status != TUTTI_OK) return status;
    if (advanced->wire != TUTTI_FP32 && advanced->wire != TUTTI_BF16)
        return fail(TUTTI_INVALID,
            "precision %d does not exist for gradients in transfer: pass TUTTI_FP32 or TUTTI_BF16",
            (int)advanced->wire);
    if (advanced->average_every < 0)
        return fail(TUTTI_INVALID, "average_every is %lld: it must be at least 1, or 0 to sum gradients in each step",
            (long long)advanced->average_every);
    return TUTTI_OK;
}

static tutti_status read_options(tutti_trainer *trainer, const tutti_training *training)
{
    if (training->batch < 0 || training->batch > INT32_MAX)
        return fail(TUTTI_INVALID, "the batch is %lld: it must be from 1 to 2147483647", (long long)training->batch);
    if (!(training->step_limit_s >= 0) || !(training->build_limit_s >= 0))
        return fail(TUTTI_INVALID, "the time limits are %g and %g seconds: they cannot be negative",
            training->step_limit_s, training->build_limit_s);
    if (training->micro_batch < 0)
        return fail(TUTTI_INVALID, "the micro-batch is %lld: it must be at least 1", (long long)training->micro_batch);
    watchdog_set_limits(&trainer->watchdog, training->step_limit_s, training->build_limit_s);
    trainer->state.seed = training->seed;
    trainer->options.exact = training->exact;
    trainer->options.recompute = training->recompute;
    trainer->options.precision = training->precision;
    loss_scale_init(&trainer->state.loss_scale, training->precision == TUTTI_FP16);
    trainer->options.whole_batch =
        training->sync_batchnorm && trainer->options.trains && plan_wants_whole_batch(trainer->network);
    trainer->options.tune = training->tune;
    trainer->options.building = training->building;
    trainer->options.building_user = training->building_user;
    trainer->options.batch = training->batch ? training->batch : 32;
    trainer->options.batch_given = training->batch != 0;
    trainer->options.micro_batch = training->micro_batch;
    if (training->micro_batch > 0 && training->micro_batch < replica_min_micro_batch(trainer->options.batch))
        return fail(TUTTI_INVALID,
            "the micro-batch is %lld and the batch %lld: a step has at most %d micro-batches, so it must be at least "
            "%lld",
            (long long)training->micro_batch, (long long)trainer->options.batch, MOST_MICRO_BATCHES,
            (long long)replica_min_micro_batch(trainer->options.batch));
    for (int i = 0; i < trainer->count; i++)
        trainer->device_division.shares[i] =
            (struct share) { .weight = training->shares ? training->shares[i] : 1, .limit = INT64_MAX };
    if (training->sharing != TUTTI_SHARES_AUTO && training->sharing != TUTTI_SHARES_EQUAL)
        return fail(TUTTI_INVALID, "sharing %d does not exist: pass one of tutti_sharing", (int)training->sharing);
    trainer->options.automatic =
        trainer->count > 1 && trainer->options.trains && !training->shares && training->sharing == TUTTI_SHARES_AUTO;
    const tutti_status status = read_advanced(&trainer->options.advanced, training->advanced);
    return status == TUTTI_OK ? optimizer_init(&trainer->optimizer, training) : status;
}

/* A job of one replica: makes everything that it needs before the first step. */
static tutti_status build(struct replica *replica, void *argument)
{
    int64_t samples = *(const int64_t *)argument;
    tutti_status status = TUTTI_OK;
    if (replica->setup->tune) TRY(replica_tune(replica, samples));
    TRY(replica_measure(replica, samples));
    replica_load_ahead(replica, samples);
    TRY(replica_init(replica));
    if (replica->setup->whole_batch && samples > replica->capacity) samples = replica->capacity;
    TRY(replica_plan_first(replica, samples));
done:
    return status;
}

static void set_up(tutti_trainer *trainer)
{
    const struct trainer_options *options = &trainer->options;
    trainer->setup = (struct replica_setup) { .network = trainer->network,
        .log = &trainer->network->runtime->log,
        .watchdog = &trainer->watchdog,
        .objective = &trainer->objective,
        .optimizer = &trainer->optimizer,
        .feeds = &trainer->feeds.arrays,
        .outputs = &trainer->outputs,
        .carries = &trainer->options.carries,
        .longest = trainer->feeds.longest,
        .batch = options->batch,
        .micro_batch = options->micro_batch,
        .precision = options->precision,
        .wire = options->advanced.wire,
        .trains = trainer->options.trains,
        .exact = options->exact,
        .recompute = options->recompute,
        .tune = options->tune,
        .exchange = trainer->options.exchange,
        .automatic = options->automatic,
        .ranks = trainer->ranks != NULL,
        .whole_batch = options->whole_batch,
        .building = options->building,
        .building_user = options->building_user,
        .callbacks = { .trainer = trainer,
            .statistics_exchange = sync_devices_exchange,
            .statistics_leave = sync_devices_leave,
            .is_lost = trainer_has_lost } };
}

static tutti_status make_replicas(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    set_up(trainer);
    const bool threaded = trainer->options.exchange || watchdog_has_limit(&trainer->watchdog);
    TRY(shares_divide(trainer->device_division.shares, trainer->count, trainer->device_division.rank_batch,
        trainer->device_division.parts));
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        replica->setup = &trainer->setup;
        replica->number = i;
        replica->device = &trainer->network->runtime->devices[i];
        plan_cache_open(&replica->plans);
        worker_open(&replica->worker, &trainer->watchdog, replica, replica->device);
        if (threaded) TRY(worker_thread(&replica->worker));
    }
    for (int i = 0; i < trainer->count; i++)
        worker_start(&trainer->replicas[i].worker, build, &trainer->device_division.parts[i]);
    for (int i = 0; i < trainer->count; i++) {
        const tutti_status one = worker_wait(&trainer->replicas[i].worker);
        if (one != TUTTI_OK && status == TUTTI_OK) status = trainer_lose(trainer, &trainer->replicas[i], one);
    }
done:
    return status;
}

/* The parameters' initial values, in a thread of their own. */
struct values {
    tutti_trainer *trainer;
    tutti_status status;
    char message[512];
};

static void *make_values(void *argument)
{
    struct values *values = argument;
    const tutti_trainer *trainer = values->trainer;
    const struct parameter_arenas arenas = parameters_arenas(trainer->store);
    values->status = network_initialise(trainer->network, trainer->state.seed, &arenas);
    if (values->status != TUTTI_OK) snprintf(values->message, sizeof(values->message), "%s", status_message());
    return NULL;
}

/* Makes both at once: the drivers load programs on one core, and no replica reads the values before the first
 * step. */
static tutti_status make_values_and_replicas(tutti_trainer *trainer)
{
    struct values values = { .trainer = trainer };
    pthread_t thread;
    const bool threaded = !pthread_create(&thread, NULL, make_values, &values);
    if (!threaded) make_values(&values);
    const tutti_status status = make_replicas(trainer);
    if (threaded) pthread_join(thread, NULL);
    return status == TUTTI_OK && values.status != TUTTI_OK ? fail(values.status, "%s", values.message) : status;
}

static tutti_status make_groups(tutti_trainer *trainer)
{
    struct optimizer_group *groups;
    const tutti_status status =
        optimizer_groups(&trainer->optimizer, trainer->network, &groups, &trainer->optimizer.group_count);
    trainer->optimizer.groups = groups;
    return status;
}

/* Reads what is asked for; makes no replica yet. */
static tutti_status plan_training(tutti_trainer *trainer, tutti_tensor output, const tutti_training *training)
{
    tutti_status status = TUTTI_OK;
    trainer->count = trainer->network->runtime->count;
    trainer->replicas = memory_new((size_t)trainer->count, sizeof(*trainer->replicas));
    trainer->works = memory_new((size_t)trainer->count, sizeof(*trainer->works));
    trainer->device_division.shares = memory_new((size_t)trainer->count, sizeof(*trainer->device_division.shares));
    trainer->device_division.parts = memory_new((size_t)trainer->count, sizeof(*trainer->device_division.parts));
    trainer->metadata = memory_new(1, sizeof(*trainer->metadata));
    if (!trainer->replicas || !trainer->works || !trainer->device_division.shares || !trainer->device_division.parts ||
        !trainer->metadata)
        return TUTTI_NO_MEMORY;
    TRY(membership_open(&trainer->members, trainer->count));
    TRY(trainer_read_objective(trainer, output, training));
    TRY(read_options(trainer, training));
    TRY(carried_read(trainer, training));
    carried_choose_device(trainer);
    if (trainer->network->trainers == 1) TRY(network_layout(trainer->network)); /* threads of others read it */
    trainer->optimizer.uses = trainer_count_uses(trainer);
    if (!trainer->optimizer.uses) return TUTTI_NO_MEMORY;
    if (trainer->options.trains) TRY(make_groups(trainer));
    if (trainer->options.trains && trainer->network->trained_floats == 0)
        FAIL(TUTTI_INVALID, "the network has no parameters to train: compile it with TUTTI_LOSS_NONE to infer");
    if (trainer->options.trains) TRY(trainer_check_reached(trainer));
    TRY(shares_divide(trainer->device_division.shares, trainer->count, trainer->options.batch,
        trainer->device_division.parts)); /* checks that shares are valid */
done:
    return status;
}

/* Makes the parameters, or takes those of another trainer. */
static tutti_status open_store(tutti_trainer *trainer, const tutti_training *training)
{
    tutti_trainer *other = training->parameters_of;
    if (!other) {
        trainer->store = parameters_open(trainer, trainer->network, &trainer->optimizer);
        return trainer->store ? TUTTI_OK : TUTTI_NO_MEMORY;
    }
    trainer->store = parameters_share(other->store);
    if (other->network != trainer->network && !network_are_twins(other->network, trainer->network))
        return fail(TUTTI_INVALID,
            "tutti_training.parameters_of is a trainer of another network, whose parameters or devices differ: pass "
            "one of "
            "this network");
    if (training->hosts)
        return fail(TUTTI_INVALID,
            "a trainer with tutti_training.parameters_of reads the parameters on this host alone: leave out `hosts`");
    return newest_to_host(trainer); /* which fails if their owner was freed */
}

static tutti_status make_parameters(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    TRY(parameters_make(
        trainer->store, trainer->options.exchange && trainer->options.trains, trainer_updates_from_sums(trainer)));
    TRY(make_values_and_replicas(trainer));
    parameters_begin_ema(trainer->store, 0, trainer->network->trained_floats);
done:
    return status;
}

static tutti_status make_all(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    if (trainer->options.exchange) TRY(thread_pool_new(&trainer->pool, trainer->network->runtime->threads));
    TRY(sync_devices_open(trainer));
    if (parameters_owner(trainer->store) == trainer)
        TRY(make_parameters(trainer));
    else
        TRY(make_replicas(trainer));
    if (trainer->options.whole_batch)
        TRY(divide_over_devices(trainer, PLAN_TRAIN, trainer->device_division.rank_batch,
            trainer->device_division.parts)); /* by what fits */
    if (trainer->options.automatic) TRY(rebalance_open(trainer));
    if (trainer->options.automatic) TRY(journal_open(trainer));
done:
    return status;
}

tutti_trainer *tutti_compile(tutti_network *network, tutti_tensor output, const tutti_training *given)
{
    tutti_status status = TUTTI_OK;
    tutti_training read;
    const tutti_training *training = &read;
    tutti_trainer *trainer = NULL;
    TRY(OPTIONS_READ(&read, given, tutti_training));
    if (!network)
        FAIL(TUTTI_INVALID, "tutti_compile() got a network that is NULL: create one with tutti_network_new()");
    TRY(forked_check());
    TRY(tutti_network_status(network));
    trainer = memory_new(1, sizeof(*trainer));
    if (!trainer) return NULL;
    trainer->network = network;
    network->trainers++;
    watchdog_open(&trainer->watchdog, ranks_progress, trainer);
    TRY(open_store(trainer, training));
    TRY(ranks_open(trainer, training, plan_training(trainer, output, training)));
    trainer->options.exchange = trainer->count > 1 || ranks_sum_mode(trainer);
    builder_keep(network->runtime, true);
    status = ranks_begin(trainer, make_all(trainer));
    builder_keep(network->runtime, false);
    if (status == TUTTI_OK) return trainer;
done:
    status_set(status, status_message()); /* a later failure may have been mended */
    tutti_trainer_free(trainer);
    return NULL;
}

void tutti_trainer_free(tutti_trainer *trainer)
{
    bool stuck = false;
    if (!trainer || is_forked()) return;
    views_close_all(trainer);
    for (int i = 0; trainer->replicas && i < trainer->count; i++) {
        if (!worker_is_stuck(&trainer->replicas[i].worker)) background_free(&trainer->replicas[i]);
        stuck |= !replica_free(&trainer->replicas[i]);
    }
    thread_pool_free(trainer->pool); /* the caller's thread alone gives it work */
    if (stuck) {                     /* a thread that hangs in a driver may come back and use the rest */
        parameters_abandon(trainer->store, trainer);
        return;
    }
    trainer->network->trainers--;
    rebalance_close(trainer);
    ranks_close(trainer);
    journal_free(trainer);
    feeds_free(&trainer->feeds);
    parameters_close(trainer->store, trainer);
    kept_gradients_free(&trainer->last.kept);
    views_free(trainer);
    membership_close(&trainer->members);
    if (trainer->metadata) metadata_free(trainer->metadata);
    free(trainer->metadata);
    free(trainer->replicas);
    free(trainer->works);
    free(trainer->device_division.shares);
    free(trainer->device_division.parts);
    free((int *)trainer->optimizer.uses);
    free(trainer->optimizer.groups);
    sync_devices_close(trainer);
    watchdog_close(&trainer->watchdog);
    free(trainer);
}

/* -------------------------------------------------------------------------------------------------- public ---- */

/* Takes the feeds of this rank's samples, in a call that all ranks make together; a rank may have none. */
static tutti_status take_rank_feeds(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, struct arrays *arrays)
{
    bool borrowed;
    const bool none = trainer->ranks && samples == 0;
    *arrays = (struct arrays) { 0 };
    const tutti_status status = trainer_check(trainer, true, none ? 1 : samples);
    if (status != TUTTI_OK || none) return status;
    return feeds_read(&trainer->feeds, feeds, feed_count, true, samples, arrays, &borrowed);
}

/* trainer_step() or trainer_backward(). */
typedef tutti_status step_function(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals);

/* Runs a step. batch_status: whether this rank has its batch; if not, ranks_place() reports it to all ranks and
 * returns it. outputs: where the batch's outputs go, or NULL. */
static tutti_status run_on_rank_batch(tutti_trainer *trainer, step_function *step, tutti_status batch_status,
    const struct arrays *feeds, int64_t samples, const struct arrays *outputs, tutti_metrics *metrics)
{
    tutti_status status;
    struct metric_totals totals;
    struct batch batch = { .samples = samples, .feeds = *feeds, .outputs = outputs };
    TRY(ranks_place(trainer, batch_status, &batch));
    if (batch.global_samples > trainer->options.batch)
        FAIL(TUTTI_INVALID,
            "the step has %lld samples, but tutti_training.batch is %lld: pass fewer samples or compile with a larger "
            "batch",
            (long long)batch.global_samples, (long long)trainer->options.batch);
    const struct vote ready = vote_of(TUTTI_OK); /* ranks_place() has already agreed on batch_status */
    TRY(step(trainer, &ready, &batch, &totals));
    metrics_report(trainer, &totals.metrics, batch.global_samples, metrics);
done:
    /* After a failure the caller may refill any array, so an address does not identify an announced batch any
     * more. */
    if (status != TUTTI_OK) lookahead_reset(&trainer->lookahead);
    return status;
}

tutti_status tutti_train_step(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics)
{
    struct arrays arrays;
    if (!trainer) return trainer_check(trainer, true, samples);
    tutti_status status = trainer_check_trains(trainer, "tutti_train_step()");
    if (status != TUTTI_OK) return status;
    status = take_rank_feeds(trainer, feeds, feed_count, samples, &arrays);
    return run_on_rank_batch(trainer, trainer_step, status, &arrays, samples, NULL, metrics);
}

tutti_status tutti_train_fetch(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples,
    const tutti_fetch *fetches, int fetch_count, tutti_metrics *metrics)
{
    struct arrays arrays;
    struct fetched fetched = { 0 };
    if (!trainer) return trainer_check(trainer, true, samples);
    tutti_status status = trainer_check_trains(trainer, "tutti_train_fetch()");
    if (status != TUTTI_OK) return status;
    status = take_rank_feeds(trainer, feeds, feed_count, samples, &arrays);
    if (status == TUTTI_OK && !trainer->objective.keeps_outputs)
        status =
            fail(TUTTI_INVALID, "this trainer keeps no outputs of its steps: set tutti_training.fetch_in_training");
    if (samples == 0) return run_on_rank_batch(trainer, trainer_step, status, &arrays, samples, NULL, metrics);
    if (status == TUTTI_OK)
        status = fetches_begin(&fetched, &trainer->objective, &trainer->outputs, fetches, fetch_count,
            (struct bound_sizes) { samples, arrays.length }, NULL);
    status = run_on_rank_batch(trainer, trainer_step, status, &arrays, samples, &fetched.arrays, metrics);
    return fetches_end(&fetched, status, &trainer->objective, &trainer->outputs, fetches, fetch_count, samples);
}

tutti_status tutti_backward(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics)
{
    struct arrays arrays;
    if (!trainer) return trainer_check(trainer, true, samples);
    tutti_status status = trainer_check_trains(trainer, "tutti_backward()");
    if (status != TUTTI_OK) return status;
    status = take_rank_feeds(trainer, feeds, feed_count, samples, &arrays);
    return run_on_rank_batch(trainer, trainer_backward, status, &arrays, samples, NULL, metrics);
}

tutti_status tutti_train_prefetch(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples)
{
    tutti_status status;
    bool borrowed;
    struct batch next = { .samples = samples };
    TRY(trainer_check_trains(trainer, "tutti_train_prefetch()"));
    TRY(trainer_check(trainer, true, trainer && trainer->ranks && samples == 0 ? 1 : samples));
    lookahead_withdraw(&trainer->lookahead);
    if (samples == 0) return TUTTI_OK;
    TRY(feeds_read(&trainer->feeds, feeds, feed_count, true, samples, &next.feeds, &borrowed));
    if (borrowed) lookahead_announce(&trainer->lookahead, &next);
done:
    return status;
}

tutti_status tutti_set_learning_rate(tutti_trainer *trainer, float learning_rate)
{
    if (!trainer) return fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    if (!(learning_rate >= 0) || !isfinite(learning_rate))
        return fail(
            TUTTI_INVALID, "the learning rate is %g: it must be finite and not negative", (double)learning_rate);
    trainer->optimizer.learning_rate = learning_rate;
    return TUTTI_OK;
}

float tutti_learning_rate(const tutti_trainer *trainer)
{
    if (!trainer) return NAN;
    return trainer_learning_rate(trainer);
}

float tutti_gradient_norm(const tutti_trainer *trainer)
{
    return trainer && trainer->last.stepped ? trainer->last.norm : NAN;
}

tutti_status tutti_evaluate(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics)
{
    tutti_status status;
    bool whole = true;
    struct metric_totals totals = { 0 };
    struct arrays arrays;
    if (!trainer) return trainer_check(trainer, true, samples);
    const struct vote ready = vote_of(take_rank_feeds(trainer, feeds, feed_count, samples, &arrays));
    if (!trainer->ranks) TRY(vote_status(&ready));
    TRY(trainer_settle(trainer, &totals));
    totals = (struct metric_totals) { 0 };
    status = vote_status(&ready);
    if (status == TUTTI_OK) status = trainer_forward(trainer, PLAN_EVALUATE, &arrays, samples, &totals, NULL);
    TRY(ranks_total(trainer, status, &totals, &samples, &whole));
    if (samples == 0) FAIL(TUTTI_INVALID, "no rank has a sample to evaluate: one of them needs some");
    metrics_report(trainer, &totals.metrics, samples, metrics);
done:
    return status;
}

/* `kept` gets outputs whose data are NULL. NULL: there are none. */
static tutti_status infer(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples,
    const tutti_fetch *fetches, int fetch_count, struct kept_outputs *kept)
{
    bool borrowed;
    struct metric_totals totals = { 0 };
    struct arrays arrays;
    struct fetched fetched;
    tutti_status status = carried_check(trainer, samples);
    if (status == TUTTI_OK) status = feeds_read(&trainer->feeds, feeds, feed_count, false, samples, &arrays, &borrowed);
    if (status != TUTTI_OK) return status;
    trainer->last.outputs.valid = false;
    memset(trainer->last.outputs.wanted, 0, sizeof trainer->last.outputs.wanted);
    status = fetches_begin(&fetched, &trainer->objective, &trainer->outputs, fetches, fetch_count,
        (struct bound_sizes) { samples, arrays.length }, kept);
    if (status == TUTTI_OK) status = trainer_forward(trainer, PLAN_INFER, &arrays, samples, &totals, &fetched.arrays);
    if (status == TUTTI_OK)
        views_keep_outputs(trainer, samples, arrays.length);
    else
        memset(trainer->last.outputs.wanted, 0, sizeof trainer->last.outputs.wanted);
    return fetches_end(&fetched, status, &trainer->objective, &trainer->outputs, fetches, fetch_count, samples);
}

tutti_status tutti_infer(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples,
    const tutti_fetch *fetches, int fetch_count)
{
    const tutti_status status = trainer_check(trainer, false, samples);
    return status == TUTTI_OK ? infer(trainer, feeds, feed_count, samples, fetches, fetch_count, NULL) : status;
}

tutti_status tutti_infer_keep(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples,
    const tutti_tensor *outputs, int output_count)
{
    tutti_status status;
    tutti_fetch fetches[PLAN_MAX_OUTPUTS];
    TRY(trainer_check(trainer, false, samples));
    if (!outputs || output_count < 1 || output_count > PLAN_MAX_OUTPUTS)
        FAIL(TUTTI_INVALID, "%d outputs are to be kept: pass 1 to %d", output_count, PLAN_MAX_OUTPUTS);
    for (int i = 0; i < output_count; i++) fetches[i] = (tutti_fetch) { outputs[i], TUTTI_DTYPE_F32, NULL };
    TRY(infer(trainer, feeds, feed_count, samples, fetches, output_count, &trainer->last.outputs));
done:
    return status;
}

void tutti_cancel(tutti_trainer *trainer)
{
    int open = RUN_OPEN;
    if (trainer) (void)atomic_compare_exchange_strong(&trainer->state.run, &open, RUN_CANCELLED);
}
