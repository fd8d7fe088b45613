/* tutti train: trains a network on data, on every chosen device. */
#include "base/clock.h"
#include "base/status.h"
#include "tools/commands.h"
#include "tools/data.h"
#include "tools/defaults.h"
#include "tools/division.h"
#include "tools/files.h"
#include "tools/find_lr.h"
#include "tools/finetune.h"
#include "tools/folds_page.h"
#include "tools/lora.h"
#include "tools/progress.h"
#include "tools/report/report.h"
#include "tools/results.h"
#include "tools/saved_model.h"
#include "tutti_finetune.h"
#include "tutti_hosts.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_OPTIMIZERS = 32, NAME_BYTES = 4096 };

struct settings {
    const char *model, *data, *save, *resume;
    bool json, seed_given;
    struct defaults_given given;
    tutti_fitting fitting;
    struct finetune finetune;
    struct lora lora;
    struct session_options session;
    struct user_data_options own;
    struct schedule_options schedule;
    struct report_options report;
    struct saved_model saved;      /* of --resume, or --weights */
    char resumed[NAME_BYTES + 64]; /* the weights of --resume */
};

struct training {
    const struct settings *settings;
    tutti_hosts *hosts;
    struct session session;
    struct data data;
    const tutti_source *train, *test; /* what is trained on; NULL: the data are not loaded yet */
    struct folds folds;
    struct folds_page folds_page;
    int fold;                      /* from 0 */
    char saved[512], resumed[512]; /* names for the fold */
    const char *resume;            /* the checkpoint to continue from; NULL: none */
    struct progress progress;
    struct results results;
    struct judge judge;
    struct report report;
    char **arguments;    /* of the command, for the report */
    tutti_progress last; /* as reported; epoch 0: nothing yet */
    /* Steps since the command began; samples of the trainer that thawing has replaced. */
    int64_t steps_done, samples_before;
    struct file_lock *lock; /* of the name to save to */
    bool ignores_hangups;   /* as under nohup */
    tutti_status output;    /* of writing JSON lines */
};

/* A signal handler can reach nothing else. The second signal ends the process at once. */
static _Atomic(tutti_trainer *) running;

static volatile sig_atomic_t received;

static void interrupt(int number)
{
    tutti_trainer *trainer = atomic_load(&running);
    received = number;
    signal(number, SIG_DFL);
    if (trainer)
        tutti_cancel(trainer);
    else
        raise(number);
}

