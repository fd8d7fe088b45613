/* tutti bench: the time of a training step, or of inference, on random inputs held in memory. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "tools/commands.h"
#include "tools/made_samples.h"
#include "tools/results.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_STEPS = 10, DEFAULT_WARM_UP = 2, MOST_TO_SETTLE = 5000 };

struct settings {
    const char *model, *mode, *input, *trace;
    int64_t steps, warm_up, classes;
    double seconds;
    bool json, profile;
    struct session_options session;
};

struct bench {
    struct session session;
    struct made_samples samples;
    bool train;
    double *milliseconds; /* of each timed step */
    size_t steps, room;
    /* Seconds from tutti_compile() to the end of the first step, and from the start of the process to the beginning
     * and the end of that step. */
    double build_s, ready_s, first_step_s;
};

static const char *const modes[] = { "train", "infer", NULL };

static const char *const details =
    "Inputs are generated once: floats are random, integers are 1, booleans are true. A training step is upload,\n"
    "forward, loss, backward and update by SGD with momentum 0.9. In the results, build_s is the time from compiling\n"
    "until the first step has ended, ready_s the time from the start of the process until the first step begins, and\n"
    "first_step_s until it ends.\n"
    "Steps are not measured while warming up and while automatic shares change; with --warm-up 0 all are measured.\n"
    "--seconds repeats short steps until their times are reliable.";

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        { "mode", OPTION(s->mode), "MODE", "kind of step", .choices = modes },
        { "batch", OPTION(s->session.training.batch), "N", "samples of a step, over all devices (default the model's)",
            1, 1e9 },
        { "steps", OPTION(s->steps), "N", "steps to measure", 1, 1e6 },
        { "warm-up", OPTION(s->warm_up), "N", "steps before them that are not measured", 0, 1e6 },
        { "seconds", OPTION(s->seconds), "X", "seconds to warm up, and to measure, at least", 0, 1e6 },
        { "input", OPTION(s->input), "CxHxW", "shape of a sample (default the model's)" },
        { "classes", OPTION(s->classes), "N", "number of outputs (default the model's)", 1, 1e6 },
        { "profile", OPTION(s->profile), NULL, "print times by operation, kernel and launch to standard error" },
        { "trace", OPTION(s->trace), "FILE", "write the times of the first device to FILE, for chrome://tracing",
            .file = OPTION_WRITES },
        { "json", OPTION(s->json), NULL, "print the result as a JSON object" },
        SESSION_OPTIONS(s->session),
        RECOMPUTE_OPTION(s->session),
        EXCHANGE_OPTIONS(s->session),
    };
    const struct usage usage = { .command = "bench",
        .summary = "Measures the time of a step of MODEL",
        MODEL_ARGUMENT,
        .details = details,
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->model);
}

/* As in a training, the next step's samples are known when a step begins. */
static tutti_status train_step(const struct bench *bench)
{
    tutti_metrics metrics;
    const int64_t batch = bench->session.training.batch;
    tutti_trainer *trainer = bench->session.trainer;
    const tutti_feed *feeds = bench->samples.feeds;
    const int count = bench->samples.input_count + 1;
    const tutti_status status = tutti_train_prefetch(trainer, feeds, count, batch);
    return status == TUTTI_OK ? tutti_train_step(trainer, feeds, count, batch, &metrics) : status;
}

static tutti_status run_step(struct bench *bench)
{
    const int64_t batch = bench->session.training.batch;
    const struct made_samples *samples = &bench->samples;
    const tutti_status status = bench->train
        ? train_step(bench)
        : tutti_infer(bench->session.trainer, samples->feeds, samples->input_count, batch, &samples->fetch, 1);
    return status == TUTTI_OK ? status : fail(status, "%s", tutti_message(bench->session.runtime));
}

static tutti_status note_time(struct bench *bench, double milliseconds)
{
    void *array = bench->milliseconds;
    tutti_status status = memory_grow(&array, &bench->room, bench->steps + 1, sizeof(*bench->milliseconds));
    if (status != TUTTI_OK) return status;
    bench->milliseconds = array;
    bench->milliseconds[bench->steps++] = milliseconds;
    return TUTTI_OK;
}

