/* The table of the operations' tests, and the program around them.
 *
 *   operations                                     every case: forward and gradients, with every implementation
 *   operations --correct | --gradient              forward only; forward and gradients (the default)
 *   operations --speed | --support                 time and GFLOP/s of each node; what was chosen, what refused and why
 *   operations [...] conv2d                        the cases of one operation
 *   operations [...] conv2d n2 c3 h7 w9 k5 r3      this case, as a failure prints it
 *   operations [...] --cases few.txt               the cases of a file, one a line (chosen.txt: see choose.py)
 *   operations [...] --force conv2d=plain          with these implementations only
 *   operations [...] --bf16                        the cases for it, with values stored as bfloat16
 *   operations [...] --tf32                        with products that may round their operands to TF32
 *   operations [...] --tiles                       with products of tiles (AMX), emulated where the processor has none
 *   operations [...] --at-most 500                 the cases of so few numbers in input, output and parameters
 *   operations [...] --memory-limit 1000000        on devices with so many bytes: larger work is divided into parts
 *   operations [...] --part 2/16                   the second of 16 parts of these cases, to run parts side by side
 *   operations [...] --once                        one training step of each, not two that must give the same bytes
 *   operations [...] --widest                      on CPUs with their widest vectors only, besides GPUs
 *   operations [...] --record FILE                 writes the launches of each run into FILE (record.c, choose.py)
 *
 * Devices are those of TUTTI_DEVICES, else all. Each runs a case with the kernels of its own class and vector width,
 * then as a GPU and with narrower vectors, unless --widest, TUTTI_DEVICE_CLASS or TUTTI_VECTOR_WIDTH says
 * with which. */
#include <check.h>
#undef fail /* base/status.h has its own */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/device.h"
#include "tests/layers/expect.h"
#include "tests/tiles.h"

/* The lists of the files in meson.build, in this order. */
#define LIST_DECLARE(file) extern const struct operation_test *const file##_list[];
#define LIST_ADDRESS(file) file##_list,
OPERATION_TEST_FILES(LIST_DECLARE)
static const struct operation_test *const *const lists[] = { OPERATION_TEST_FILES(LIST_ADDRESS) };
enum { LISTS = sizeof lists / sizeof *lists };

enum mode { MODE_CORRECT, MODE_GRADIENT, MODE_SPEED, MODE_SUPPORT };

/* Every case of the run; Check's loop tests get a position in it. */
struct entry {
    const struct operation_test *test;
    const char *line;
    int first_run, run_count; /* in chosen_runs; 0: every device, every implementation */
};
enum { ENTRIES = 1024, CHOSEN_RUNS = 4096 };
static struct entry entries[ENTRIES];
static int entry_count;
/* "gpu" or "cpu"; after a space the implementations to force, if any. */
static const char *chosen_runs[CHOSEN_RUNS];
static int chosen_run_count;
static enum mode mode = MODE_GRADIENT;
static const char *forced;
static tutti_precision precision;
static size_t memory_limit; /* 0: none */
static bool tiles;

/* The kernels that devices run, each over the same expected results. NULL: a device's own. */
static struct setting {
    const char *class, *width;
    tutti_runtime *runtime; /* NULL: not wanted in this run */
} settings[] = { { NULL, NULL, NULL }, { "gpu", NULL, NULL }, { NULL, "8", NULL }, { NULL, "4", NULL } };
enum { SETTINGS = sizeof settings / sizeof *settings, WIDEST = 2 };
static int wanted_settings = SETTINGS;

enum { MESSAGE = 3000 }; /* bytes of a case's problems that are shown: Check ends the program at messages above 8 KB */

static void run_choice(
    const struct expectation *e, struct device *device, const char *force, struct text *problems, struct text *others)
{
    struct text found = { 0 }, chosen = { 0 };
    record_run(device, e->c.line, force);
    run_case(e, device, force, mode == MODE_GRADIENT, &found, &chosen, others);
    if (found.size)
        text_append(problems, "%s  on %s as a %s with vectors of %d, with %s\n%s", e->c.line, device->can.name,
            device->can.class == DEVICE_GPU ? "GPU" : "CPU", device->can.vector_width,
            force             ? force
                : chosen.data ? chosen.data
                              : "its own choice",
            found.data);
    text_free(&found);
    text_free(&chosen);
}