enum { SIGNALS = 3 };
static const int signals[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* nohup ignores SIGHUP. Compilers in drivers replace that, so it is asked for before devices are opened. */
static bool ignores_hangups(void)
{
    struct sigaction now;
    return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void catch_signals(const struct training *training, struct sigaction before[SIGNALS])
{
    struct sigaction action = { .sa_handler = interrupt };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        action.sa_handler = signals[i] == SIGHUP && training->ignores_hangups ? SIG_IGN : interrupt;
        sigaction(signals[i], &action, &before[i]);
    }
}

static const char *const details =
    "DIR holds a folder of images or recordings for each class, images/ and masks/, tar shards, tables or arrays\n"
    "(docs/data.md), the IDX files of MNIST or Fashion-MNIST (plain or .gz), or the binary files of CIFAR-10 or\n"
    "CIFAR-100. If it has only the t10k pair of IDX files, its last 2,000 samples are the test data. \"digits\" are\n"
    "digits drawn by the program; \"line\" are points of y = 3 x + 2, for the linear model. With another\n"
    "optimizer than the model's, learning rate, momentum and weight decay default to those of the library.\n"
    "\n"
    "On tables, models that take any numbers train by AdamW with a cosine schedule, and batch and epochs follow from\n"
    "the number of rows (docs/tables.md). A line on standard error lists what was not given.\n"
    "\n"
    "After each epoch and at the end, --save writes NAME.safetensors (weights) and NAME.state.safetensors (the\n"
    "rest). --resume saves to the same NAME unless --save is given; NAME may end as these files. Ctrl-C saves and\n"
    "exits with status 130, SIGTERM with 143, SIGHUP with 129; a second signal ends the program at once.\n"
    "NAME.training.lock keeps other trainings from saving to the same NAME meanwhile.\n"
    "\n"
    "mpirun -np N tutti train ... trains on the devices of N processes, on one host or several (docs/hosts.md).";

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    tutti_training *training = &s->session.training;
    const char *optimizers[MOST_OPTIMIZERS + 1] = { NULL };
    for (int i = 0; i < MOST_OPTIMIZERS; i++) optimizers[i] = tutti_optimizer_name((tutti_optimizer)i);
    const struct option options[] = {
        OPTION_HEADING("Data"),
        { "data", OPTION(s->data), "DIR",
            "folder or file of the data, - for a table from standard input, digits or line (default digits; for "
            "linear: line)",
            .file = OPTION_READS },
        OWN_OPTIONS(s->own),
        OWN_TRAINING_OPTIONS(s->own),
        OPTION_HEADING("Training"),
        { "epochs", OPTION(s->fitting.epochs), "N",
            "epochs, including those done before --resume (default 5, of tables by their rows; no limit with --steps)",
            1, 1e9 },
        { "steps", OPTION(s->fitting.steps), "N", "stop after this many steps", 1, 1e12 },
        { "batch", OPTION(training->batch), "N",
            "samples of a step, over all devices (default the model's, of tables by their rows)", 1, 1e9 },
        { "no-shuffle", OPTION(s->fitting.no_shuffle), NULL,
            "use the samples in the order of the data in every epoch" },
        { "optimizer", OPTION(training->optimizer), "NAME", "optimizer (default the model's; of tables: adamw)",
            .choices = optimizers, .given = &s->given.optimizer },
        { "lr", OPTION(training->learning_rate), "X",
            "learning rate (default the model's, which may have another for tables)", 1e-30, 1e30 },
        { "momentum", OPTION(training->momentum), "X", "momentum, for sgd and rmsprop (default the model's)", 0, 1,
            .given = &s->given.momentum },
        { "nesterov", OPTION(training->nesterov), NULL, "use Nesterov's momentum, for sgd" },
        { "centered", OPTION(training->centered), NULL, "divide by the deviation of the gradient, for rmsprop" },
        { "amsgrad", OPTION(training->amsgrad), NULL, "keep the largest mean of squares, for adam and adamw" },
        { "weight-decay", OPTION(training->weight_decay), "X",
            "weight decay (default the model's, which may have another for tables)", 0, 1e30,
            .given = &s->given.weight_decay },
        { "seed", OPTION(training->seed), "N", "seed of initial weights, shuffling and dropout", 0, 9e15,
            .given = &s->seed_given },
        SCHEDULE_OPTIONS(s->schedule, s->fitting, *training),
        FINETUNE_OPTIONS(s->finetune),
        LORA_OPTIONS(s->lora),
        OPTION_HEADING("Saving and watching"),
        { "save", OPTION(s->save), "NAME", "save to NAME.safetensors and NAME.state.safetensors",
            .file = OPTION_WRITES_CHECKPOINT },
        { "resume", OPTION(s->resume), "NAME", "continue from these two files", .file = OPTION_READS_CHECKPOINT },
        { "json", OPTION(s->json), NULL, "print a JSON object per epoch, and one at the end" },
        REPORT_OPTIONS(s->report),
        SESSION_OPTIONS(s->session),
        RECOMPUTE_OPTION(s->session),
        EXCHANGE_OPTIONS(s->session),
        { "average-every", OPTION(s->session.advanced.average_every), "K",
            "under mpirun: average parameters every K steps instead of summing gradients in every step", 1, 1e9 },
    };
    const struct usage usage = { .command = "train",
        .summary = "Trains MODEL on all chosen devices together",
        MODEL_ARGUMENT,
        .from_options = { "weights", "resume" },
        .table = session_models_defaults(),
        .details = details,
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->model);
}

