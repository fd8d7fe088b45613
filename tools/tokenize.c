/* tutti tokenize: shows the tokens of texts, or learns a tokenizer from a text. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tutti_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TEXT = INT32_MAX };

static int failed(void)
{
    return work_failed("tokenize", tutti_last_status(), tutti_message(NULL));
}

/* ----------------------------------------------------------------------------------------------------- learning ----
 */

/* The beginnings and sizes of lines, with their ends. */
struct lines {
    const char **texts;
    int64_t *sizes;
    int64_t count;
};

static tutti_status find_lines(struct lines *lines, const char *text, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < size; i++) count += text[i] == '\n';
    lines->texts = memory_new(count, sizeof(*lines->texts));
    lines->sizes = memory_new(count, sizeof(*lines->sizes));
    if (!lines->texts || !lines->sizes) return TUTTI_NO_MEMORY;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t bytes = end ? (size_t)(end - text) + 1 - at : size - at;
        lines->texts[lines->count] = text + at;
        lines->sizes[lines->count++] = (int64_t)bytes;
        at += bytes;
    }
    return TUTTI_OK;
}

static tutti_status save(const tutti_tokenizer *tokenizer, const char *path)
{
    char *json = tutti_tokenizer_json(tokenizer);
    if (!json) return fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    const tutti_status status = file_write(path, json, strlen(json));
    free(json);
    return status;
}

static int learn(const char *path, const char *saved, const tutti_tokenizer_options *options)
{
    unsigned char *text = NULL;
    size_t size;
    struct lines lines = { 0 };
    tutti_tokenizer *tokenizer = NULL;
    tutti_status status = file_read(path, LARGEST_TEXT, &text, &size);
    if (status == TUTTI_OK) status = find_lines(&lines, (const char *)text, size);
    if (status == TUTTI_OK) tokenizer = tutti_tokenizer_train(lines.texts, lines.sizes, lines.count, options);
    if (tokenizer) status = save(tokenizer, saved);
    int result = EXIT_DONE;
    if (status != TUTTI_OK)
        result = work_failed("tokenize", status, status_message());
    else if (!tokenizer)
        result = failed();
    else
        printf("%s: %lld tokens, learned from %zu bytes\n", saved, (long long)tutti_tokenizer_size(tokenizer), size);
    tutti_tokenizer_close(tokenizer);
    free(lines.texts);
    free(lines.sizes);
    free(text);
    return result;
}

/* ------------------------------------------------------------------------------------------------------ showing ----
 */

static int print_json(const tutti_tokenizer *tokenizer, const tutti_encoding *encoding)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "count %d ids [", (int)encoding->count);
    for (int64_t i = 0; i < encoding->count; i++) json_line_print(&line, "%d", (int)encoding->ids[i]);
    json_line_print(&line, "] tokens [");
    for (int64_t i = 0; i < encoding->count; i++)
        json_line_print(&line, "%s", tutti_tokenizer_token(tokenizer, encoding->ids[i]));
    json_line_print(&line, "]");
    return json_line_end(&line) == TUTTI_OK ? EXIT_DONE : EXIT_WORK_FAILED;
}

/* Tokens as they stand in the vocabulary, each with its id. */
static void print_tokens(const tutti_tokenizer *tokenizer, const tutti_encoding *encoding)
{
    for (int64_t i = 0; i < encoding->count; i++) {
        const char *token = tutti_tokenizer_token(tokenizer, encoding->ids[i]);
        printf("%s%s %d", i ? "  " : "", text_printable(token ? token : "").text, (int)encoding->ids[i]);
    }
    printf("\n");
}

static int show(const char *path, bool json, bool special)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_open(path);
    if (!tokenizer) return failed();
    const tutti_encode_options options = { .size = sizeof(options), .no_special = !special };
    char *line = NULL;
    size_t capacity = 0;
    int result = EXIT_DONE;
    for (ssize_t size; result == EXIT_DONE && (size = getline(&line, &capacity, stdin)) >= 0;) {
        if (size > 0 && line[size - 1] == '\n') size--;
        tutti_encoding encoding = { 0 };
        if (tutti_tokenizer_encode(tokenizer, line, size, &options, &encoding) != TUTTI_OK)
            result = failed();
        else if (json)
            result = print_json(tokenizer, &encoding);
        else
            print_tokens(tokenizer, &encoding);
        tutti_encoding_free(&encoding);
    }
    if (result == EXIT_DONE && ferror(stdin))
        result = work_failed("tokenize", TUTTI_FILE, "cannot read standard input");
    free(line);
    tutti_tokenizer_close(tokenizer);
    return result;
}

int command_tokenize(int argc, char **argv)
{
    static const char *const kinds[] = { "bpe", "wordpiece", "characters", "words", NULL };
    const char *path = NULL, *train = NULL, *saved = NULL;
    bool json = false, no_special = false;
    struct texts special = { .count = 0 };
    tutti_tokenizer_options learned = { .size = sizeof(learned) };
    const struct option options[] = {
        { "json", OPTION(json), NULL, "print a JSON object per line, with ids and tokens" },
        { "no-special", OPTION(no_special), NULL, "without the tokens around a text, such as [CLS]" },
        OPTION_HEADING("Learning a tokenizer"),
        { "train", OPTION(train), "FILE", "learn from this text, line by line", .file = OPTION_READS },
        { "save", OPTION(saved), "FILE", "write the tokenizer.json", .file = OPTION_WRITES },
        { "kind", OPTION(learned.kind), "KIND", "how text becomes tokens", .choices = kinds },
        { "size", OPTION(learned.tokens), "N", "tokens at most; 8000, for words 32000, for characters all that occur",
            1, 1 << 22 },
        { "least", OPTION(learned.least), "N", "what occurs less often becomes no token; 2, for characters 1", 1, 1e9 },
        { "special", OPTION(special), "TOKEN", "a token that stands for itself; may be repeated" },
        { "lowercase", OPTION(learned.lowercase), NULL, "text becomes lower case first" },
    };
    const struct usage usage = { .command = "tokenize",
        .summary = "Shows the tokens of each line of standard input, or learns a tokenizer from a text",
        .argument = "TOKENIZER",
        .argument_optional = true,
        .details = "TOKENIZER is \"bytes\", a tokenizer.json, a vocab.txt of BERT's, a merges.txt of GPT-2's, a "
                   "tokenizer.model of SentencePiece's, or a folder with one of these.",
        OPTION_ROWS(options) };
    const enum parsed parsed = options_parse(&usage, argc, argv, &path);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    if (!path == !train) return wrong_use("tokenize", "give either TOKENIZER or --train FILE");
    if (!train != !saved) return wrong_use("tokenize", "--train and --save belong together");
    learned.special = special.list;
    learned.special_count = special.count;
    return train ? learn(train, saved, &learned) : show(path, json, !no_special);
}
