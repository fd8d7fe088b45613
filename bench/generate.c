/* How fast a language model continues a text, and how fast the memory could give its weights.
 *
 *   generate MODEL [TOKENS [TEMPERATURE [STORE [LENGTH]]]]    STORE: fp32, bf16 or int8; LENGTH: of the longest text,
 *                                                             which caches have room for. With PROFILE in the
 *                                                             environment, also the times of a token's launches
 *
 * A token needs each weight once. So the limit is what two threads take to read as many bytes, measured before and
 * after the tokens. Weights are random; times are those of single tokens, with drawing them, after eight that are not
 * counted. One line of JSON: seconds of a token and of reading, least and median, and the limit's share of the least.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "models/models.h"
#include "tutti_finetune.h"
#include "tutti_generate.h"
#include "tutti_inspect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 2, READS = 8, UNCOUNTED = 8, MOST_TOKENS = 1000, PROMPT = 3 };

typedef unsigned long long words __attribute__((vector_size(32)));

struct reader {
    const words *from;
    size_t count;
    words sum;
};

static void *read_all(void *user)
{
    struct reader *reader = user;
    words a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    for (size_t i = 0; i + 4 <= reader->count; i += 4) {
        a ^= reader->from[i];
        b ^= reader->from[i + 1];
        c ^= reader->from[i + 2];
        d ^= reader->from[i + 3];
    }
    reader->sum = a ^ b ^ c ^ d;
    return NULL;
}

/* Reads the array READS times and writes the seconds of each. */
static void measure_reading(const words *from, size_t count, double *seconds)
{
    for (int r = 0; r < READS; r++) {
        pthread_t threads[READERS];
        struct reader readers[READERS];
        const double started = clock_seconds();
        for (int t = 0; t < READERS; t++) {
            readers[t] = (struct reader) { .from = from + count / READERS * (size_t)t, .count = count / READERS };
            if (pthread_create(&threads[t], NULL, read_all, &readers[t]) != 0) exit(1);
        }
        for (int t = 0; t < READERS; t++) pthread_join(threads[t], NULL);
        seconds[r] = clock_seconds() - started;
    }
}

static int shorter_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct times {
    double seconds[MOST_TOKENS + UNCOUNTED], last;
    int count;
};

static int note(void *user, int32_t id)
{
    struct times *times = user;
    const double now = clock_seconds();
    (void)id;
    times->seconds[times->count++] = now - times->last;
    times->last = now;
    return 0;
}

static tutti_generator *make(
    tutti_runtime *runtime, const char *name, tutti_storage storage, int64_t length, int64_t *parameters)
{
    const struct model *model = model_find(name);
    if (!model || !model_predicts_tokens(model)) return NULL;
    tutti_network *network = tutti_network_new(runtime);
    const int64_t sequence = TUTTI_SEQUENCE;
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, &sequence, 1);
    const struct model_facts facts = { .length = length, .tokens_are_classes = true };
    const tutti_tensor logits = model->build_for(network, ids, 0, &facts);
    tutti_shape shape = { 0 };
    for (int p = 0; tutti_parameter_info(network, p, NULL, &shape, NULL) == TUTTI_OK; p++) {
        int64_t elements = 1;
        for (int i = 0; i < shape.rank; i++) elements *= shape.sizes[i];
        *parameters += elements;
    }
    if (storage != TUTTI_STORE_F32) {
        (void)tutti_freeze(network, "*");
        (void)tutti_store(network, "*", storage);
    }
    tutti_generator *generator =
        tutti_generator_new(network, ids, logits, &(tutti_generator_options) { .length = length });
    tutti_network_free(network);
    return generator;
}

static int failed(const char *what)
{
    fprintf(stderr, "generate: %s: %s\n", what, tutti_message(NULL));
    return 1;
}

static int measure(tutti_generator *generator, int64_t parameters, int64_t tokens, float temperature)
{
    static struct times times;
    static double reading[2 * READS];
    const size_t count = (size_t)parameters * sizeof(float) / sizeof(words);
    const int32_t prompt[PROMPT] = { 1, 2, 3 };
    words *array = aligned_alloc(sizeof(words), count * sizeof(words));
    if (!array) return failed("memory");
    memset(array, 1, count * sizeof(words));
    const tutti_generation generation = { .prompt = prompt,
        .prompt_count = PROMPT,
        .tokens = tokens + UNCOUNTED,
        .sampling = { .temperature = temperature },
        .token = note,
        .user = &times };
    measure_reading(array, count, reading);
    times.last = clock_seconds();
    if (tutti_generate(generator, &generation, NULL, NULL) != TUTTI_OK) return failed("tokens");
    measure_reading(array, count, reading + READS);
    free(array);
    double *counted = times.seconds + UNCOUNTED;
    qsort(counted, (size_t)tokens, sizeof(double), shorter_first);
    qsort(reading, 2 * READS, sizeof(double), shorter_first);
    printf("{\"parameters\": %lld, \"tokens\": %lld, \"least_s\": %.6f, \"median_s\": %.6f, \"reading_least_s\": %.6f, "
           "\"reading_median_s\": %.6f, \"share_of_limit\": %.3f}\n",
        (long long)parameters, (long long)tokens, counted[0], counted[tokens / 2], reading[0], reading[READS],
        reading[0] / counted[0]);
    return 0;
}

int main(int argc, char **argv)
{
    const int64_t tokens = argc > 2 ? atoll(argv[2]) : 128;
    const int64_t length = argc > 5 ? atoll(argv[5]) : tokens + UNCOUNTED + PROMPT;
    const char *const store = argc > 4 ? argv[4] : "fp32";
    const tutti_storage storage = strcmp(store, "bf16") == 0 ? TUTTI_STORE_BF16
        : strcmp(store, "int8") == 0                         ? TUTTI_STORE_INT8
                                                             : TUTTI_STORE_F32;
    if (argc < 2 || tokens < 1 || tokens > MOST_TOKENS) return failed("MODEL [TOKENS [TEMPERATURE [STORE [LENGTH]]]]");
    tutti_runtime *runtime = tutti_open(NULL);
    int64_t parameters = 0;
    tutti_generator *generator = runtime ? make(runtime, argv[1], storage, length, &parameters) : NULL;
    if (!generator) return failed(argv[1]);
    int result = measure(generator, parameters, tokens, argc > 3 ? strtof(argv[3], NULL) : 0.0f);
    if (result == 0 && getenv("PROFILE")) {
        char *text = tutti_profile(tutti_generator_trainer(generator), 0, NULL);
        fputs(text ? text : tutti_message(runtime), stderr);
        free(text);
    }
    tutti_generator_free(generator);
    tutti_close(runtime);
    return result;
}