/* Options of another optimizer than the one that trains. */
static int check_optimizer(const struct settings *s, const struct model *model)
{
    const tutti_training *training = &s->session.training;
    const tutti_optimizer used = training->optimizer;
    const bool sgd = used == TUTTI_SGD, adam = used == TUTTI_ADAM || used == TUTTI_ADAMW;
    const struct {
        bool wrong;
        const char *option, *others;
    } rules[] = {
        { training->nesterov && !sgd, "nesterov", "sgd" },
        { training->centered && used != TUTTI_RMSPROP, "centered", "rmsprop" },
        { training->amsgrad && !adam, "amsgrad", "adam and adamw" },
        { s->given.momentum && training->momentum != 0 && !sgd && used != TUTTI_RMSPROP, "momentum",
            "sgd and rmsprop" },
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].wrong)
            return wrong_use("train", "--%s is an option of %s, but %s trains %s: leave one of them out",
                rules[i].option, rules[i].others, tutti_optimizer_name(used), model->name);
    return EXIT_DONE;
}

/* The rate of an epoch counts training alone, without tests and saving. */
static void add_epoch_time(struct results *results, const tutti_progress *step)
{
    if (step->samples_per_s <= 0) return;
    results->timed_samples += step->train.samples;
    results->seconds += (double)step->train.samples / step->samples_per_s;
}

/* Returns whether this rank is the one that prints for all. */
static bool speaks(const struct training *training)
{
    return tutti_hosts_rank(training->hosts) == 0;
}

static int on_progress(void *user, const tutti_progress *step)
{
    struct training *training = user;
    struct results *results = &training->results;
    if (speaks(training)) progress_show(&training->progress, step);
    report_progress(&training->report, step);
    if (step->end_of_epoch)
        folds_page_epoch(&training->folds_page, &training->folds, training->fold, &training->report);
    training->last = *step;
    results->epoch = step->epoch;
    results->steps = step->total_steps;
    results->samples = training->samples_before + step->samples;
    training->steps_done += !step->end_of_epoch;
    results->loss = step->train.loss;
    results->accuracy = step->train.accuracy;
    if (!step->end_of_epoch) return 0;
    add_epoch_time(results, step);
    results->test_loss = step->test.samples ? step->test.loss : NAN;
    results->test_accuracy = step->test.samples ? step->test.accuracy : NAN;
    if (speaks(training) && training->settings->json && training->output == TUTTI_OK)
        training->output = epoch_json(step, &training->judge);
    return 0;
}

/* Weights to begin with may be of a network without codes, as those of former versions are. */
static int64_t choose_codes(const struct settings *s, const struct model *model)
{
    struct saved_model before = { .name = "" };
    if (!model->build_for) return 0;
    if (s->finetune.weights && saved_model_read(s->finetune.weights, &before) != TUTTI_OK) return 0; /* told later */
    return before.shape.rank > 0 && before.facts.code_count == 0 ? 0 : DEFAULTS_CODES_ABOVE;
}

/* Loads the data as the checkpoint records them, if there is one. */
static tutti_status load_data(struct training *training, const struct settings *s, const struct model *model)
{
    tutti_status status = TUTTI_OK;
    struct user_data_saved *known = NULL;
    struct user_data_options own = s->own;
    char *tokenizer = NULL;
    const bool begins = s->finetune.weights && !training->resume;
    own.shape = model->input;
    own.data.numbers = model->loss == TUTTI_MSE;
    own.data.seed = s->session.training.seed;
    own.data.codes_above = choose_codes(s, model);
    own.quiet = !speaks(training) || training->fold > 0;
    if (training->resume) TRY(user_data_saved_read_checkpoint(training->resume, &known));
    user_data_saved_apply(known, &own);
    if (s->finetune.folds) own.data.folds = s->finetune.folds, own.data.fold = training->fold;
    TRY(division_check_options(known, training->resume, &own.data, s->seed_given));
    if (begins && (model->takes == MODEL_TAKES_TEXT || model->takes == MODEL_TAKES_SPEECH))
        TRY(user_data_take_tokenizer(s->finetune.weights, &own, &tokenizer));
    TRY(data_load(&training->data, s->data, &own));
    TRY(data_check_training(&training->data, s->data));
    TRY(user_data_saved_check(known, training->resume, &training->data.info));
    TRY(division_check_samples(known, training->resume, training->data.opened));
    if (!own.quiet) TRY(data_check_first(&training->data, &training->data.train));
    if (!own.quiet && begins) {
        user_data_warn_columns(s->finetune.weights, training->data.opened);
        division_report_weights(s->finetune.weights, training->data.opened);
    }
    training->train = &training->data.train.source;
    training->test = &training->data.test.source;
done:
    user_data_saved_free(known);
    free(tokenizer);
    return status;
}