/* The case with every implementation: what a plan takes, then each node's second that fits, and so on. */
static void run_choices(const struct expectation *e, struct device *device, struct text *problems)
{
    struct text others[CHOICES] = { { 0 } };
    run_choice(e, device, forced, problems, forced || precision == TUTTI_BF16 ? NULL : others);
    for (int n = 0; n < CHOICES; n++) {
        if (others[n].size) run_choice(e, device, others[n].data, problems, NULL);
        text_free(&others[n]);
    }
}

/* Whether the device has run with these kernels in an earlier setting: a GPU always has, or a CPU of 8 floats. */
static bool repeats(const struct setting *setting, int d)
{
    const struct capabilities *can = &setting->runtime->devices[d].can;
    for (const struct setting *earlier = settings; earlier < setting; earlier++) {
        const struct capabilities *other = &earlier->runtime->devices[d].can;
        if (other->class == can->class && (can->class == DEVICE_GPU || other->vector_width == can->vector_width))
            return true;
    }
    return false;
}

/* A CPU-class device with the vectors that it has, or the first one as a GPU. */
static struct device *device_for(const char *run)
{
    const enum device_class wanted = !strncmp(run, "gpu", 3) ? DEVICE_GPU : DEVICE_CPU;
    for (const struct setting *s = settings; s < settings + SETTINGS && s->runtime; s++)
        for (int d = 0; d < s->runtime->count; d++)
            if (s->runtime->devices[d].can.class == wanted) return &s->runtime->devices[d];
    return NULL;
}

static void run_chosen(const struct expectation *e, const struct entry *entry, struct text *problems)
{
    for (int i = entry->first_run; i < entry->first_run + entry->run_count; i++) {
        struct device *device = device_for(chosen_runs[i]);
        const char *force = strchr(chosen_runs[i], ' ');
        if (device) run_choice(e, device, force ? force + 1 : NULL, problems, NULL);
    }
}

static void run_everywhere(const struct expectation *e, struct text *problems)
{
    for (const struct setting *s = settings; s < settings + SETTINGS && s->runtime; s++)
        for (int d = 0; d < s->runtime->count; d++) {
            struct device *device = &s->runtime->devices[d];
            if (repeats(s, d)) continue;
            if (precision == TUTTI_BF16 && device->can.class == DEVICE_GPU && s != settings)
                continue; /* its products round: other data are needed (see "operations bf16 gpu" in meson.build) */
            run_choices(e, device, problems);
        }
}

/* Speeds and refusals are those of the devices of the first setting. */
static bool print_tables(const struct expectation *e)
{
    bool good = true;
    for (int d = 0; good && d < settings[0].runtime->count; d++) {
        struct device *device = &settings[0].runtime->devices[d];
        good = mode == MODE_SPEED ? measure_speed(e, device, forced) : print_support(e, device);
    }
    return good;
}

static bool run_entry(const struct entry *entry, struct text *problems)
{
    struct expectation e;
    bool good =
        expectation_make(&e, settings[0].runtime, entry->test, entry->line, mode == MODE_GRADIENT, precision, problems);
    if (problems->size) text_append(problems, "  in %s\n", entry->line);
    if (good && (mode == MODE_SPEED || mode == MODE_SUPPORT))
        good = print_tables(&e);
    else if (good && entry->run_count)
        run_chosen(&e, entry, problems);
    else if (good)
        run_everywhere(&e, problems);
    expectation_free(&e);
    return good && !problems->size;
}

START_TEST(test_entry)
{
    struct text problems = { 0 };
    bool good = run_entry(&entries[_i], &problems);
    char *text = text_take(&problems);
    if (!good) ck_abort_msg("%s\n%.*s", entries[_i].line, MESSAGE, text ? text : "it could not run");
    free(text);
}
END_TEST

