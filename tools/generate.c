/* tutti generate: continues a text by a language model. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/saved.h"
#include "tutti_finetune.h"
#include "tutti_generate.h"
#include "tutti_text.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 256 };

struct generate {
    struct saved_options saved;
    const char *prompt, *tokenizer_file;
    int64_t tokens;
    bool tokens_given;
    tutti_sampling sampling;
    tutti_storage storage; /* of the weights */
    tutti_tokenizer *tokenizer;
    tutti_encoding encoding; /* of the prompt */
    tutti_generator *generator;
    struct session session;
    int32_t *ids;           /* the prompt's, then the drawn ones */
    int64_t count, printed; /* of ids; bytes of their text that are printed */
};

static int failed(const struct generate *g)
{
    return work_failed("generate", tutti_last_status(), tutti_message(g->session.runtime));
}

/* ---------------------------------------------------------------------------------------------- tokenizer ---- */

static int open_tokenizer(struct generate *g)
{
    struct user_data_options own = { .data.tokenizer = g->tokenizer_file };
    char *json = NULL;
    const tutti_status status = user_data_take_tokenizer(g->saved.weights, &own, &json);
    if (status != TUTTI_OK) return work_failed("generate", status, status_message());
    g->tokenizer = json ? tutti_tokenizer_parse(json) : tutti_tokenizer_open(g->tokenizer_file);
    free(json);
    return g->tokenizer ? EXIT_DONE : failed(g);
}

/* A text begins after the end of another one, or after the end of a line. */
static int encode_prompt(struct generate *g)
{
    const int32_t end = tutti_tokenizer_end(g->tokenizer);
    const char *prompt = g->prompt ? g->prompt : end >= 0 ? "" : "\n";
    if (tutti_tokenizer_encode(g->tokenizer, prompt, (int64_t)strlen(prompt), NULL, &g->encoding) != TUTTI_OK)
        return failed(g);
    g->ids = memory_new((size_t)(g->encoding.count + g->tokens + 1), sizeof(*g->ids));
    if (!g->ids) return work_failed("generate", TUTTI_NO_MEMORY, "no memory for the tokens");
    memcpy(g->ids, g->encoding.ids, (size_t)g->encoding.count * sizeof(*g->ids));
    g->count = g->encoding.count;
    if (g->count == 0 && end >= 0) g->ids[g->count++] = end;
    if (g->count > 0) return EXIT_DONE;
    return wrong_use("generate", "the prompt has no token: give another --prompt");
}

/* Prints what the tokens add to the text. A character of several tokens waits for the last one. */
static void print_text(struct generate *g, bool last)
{
    static const char unknown[] = "\xef\xbf\xbd"; /* of half a character */
    char *text = tutti_tokenizer_decode(g->tokenizer, g->ids, g->count, false);
    if (!text) return;
    int64_t size = (int64_t)strlen(text);
    const int64_t mark = (int64_t)strlen(unknown);
    while (!last && size >= mark && memcmp(text + size - mark, unknown, (size_t)mark) == 0) size -= mark;
    if (size > g->printed) {
        fwrite(text + g->printed, 1, (size_t)(size - g->printed), stdout);
        fflush(stdout);
        g->printed = size;
    }
    free(text);
}

static int take_token(void *user, int32_t id)
{
    struct generate *g = user;
    g->ids[g->count++] = id;
    if (!g->saved.json) print_text(g, false);
    return ferror(stdout);
}

/* ------------------------------------------------------------------------------------------------ network ---- */

struct missing {
    int64_t count;
    char name[128];
};

static void note_missing(
    void *user, tutti_match match, const char *name, const tutti_shape *in_file, const tutti_shape *in_network)
{
    struct missing *missing = user;
    (void)in_file;
    if (match == TUTTI_MATCH_LOADED || !in_network) return;
    if (missing->count++ == 0) snprintf(missing->name, sizeof(missing->name), "%s", name);
}

/* Weights of other programs have names with other beginnings; each parameter must be among them. */
static int load_weights(struct generate *g)
{
    tutti_trainer *trainer = tutti_generator_trainer(g->generator);
    struct missing missing = { 0 };
    char message[256];
    const tutti_match_options options = { .report = note_missing, .user = &missing };
    if (tutti_load_matching(trainer, g->saved.weights, &options, NULL) != TUTTI_OK) return failed(g);
    if (missing.count == 0) return EXIT_DONE;
    snprintf(message, sizeof(message), "%s has no values of %lld parameters, such as %s", g->saved.weights,
        (long long)missing.count, missing.name);
    return work_failed("generate", TUTTI_MISMATCH, message);
}

/* Limits the tokens, unless their number was given, to what is left of the length of the training's texts or, where the
 * weights do not say, of the positions that the network has. */
static int limit_tokens(struct generate *g)
{
    const int64_t trained = g->saved.network.facts.length;
    int64_t most = trained;
    if (trained == 0) {
        struct text_config config = { .file = g->saved.session.config, .weights = g->saved.weights };
        const int result = text_config_read("generate", session_model(g->saved.model), &config);
        if (result != EXIT_DONE) return result;
        most = config.made_of.positions;
    }
    if (!g->tokens_given && most > g->count && most - g->count < g->tokens) g->tokens = most - g->count;
    if (trained > 0 && g->count + g->tokens > trained)
        fprintf(stderr, "warning: the network was trained on texts of %lld tokens, and this one may get %lld\n",
            (long long)trained, (long long)(g->count + g->tokens));
    return EXIT_DONE;
}