static int choose_defaults(const struct training *training, struct settings *s, const struct model *model)
{
    const struct defaults_options options = { &s->given, &s->session.training, &s->fitting, &s->schedule };
    char *line = defaults_choose(&options, model, &training->data.info, training->train->samples);
    if (line && speaks(training)) fprintf(stderr, "not given:%s\n", line);
    free(line);
    return check_optimizer(s, model);
}

/* Loads the data and checks what the options ask of it. */
static int prepare_data(struct training *training, struct settings *s, const struct model *model)
{
    const bool first = !training->train;
    if (!first) data_free(&training->data); /* of the fold before */
    const tutti_status status = load_data(training, s, model);
    if (status != TUTTI_OK) return work_failed("train", status, status_message());
    int64_t samples = training->train->samples, *batch = &s->session.training.batch;
    if (!first && *batch > samples) *batch = samples;
    if (!first) return EXIT_DONE;
    if (*batch > samples)
        return wrong_use("train",
            "--batch %lld is larger than the training data: %s has %lld samples; use at most that many",
            (long long)*batch, s->data, (long long)samples);
    const int result = choose_defaults(training, s, model);
    return result == EXIT_DONE ? schedule_accumulate(&s->schedule, samples, &s->session.training) : result;
}

static tutti_status fit(struct training *training)
{
    const struct settings *s = training->settings;
    tutti_fitting fitting = s->fitting;
    if (fitting.steps) fitting.steps -= training->steps_done;
    fitting.test = training->test;
    fitting.scores = training->judge.scores;
    fitting.save = training->results.saved;
    fitting.resume = training->samples_before ? NULL : training->resume;
    fitting.begin_epoch = tutti_data_epoch;
    fitting.pause_after = finetune_pause(&s->finetune);
    fitting.progress = on_progress;
    fitting.user = training;
    progress_begin(&training->progress, training->session.trainer, s->fitting.steps);
    training->progress.scores = training->judge.scores;
    atomic_store(&running, training->session.trainer);
    struct sigaction before[SIGNALS];
    catch_signals(training, before);
    tutti_status status = tutti_fit_source(training->session.trainer, training->train, &fitting);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    atomic_store(&running, NULL);
    progress_clear(&training->progress);
    if (status == TUTTI_OK && s->fitting.steps == 0 && speaks(training)) schedule_report(&s->fitting, &training->last);
    return status;
}

static int report_failed_fit(struct training *training, tutti_status status)
{
    const char *saved = training->results.saved;
    if (status == TUTTI_CANCELLED) {
        if (speaks(training))
            fprintf(stderr, "tutti train: interrupted after step %lld; %s%s\n", (long long)training->results.steps,
                saved ? "continue with --resume " : "nothing was saved (no --save)", saved ? saved : "");
        return received == SIGTERM ? EXIT_TERMINATED : received == SIGHUP ? EXIT_HUNG_UP : EXIT_INTERRUPTED;
    }
    if (!speaks(training) && status != TUTTI_HOST_LOST) return EXIT_WORK_FAILED;
    return work_failed("train", status, tutti_message(training->session.runtime));
}

/* Once at the end: a training may find more damaged samples in each of its epochs. */
static void report_left_out(const struct training *training)
{
    const int64_t measured = training->last.test.samples;
    if (speaks(training) && measured > 0) data_report_left_out(&training->data.test, measured);
}