static const struct operation_test *find_test(const char *name)
{
    size_t size = strcspn(name, " ");
    for (int l = 0; l < LISTS; l++)
        for (int i = 0; lists[l][i]; i++)
            if (strlen(lists[l][i]->name) == size && !strncmp(lists[l][i]->name, name, size)) return lists[l][i];
    return NULL;
}

static void add_all(const struct operation_test *test)
{
    for (const char *const *line = precision == TUTTI_BF16 ? test->bf16_cases : test->cases; line && *line; line++)
        if (entry_count < ENTRIES) entries[entry_count++] = (struct entry) { .test = test, .line = *line };
}

/* A case, or every case of an operation. */
static bool add_line(const char *line)
{
    const struct operation_test *test = find_test(line);
    if (!test) return fprintf(stderr, "there is no test of an operation named as in '%s'\n", line), false;
    if (!strchr(line, ' '))
        add_all(test);
    else if (entry_count < ENTRIES)
        entries[entry_count++] = (struct entry) { .test = test, .line = line };
    return true;
}

/* One Check case for each operation, each of its lines a test. */
static int run_suite(void)
{
    Suite *suite = suite_create("operations");
    for (int first = 0; first < entry_count;) {
        int last = first;
        while (last < entry_count && entries[last].test == entries[first].test) last++;
        TCase *tcase = tcase_create(entries[first].test->name);
        tcase_set_timeout(tcase, 0);
        tcase_add_loop_test(tcase, test_entry, first, last);
        suite_add_tcase(suite, tcase);
        first = last;
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* OpenCL drivers' threads do not survive a fork */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

static int run_tables(void)
{
    bool good = true;
    for (int i = 0; i < entry_count; i++) {
        struct text problems = { 0 };
        good &= run_entry(&entries[i], &problems);
        if (problems.size) fprintf(stderr, "%s", problems.data);
        text_free(&problems);
    }
    return good ? 0 : 1;
}

/* One run of the last case. */
static bool add_run(const char *run)
{
    if (!entry_count || chosen_run_count == CHOSEN_RUNS)
        return fprintf(stderr, "a run without a case, or more than %d runs: '%s'\n", CHOSEN_RUNS, run), false;
    struct entry *entry = &entries[entry_count - 1];
    if (!entry->run_count++) entry->first_run = chosen_run_count;
    chosen_runs[chosen_run_count++] = run;
    return true;
}

/* Every line of a file; the entries keep the text. Indented lines are runs of the case above them. */
static bool add_file(const char *path, char **text)
{
    unsigned char *data = NULL;
    size_t size = 0;
    if (file_read(path, 1 << 20, &data, &size) == TUTTI_OK) *text = strndup((char *)data, size);
    free(data);
    if (!*text) return fprintf(stderr, "no cases: %s\n", tutti_message(NULL)), false;
    for (char *next = NULL, *line = strtok_r(*text, "\n", &next); line; line = strtok_r(NULL, "\n", &next))
        if (*line == '#')
            continue;
        else if (*line == ' ' ? !add_run(line + strspn(line, " ")) : !add_line(line))
            return false;
    return true;
}

/* Reads the arguments after the options: nothing, an operation, or a case in one or several words. */
static bool choose_entries(int count, char **words)
{
    static char line[512];
    for (int i = 0; i < count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? " " : "", words[i]);
    for (int l = 0; !count && l < LISTS; l++)
        for (int i = 0; lists[l][i]; i++) add_all(lists[l][i]);
    return !count || add_line(line);
}

/* "2/16": keeps the second of 16 parts. */
static bool choose_part(const char *text)
{
    int part = 0, parts = 0, end = 0;
    if (sscanf(text, "%d/%d%n", &part, &parts, &end) != 2 || text[end] || part < 1 || part > parts) {
        fprintf(stderr, "--part is '%s', and must be such as 2/16\n", text);
        return false;
    }
    int first = entry_count * (part - 1) / parts, last = entry_count * part / parts;
    memmove(entries, entries + first, (size_t)(last - first) * sizeof *entries);
    entry_count = last - first;
    return true;
}

/* Keeps the small cases, and says how many these are. */
static void keep_small(int64_t most)
{
    const int all = entry_count;
    entry_count = 0;
    for (int i = 0; i < all; i++)
        if (case_is_within(settings[0].runtime, entries[i].test, entries[i].line, most))
            entries[entry_count++] = entries[i];
    printf("%d of %d cases have at most %lld numbers\n", entry_count, all, (long long)most);
}

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Speeds and refusals are those of devices as they are, or as the environment wants them. */
static bool open_runtimes(void)
{
    bool given = getenv("TUTTI_DEVICE_CLASS") || getenv("TUTTI_VECTOR_WIDTH");
    int count = given || mode == MODE_SPEED || mode == MODE_SUPPORT ? 1 : wanted_settings;
    for (struct setting *s = settings; s < settings + count; s++) {
        if (!given) set_or_unset("TUTTI_DEVICE_CLASS", s->class);
        if (!given) set_or_unset("TUTTI_VECTOR_WIDTH", s->width);
        s->runtime = tutti_open(&(tutti_runtime_options) {
            .devices = getenv("TUTTI_DEVICES") ? NULL : "all", .memory_limit = memory_limit });
        if (!s->runtime || !s->runtime->count) return false;
        const char *refusal = tiles ? tiles_use(s->runtime) : NULL;
        if (refusal) return fail(TUTTI_UNSUPPORTED, "%s", refusal) == TUTTI_OK;
    }
    return true;
}

static void close_runtimes(void)
{
    for (struct setting *s = settings; s < settings + SETTINGS; s++)
        if (s->runtime) tutti_close(s->runtime);
}

int main(int argc, char **argv)
{
    const char *part = "1/1", *file = NULL;
    char *lines = NULL;
    int64_t most = INT64_MAX;
    int at = 1;
    for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
        if (!strcmp(argv[at], "--correct"))
            mode = MODE_CORRECT;
        else if (!strcmp(argv[at], "--gradient"))
            mode = MODE_GRADIENT;
        else if (!strcmp(argv[at], "--speed"))
            mode = MODE_SPEED;
        else if (!strcmp(argv[at], "--support"))
            mode = MODE_SUPPORT;
        else if (!strcmp(argv[at], "--bf16"))
            precision = TUTTI_BF16;
        else if (!strcmp(argv[at], "--once"))
            run_once = true;
        else if (!strcmp(argv[at], "--widest"))
            wanted_settings = WIDEST;
        else if (!strcmp(argv[at], "--tf32"))
            precision = TUTTI_TF32;
        else if (!strcmp(argv[at], "--tiles"))
            tiles = true;
        else if (!strcmp(argv[at], "--force") && at + 1 < argc)
            forced = argv[++at];
        else if (!strcmp(argv[at], "--at-most") && at + 1 < argc)
            most = atoll(argv[++at]);
        else if (!strcmp(argv[at], "--memory-limit") && at + 1 < argc)
            memory_limit = (size_t)atoll(argv[++at]);
        else if (!strcmp(argv[at], "--cases") && at + 1 < argc)
            file = argv[++at];
        else if (!strcmp(argv[at], "--record") && at + 1 < argc) {
            if (!record_open(argv[++at])) return perror(argv[at]), 2;
        } else if (!strcmp(argv[at], "--part") && at + 1 < argc)
            part = argv[++at];
        else
            return fprintf(stderr, "unknown option %s: see the head of operations.c\n", argv[at]), 2;
    }
    if (file ? !add_file(file, &lines) : !choose_entries(argc - at, argv + at)) return 2;
    if (!open_runtimes()) {
        fprintf(stderr, "no device to test on: %s\n", tutti_message(NULL));
        return 1;
    }
    if (most != INT64_MAX) keep_small(most);
    skip_differences = forced && strcmp(forced, "nothing") != 0; /* of kernels alone: the plan's choice has them */
    if (!choose_part(part)) return 2;
    int result = mode == MODE_SPEED || mode == MODE_SUPPORT ? run_tables() : run_suite();
    close_runtimes();
    if (!record_close()) return perror("--record"), 1;
    free(lines);
    return result;
}