/* Returns the seconds since the system started this process, in hundredths; negative if the system does not tell. */
static double process_seconds(void)
{
    char line[1024] = "";
    unsigned long long ticks = 0;
    struct timespec now;
    FILE *file = fopen("/proc/self/stat", "r");
    const char *read = file ? fgets(line, sizeof(line), file) : NULL;
    const char *rest = read ? strrchr(line, ')') : NULL; /* before it, the program's name, which may be anything */
    if (file) fclose(file);
    for (int field = 2; rest && field < 22; field++) rest = strchr(rest + 1, ' ');
    if (!rest || sscanf(rest, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static void first_step_done(struct bench *bench, double started)
{
    if (bench->build_s != 0) return;
    bench->build_s = clock_seconds() - started;
    bench->first_step_s = process_seconds();
}

/* Automatic shares take some steps to find. */
static bool settled(const struct bench *bench)
{
    tutti_device_times times = { .size = sizeof(times) };
    return tutti_report_times(bench->session.trainer, 0, &times) != TUTTI_OK || times.settled;
}

static tutti_status warm_up(struct bench *bench, const struct settings *s, double started)
{
    tutti_status status = TUTTI_OK;
    double begun = clock_seconds();
    for (int64_t i = 0; status == TUTTI_OK && (i < s->warm_up || clock_seconds() < begun + s->seconds); i++) {
        status = run_step(bench);
        if (i > 0) continue;
        begun = clock_seconds();
        first_step_done(bench, started);
    }
    for (int i = 0; status == TUTTI_OK && s->warm_up > 0 && bench->train && !settled(bench) && i < MOST_TO_SETTLE; i++)
        status = run_step(bench);
    return status;
}

/* Fills milliseconds in ascending order. */
static tutti_status time_steps(struct bench *bench, const struct settings *s, double started)
{
    tutti_status status = TUTTI_OK;
    double begun = clock_seconds(), before = begun;
    for (int64_t i = 0; status == TUTTI_OK && (i < s->steps || before < begun + s->seconds); i++) {
        status = run_step(bench);
        double now = clock_seconds();
        if (status == TUTTI_OK) status = note_time(bench, 1000 * (now - before));
        first_step_done(bench, started);
        before = clock_seconds();
    }
    if (status == TUTTI_OK) qsort(bench->milliseconds, bench->steps, sizeof(double), number_compare);
    return status;
}

static double median(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static uint64_t memory_of_devices(const struct session *session)
{
    uint64_t bytes = 0;
    tutti_device_report report;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++) bytes += report.memory_bytes;
    return bytes;
}

static int report(const struct bench *bench, const struct settings *s)
{
    const int64_t batch = bench->session.training.batch;
    double least = bench->milliseconds[0], middle = median(bench->milliseconds, bench->steps);
    uint64_t memory = memory_of_devices(&bench->session);
    if (!s->json) {
        printf(
            "%s %s, batch %lld: %.3f ms per step (min), %.3f ms (median), %.1f samples/s; built in %.1f s, first step "
            "from %.2f to %.2f s, %.1f MiB on devices\n",
            s->model, s->mode, (long long)batch, least, middle, 1000 * (double)batch / middle, bench->build_s,
            bench->ready_s, bench->first_step_s, (double)memory / (1 << 20));
        times_text(stdout, &bench->session);
        return EXIT_DONE;
    }
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "model %s mode %s batch %lld steps %lld ms_per_step_min %g ms_per_step_median %g", s->model,
        s->mode, (long long)batch, (long long)bench->steps, least, middle);
    json_line_print(&line, "samples_per_s %g build_s %g ready_s %g first_step_s %g device_memory_bytes %llu",
        1000 * (double)batch / middle, bench->build_s, bench->ready_s, bench->first_step_s, (unsigned long long)memory);
    devices_json(&line, &bench->session);
    return json_line_end(&line) == TUTTI_OK ? EXIT_DONE : EXIT_WORK_FAILED;
}

static int show_profile(const struct bench *bench, const struct settings *s)
{
    tutti_device_report report;
    for (int i = 0; tutti_report(bench->session.trainer, i, &report) == TUTTI_OK; i++) {
        char *text = tutti_profile(bench->session.trainer, i, i == 0 ? s->trace : NULL);
        if (!text) return work_failed("bench", TUTTI_DEVICE, tutti_message(bench->session.runtime));
        if (s->profile) fprintf(stderr, "device %d  %s\n%s", report.index, report.name, text);
        free(text);
    }
    return EXIT_DONE;
}

static int run_bench(struct bench *bench, struct settings *s)
{
    const struct model *model = session_model(s->model);
    tutti_shape shape = model->input;
    bench->train = !strcmp(s->mode, "train");
    if (!s->session.training.batch) s->session.training.batch = model->batch;
    int result = s->input ? parse_shape("bench", s->input, &shape) : EXIT_DONE;
    if (result != EXIT_DONE || (result = session_open(&bench->session, "bench", &s->session)) != EXIT_DONE)
        return result;
    bench->session.reading.any_ports = !s->classes;
    result = session_build(&bench->session, model, shape, s->classes ? (int)s->classes : model->classes);
    if (result != EXIT_DONE) return result;
    tutti_status status = made_samples_new(&bench->session, &bench->samples);
    if (status != TUTTI_OK) return work_failed("bench", status, status_message());
    double started = clock_seconds();
    tutti_training *training = &bench->session.training;
    training->loss = bench->train ? measured_loss(&bench->session) : TUTTI_LOSS_NONE;
    training->learning_rate = 0.01f;
    training->momentum = 0.9f;
    result = session_compile(&bench->session);
    if (result != EXIT_DONE) return result;
    bench->ready_s = process_seconds();
    status = warm_up(bench, s, started);
    if (status == TUTTI_OK) {
        tutti_report_reset(bench->session.trainer);
        status = time_steps(bench, s, started);
    }
    if (status != TUTTI_OK) return work_failed("bench", status, status_message());
    result = report(bench, s);
    return result == EXIT_DONE && (s->profile || s->trace) ? show_profile(bench, s) : result;
}

int command_bench(int argc, char **argv)
{
    struct settings settings = { .mode = "train", .steps = DEFAULT_STEPS, .warm_up = DEFAULT_WARM_UP };
    struct bench bench = { 0 };
    enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = run_bench(&bench, &settings);
    session_close(&bench.session);
    made_samples_free(&bench.samples);
    free(bench.milliseconds);
    return result;
}