/* Tests a training that --steps ended within an epoch, and prints the epoch's line. */
static tutti_status finish_epoch(struct training *training)
{
    tutti_progress *last = &training->last;
    if (last->epoch && last->end_of_epoch) return TUTTI_OK;
    tutti_status status = judge_evaluate(&training->judge, training->session.trainer, training->test, &last->test);
    if (status != TUTTI_OK) return status;
    training->results.test_loss = last->test.loss;
    training->results.test_accuracy = last->test.accuracy;
    if (!last->epoch) return TUTTI_OK;
    last->end_of_epoch = true;
    add_epoch_time(&training->results, last);
    if (!speaks(training)) return TUTTI_OK;
    progress_show(&training->progress, last);
    report_progress(&training->report, last);
    if (training->settings->json) training->output = epoch_json(last, &training->judge);
    return TUTTI_OK;
}

static void report_nothing_left(const struct training *training)
{
    tutti_checkpoint_info info = { .size = sizeof(info) };
    const long long epochs = training->settings->fitting.epochs;
    if (tutti_checkpoint_read(training->resume, &info) != TUTTI_OK) info.epochs = epochs;
    if (info.epochs > epochs)
        fprintf(stderr,
            "tutti train: nothing was left to train: %s has completed %lld epochs, more than %lld; raise "
            "--epochs\n",
            training->resume, (long long)info.epochs, epochs);
    else
        fprintf(stderr, "tutti train: nothing was left to train: %s has completed %lld of %lld epochs%s\n",
            training->resume, (long long)info.epochs, epochs,
            info.epochs < epochs ? ", and patience has ended it; raise --patience" : "; raise --epochs");
}

static int report_end(struct training *training)
{
    struct results *results = &training->results;
    if (!speaks(training)) {
        devices_text(&training->session, tutti_hosts_rank(training->hosts));
        return EXIT_DONE;
    }
    if (!training->last.epoch && !training->settings->finetune.folds) report_nothing_left(training);
    results_text(&training->session, results, &training->judge);
    if (training->settings->json && training->output == TUTTI_OK)
        training->output = results_json(&training->session, results, &training->judge);
    return training->output == TUTTI_OK ? EXIT_DONE
                                        : work_failed("train", training->output, "cannot write to standard output");
}

static int compile(struct training *training)
{
    double started = clock_seconds();
    int result = session_compile(&training->session);
    if (result == EXIT_DONE && speaks(training)) fprintf(stderr, "ready after %.1f s\n", clock_seconds() - started);
    return result;
}

/* Prepares data, devices and the network, which each rank does by itself. */
static int prepare(struct training *training, struct settings *s, const struct model *model)
{
    struct session *session = &training->session;
    struct data *data = &training->data;
    s->session.rank = tutti_hosts_rank(training->hosts);
    int result = prepare_data(training, s, model);
    if (result == EXIT_DONE) result = session_check_input("train", model, &data->info.shape, &data->info);
    if (result != EXIT_DONE || (result = session_open(session, "train", &s->session)) != EXIT_DONE) return result;
    session->reading.lists_constants = true;
    session->pixels = data_pixels(data);
    session->soft = data_mixes(data);
    session->facts = data_facts(data);
    session->lora = s->lora;
    session->lora.tells = true;
    session->config.weights = s->resume ? s->resumed : s->finetune.weights;
    result = session_build(session, model, data->info.shape, data_outputs(data));
    if (result == EXIT_DONE) result = session_check_data(session, data_masks(data));
    if (result == EXIT_DONE) result = finetune_network(&s->finetune, session);
    if (result == EXIT_DONE) result = finetune_loss(&s->finetune, session, data, training->train);
    if (result != EXIT_DONE || !speaks(training)) return result;
    if (session->facts.pairs && session->facts.config->types < 2)
        fprintf(stderr, "warning: %s is not told which of two texts a token is of: it reads both as one text\n",
            model->name);
    const int hosts = tutti_hosts_count(training->hosts);
    fprintf(stderr, "%s: %lld parameters, %s: %lld training and %lld test samples, batch %lld on %d device%s%s\n",
        model->name, (long long)tutti_network_parameters(session->network), data->info.kind,
        (long long)training->train->samples, (long long)training->test->samples, (long long)session->training.batch,
        tutti_device_count(session->runtime), tutti_device_count(session->runtime) == 1 ? "" : "s",
        hosts == 1 ? "" : " and those of the other ranks");
    return EXIT_DONE;
}