static int build(struct generate *g)
{
    struct session *session = &g->session;
    tutti_tensor ids = { -1 };
    int result = limit_tokens(g);
    if (result != EXIT_DONE) return result;
    const int64_t length = g->count + g->tokens;
    g->saved.network.facts.length = length;
    result = saved_build("generate", &g->saved, NULL, 0, NULL, session);
    if (result != EXIT_DONE) return result;
    if (tutti_network_input(session->network, 0, &ids) != TUTTI_OK) return failed(g);
    const bool stores = g->storage != TUTTI_STORE_F32;
    if (stores && tutti_freeze(session->network, "*") != TUTTI_OK) return failed(g);
    if (stores && tutti_store(session->network, "*", g->storage) != TUTTI_OK) return failed(g);
    const tutti_generator_options options = { .length = length, .training = &session->training };
    g->generator = tutti_generator_new(session->network, ids, session->output, &options);
    if (!g->generator) return failed(g);
    return load_weights(g);
}

/* --------------------------------------------------------------------------------------------------- text ---- */

static int report(struct generate *g, int64_t made, double seconds)
{
    struct json_line line;
    const double rate = seconds > 0 ? (double)made / seconds : 0;
    if (!g->saved.json) {
        print_text(g, true);
        printf("\n");
        fprintf(stderr, "%lld tokens in %.2f s: %.1f tokens/s\n", (long long)made, seconds, rate);
        return ferror(stdout) ? work_failed("generate", TUTTI_FILE, "cannot write standard output") : EXIT_DONE;
    }
    char *text = tutti_tokenizer_decode(g->tokenizer, g->ids, g->count, false);
    if (!text) return failed(g);
    json_line_begin(&line, stdout);
    json_line_print(&line, "model %s text %s prompt_tokens %lld tokens %lld seconds %g tokens_per_s %g", g->saved.model,
        text, (long long)(g->count - made), (long long)made, seconds, rate);
    free(text);
    return json_line_end(&line) == TUTTI_OK ? EXIT_DONE : EXIT_WORK_FAILED;
}

static int run(struct generate *g)
{
    int64_t made = 0;
    const int32_t end = tutti_tokenizer_end(g->tokenizer);
    if (!g->saved.json) print_text(g, false);
    const tutti_generation generation = { .prompt = g->ids,
        .prompt_count = g->count,
        .tokens = g->tokens,
        .ends = &end,
        .end_count = end >= 0,
        .sampling = g->sampling,
        .token = take_token,
        .user = g };
    const double started = clock_seconds();
    if (tutti_generate(g->generator, &generation, NULL, &made) != TUTTI_OK) return failed(g);
    return report(g, made, clock_seconds() - started);
}

static enum parsed parse(struct generate *g, int argc, char **argv)
{
    const struct option options[] = {
        { "weights", OPTION(g->saved.weights), "FILE",
            "safetensors file of a language model, or the folder of a published one", .file = OPTION_READS_WEIGHTS },
        { "prompt", OPTION(g->prompt), "TEXT", "how the text begins (default: as a new text)" },
        { "tokens", OPTION(g->tokens), "N",
            "how many tokens to add, at most; without it, no more than the length of the training's texts leaves", 1,
            1 << 24, .given = &g->tokens_given },
        { "temperature", OPTION(g->sampling.temperature), "T",
            "draw more of the less likely tokens, the higher it is; 0: always the likeliest (default 0.8)", 0, 1000 },
        { "top-k", OPTION(g->sampling.top_k), "K", "draw only from the K likeliest tokens (default all)", 1, 1e9 },
        { "top-p", OPTION(g->sampling.top_p), "P",
            "draw only from the likeliest tokens whose probabilities add up to P (default all)", 1e-6, 1 },
        { "store", OPTION(g->storage), "TYPE",
            "keep the weights as fp32, bf16, or int8 with a scale for each 64 (default fp32)", .choices = lora_bases },
        { "seed", OPTION(g->sampling.seed), "N", "of what is drawn (default 0)", 0, 9e15 },
        { "tokenizer", OPTION(g->tokenizer_file), "FILE",
            "bytes, or a tokenizer's file or folder, if the weights do not say", .file = OPTION_READS },
        { "json", OPTION(g->saved.json), NULL, "print the text as a JSON object, when it is whole" },
        SESSION_OPTIONS(g->saved.session),
    };
    const struct usage usage = { .command = "generate",
        .summary = "Continues a text, token by token, by a language model",
        .argument = "MODEL",
        .arguments = session_models(),
        .from_options = { "weights" },
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &g->saved.model);
}

static int check_network(const struct generate *g)
{
    const struct model_facts *facts = &g->saved.network.facts;
    const struct model *model = session_model(g->saved.model);
    const bool predicts = facts->vocabulary > 0 ? facts->tokens_are_classes : model_predicts_tokens(model);
    if (predicts) return EXIT_DONE;
    return wrong_use("generate", "the network does not predict next tokens: name weights of a language model");
}

int command_generate(int argc, char **argv)
{
    struct generate g = { .saved = SAVED_DEFAULTS, .tokens = DEFAULT_TOKENS, .sampling.temperature = 0.8f };
    const enum parsed parsed = parse(&g, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = saved_choose("generate", &g.saved);
    if (result == EXIT_DONE && !g.saved.weights)
        result = wrong_use("generate", "--weights is missing: name the safetensors file to use");
    if (result == EXIT_DONE) result = check_network(&g);
    if (result == EXIT_DONE) result = files_check_weights("generate", "weights", g.saved.weights);
    if (result == EXIT_DONE) result = open_tokenizer(&g);
    if (result == EXIT_DONE) result = encode_prompt(&g);
    if (result == EXIT_DONE) result = build(&g);
    if (result == EXIT_DONE) result = run(&g);
    tutti_generator_free(g.generator);
    session_close(&g.session);
    tutti_tokenizer_close(g.tokenizer);
    tutti_encoding_free(&g.encoding);
    saved_free(&g.saved);
    free(g.ids);
    return result;
}