/* Has data and network described in the file of weights. */
static tutti_status keep_facts(const struct training *training)
{
    const tutti_status status = data_keep(&training->data, training->session.trainer);
    return status == TUTTI_OK ? saved_model_keep(&training->session) : status;
}

/* Fits once, or until what is frozen thaws, and then again. */
static int fit_all(struct training *training, struct settings *s)
{
    tutti_status status = fit(training);
    if (status != TUTTI_OK) return report_failed_fit(training, status);
    const struct results *results = &training->results;
    const int64_t pause = finetune_pause(&s->finetune);
    if (!pause || results->epoch < pause || !training->last.end_of_epoch || s->fitting.epochs <= pause)
        return EXIT_DONE;
    if (s->fitting.steps && training->steps_done >= s->fitting.steps) return EXIT_DONE;
    training->samples_before = results->samples;
    const int result = finetune_thaw(&s->finetune, &training->session);
    if (result != EXIT_DONE) return result;
    status = keep_facts(training);
    if (status != TUTTI_OK) return work_failed("train", status, tutti_message(training->session.runtime));
    status = fit(training);
    return status == TUTTI_OK ? EXIT_DONE : report_failed_fit(training, status);
}

/* Returns how many numbers a sample's target has: one, one for each pixel or token, or those of an output. */
static int64_t count_target_numbers(const struct data *data)
{
    const tutti_shape *masks = data_masks(data);
    if (data_is_speech(data)) return data->info.target_shape.sizes[0];
    if (data->info.tokens_are_classes || data->info.tags) return data->info.length;
    if (data->numbers || data_mixes(data)) return data_outputs(data);
    return masks ? masks->sizes[0] * masks->sizes[1] : 1;
}

static int open_report(struct training *training, const struct settings *s)
{
    const struct data *data = &training->data;
    const struct session *session = &training->session;
    const int64_t labels = count_target_numbers(data);
    struct report_options options = s->report;
    if (!speaks(training)) return EXIT_DONE;
    if (s->finetune.folds && !folds_page_begin(&training->folds_page, training->fold, &options))
        return wrong_use("train", "--report, --log or --tensorboard: the name is too long for --folds");
    return report_open(&training->report, &options,
        &(struct report_facts) { .model = session->model->name,
            .data = data->info.kind,
            .command = training->arguments,
            .batch = session->training.batch,
            .train_samples = training->train->samples,
            .test_samples = training->test->samples,
            .scores = training->judge.scores,
            .classes =
                data->numbers || training->judge.tokens || data->info.tags || data_is_speech(data) ? 0 : data->classes,
            .class_names = data->info.class_names,
            .train = training->train,
            .test = training->test,
            .shape = data->info.shape,
            .dtype = session->pixels ? TUTTI_DTYPE_U8
                : data_is_text(data) ? TUTTI_DTYPE_I32
                                     : TUTTI_DTYPE_F32,
            .target_dtype = data->numbers || data_mixes(data) ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32,
            .target_bytes = sizeof(float) * (size_t)labels,
            .opened = data->opened,
            .part = data->test.part },
        session);
}

/* Checks what would otherwise fail after the training, or after compiling for it. */
static int check_files(const struct training *training, const struct settings *s)
{
    if (!speaks(training)) return EXIT_DONE;
    int result = files_check_weights("train", "weights", training->resume ? NULL : s->finetune.weights);
    if (result == EXIT_DONE) result = files_check_checkpoint(training->resume);
    if (result == EXIT_DONE) result = files_check_output("train", "report", s->report.page);
    if (result == EXIT_DONE) result = files_check_log("train", "log", s->report.log);
    if (result == EXIT_DONE) result = files_check_folder("train", "tensorboard", s->report.tensorboard);
    if (result == EXIT_DONE) result = files_check_output("train", "merge", s->lora.merged);
    return result == EXIT_DONE ? files_check_output("train", "find-lr", s->finetune.find_rate) : result;
}

static int train(struct training *training, struct settings *s)
{
    struct session *session = &training->session;
    const struct model *model = session_model(s->model);
    s->own.defaulted |= !s->data; /* also in later folds */
    if (!s->data) s->data = data_default(model->loss == TUTTI_MSE);
    finetune_begin(&s->finetune, training->resume, training->hosts);
    int result = check_files(training, s);
    if (result == EXIT_DONE) result = prepare(training, s, model);
    tutti_status status = tutti_hosts_agree(training->hosts, result == EXIT_DONE ? TUTTI_OK : TUTTI_INVALID);
    if (result != EXIT_DONE) return result;
    if (status == TUTTI_HOST_LOST) return work_failed("train", status, tutti_message(session->runtime));
    if (status != TUTTI_OK) return EXIT_WORK_FAILED; /* the rank that failed has told why */
    session->training.loss = training->data.numbers ? TUTTI_MSE : TUTTI_CROSS_ENTROPY;
    if ((result = compile(training)) != EXIT_DONE) return result;
    if ((status = keep_facts(training)) != TUTTI_OK)
        return work_failed("train", status, tutti_message(session->runtime));
    if (!training->resume && (result = finetune_load(&s->finetune, session)) != EXIT_DONE) return result;
    if (s->finetune.find_rate) return find_lr_run(session, training->train, s->finetune.find_rate, s->json);
    if ((result = judge_open(&training->judge, session, &training->data, &training->data.test)) != EXIT_DONE)
        return result;
    if ((result = open_report(training, s)) != EXIT_DONE) return result;
    training->results.saved = s->save ? s->save : s->resume;
    if (s->finetune.folds && training->results.saved) training->results.saved = training->saved;
    if ((result = fit_all(training, s)) != EXIT_DONE) return result;
    status = finish_epoch(training);
    if (status != TUTTI_OK) return work_failed("train", status, tutti_message(session->runtime));
    report_left_out(training);
    if ((result = lora_save(session, training->results.saved)) != EXIT_DONE) return result;
    result = report_end(training);
    const int reported = report_finish(&training->report);
    return result == EXIT_DONE ? reported : result;
}

static const struct results no_results = { .loss = NAN, .accuracy = NAN, .test_loss = NAN, .test_accuracy = NAN };

/* Sets the names of a fold, NAME.fold1 and so on: to save, and to resume if an earlier run has saved this fold. Only
 * the first rank has the files. */
static int name_fold(struct training *training, const struct settings *s)
{
    const char *save = s->save ? s->save : s->resume;
    char state[sizeof(training->resumed) + 32];
    training->resume = NULL;
    if (save && !folds_name(training->saved, sizeof(training->saved), save, training->fold))
        return wrong_use("train", "--save: the name is too long for --folds");
    if (!s->resume) return EXIT_DONE;
    if (!folds_name(training->resumed, sizeof(training->resumed), s->resume, training->fold))
        return wrong_use("train", "--resume: the name is too long for --folds");
    snprintf(state, sizeof(state), "%s.state.safetensors", training->resumed);
    const bool there = speaks(training) && access(state, F_OK) == 0;
    if (tutti_hosts_agree(training->hosts, there ? TUTTI_CANCELLED : TUTTI_OK) != TUTTI_OK)
        training->resume = training->resumed;
    if (training->resume || training->fold > 0) return EXIT_DONE;
    if (speaks(training)) fprintf(stderr, "tutti train: there is nothing to resume: %s is missing\n", state);
    return EXIT_WORK_FAILED;
}

static int train_fold(struct training *training, struct settings *s)
{
    training->results = no_results;
    training->last = (tutti_progress) { 0 };
    training->steps_done = training->samples_before = 0;
    int result = name_fold(training, s);
    if (result != EXIT_DONE) return result;
    if (speaks(training)) fprintf(stderr, "fold %d of %d\n", training->fold + 1, s->finetune.folds);
    if ((result = train(training, s)) != EXIT_DONE) return result;
    training->folds.losses[training->fold] = training->results.test_loss;
    training->folds.accuracies[training->fold] = training->results.test_accuracy;
    result = folds_page_complete(&training->folds_page, &training->folds, training->fold, &training->report);
    report_close(&training->report);
    judge_close(&training->judge);
    training->judge = (struct judge) { 0 };
    session_close(&training->session);
    training->session = (struct session) { 0 };
    return result;
}

/* Trains each fold by itself, and prints the results of all. */
static int train_folds(struct training *training, struct settings *s)
{
    struct folds *folds = &training->folds;
    folds->count = s->finetune.folds;
    for (; training->fold < s->finetune.folds; training->fold++) {
        const int result = train_fold(training, s);
        if (result != EXIT_DONE) return result;
    }
    if (!speaks(training)) return EXIT_DONE;
    folds_text(folds);
    const tutti_status status = s->json ? folds_json(folds) : TUTTI_OK;
    return status == TUTTI_OK ? EXIT_DONE : work_failed("train", status, "cannot write to standard output");
}

/* Only the first rank saves. The others learn that it cannot. */
static int lock_name(struct training *training, const struct settings *s)
{
    const char *name = s->save ? s->save : s->resume;
    const bool locks = name && speaks(training);
    int result = locks ? files_check_parent("train", s->save ? "save" : "resume", name) : EXIT_DONE;
    if (locks && result == EXIT_DONE) result = files_lock(name, &training->lock);
    const tutti_status status = tutti_hosts_agree(training->hosts, result == EXIT_DONE ? TUTTI_OK : TUTTI_INVALID);
    return result != EXIT_DONE || status == TUTTI_OK ? result : EXIT_WORK_FAILED;
}

/* Takes the model of the checkpoint, or of the weights to begin with, if none is given. */
static int choose_model(struct settings *s)
{
    char *name = s->resumed;
    const size_t bytes = sizeof(s->resumed);
    if (!s->resume)
        return s->model ? EXIT_DONE : saved_model_choose("train", "weights", s->finetune.weights, &s->model, &s->saved);
    snprintf(name, bytes, "%s.safetensors", s->resume);
    if (s->finetune.folds && access(name, F_OK) != 0) snprintf(name, bytes, "%s.fold1.safetensors", s->resume);
    return saved_model_choose("train", "resume", name, &s->model, &s->saved);
}

int command_train(int argc, char **argv)
{
    char saved[NAME_BYTES], resumed[NAME_BYTES];
    struct settings settings = { 0 };
    enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    if (settings.save) settings.save = files_checkpoint(settings.save, saved, sizeof(saved));
    if (settings.resume) settings.resume = files_checkpoint(settings.resume, resumed, sizeof(resumed));
    int result = choose_model(&settings);
    if (result == EXIT_DONE) result = finetune_check(&settings.finetune, settings.resume);
    if (result == EXIT_DONE)
        result = lora_check(&settings.lora, &settings.saved.lora, settings.finetune.freeze, settings.finetune.folds);
    if (result == EXIT_DONE)
        result = schedule_check(&settings.schedule, &settings.fitting, settings.save || settings.resume);
    if (result != EXIT_DONE) return result;
    if (settings.finetune.folds && settings.resume && settings.fitting.steps)
        return wrong_use("train", "--folds with --steps cannot --resume: a fold ends with its epochs; use --epochs");
    struct training training = { .settings = &settings,
        .hosts = tutti_hosts_open(NULL),
        .resume = settings.resume,
        .ignores_hangups = ignores_hangups(),
        .arguments = argv,
        .results = no_results };
    settings.session.training.hosts = training.hosts;
    if (!training.hosts) return work_failed("train", TUTTI_INTERNAL, tutti_message(NULL));
    result = lock_name(&training, &settings);
    if (result == EXIT_DONE)
        result = settings.finetune.folds ? train_folds(&training, &settings) : train(&training, &settings);
    file_lock_release(training.lock);
    report_close(&training.report);
    judge_close(&training.judge);
    session_close(&training.session);
    folds_page_free(&training.folds_page, &training.folds);
    finetune_free(&settings.finetune);
    data_free(&training.data);
    tutti_hosts_close(training.hosts);
    return result;
}
