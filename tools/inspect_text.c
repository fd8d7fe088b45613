/* Facts of data for people: a summary, and a table of columns that fits the terminal. */
#include "tools/inspect.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH = 100,
    LEAST_WIDTH = 72,
    MOST_WIDTH = 160,
    LABEL = 11,
    SHOWN_COLUMNS = 40,
    SHOWN_CLASSES = 12,
    SHOWN_SIZES = 5
};

static int terminal_width(void)
{
    struct winsize window = { .ws_col = 0 };
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || !window.ws_col) return WIDTH;
    return window.ws_col < LEAST_WIDTH ? LEAST_WIDTH : window.ws_col > MOST_WIDTH ? MOST_WIDTH : window.ws_col;
}

static int length_of(const char *text)
{
    int count = 0;
    for (int bytes; *text; count++) text += (bytes = text_character(text)) ? bytes : 1;
    return count;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t integer_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool is_kind(const json_t *facts, const char *kind)
{
    return !strcmp(text_at(facts, "kind"), kind);
}

static void append_number(struct text *text, double value)
{
    const bool whole = value == floor(value) || fabs(value) >= 1e5;
    text_append(text, whole && fabs(value) < 1e12 ? "%.0f" : "%.4g", value);
}

/* A number, or a date as a text. */
static void append_value(struct text *text, const json_t *value)
{
    if (json_is_string(value))
        text_append(text, "%s", json_string_value(value));
    else if (json_is_number(value))
        append_number(text, json_number_value(value));
}

static void append_shape(struct text *text, const json_t *shape)
{
    text_append(text, "[");
    for (size_t i = 0; i < json_array_size(shape); i++)
        text_append(text, "%s%lld", i ? ", " : "", (long long)json_integer_value(json_array_get(shape, i)));
    text_append(text, "]");
}

/* "1 row", "2 rows" */
static void append_count(struct text *text, json_int_t count, const char *noun)
{
    const size_t length = strlen(noun);
    const bool es = length > 1 && (noun[length - 1] == 's' || noun[length - 1] == 'x');
    text_append(text, "%lld %s%s", (long long)count, noun, count == 1 ? "" : es ? "es" : "s");
}

void inspect_append_list(struct text *text, const json_t *list, const char *counted, size_t most)
{
    const size_t size = json_array_size(list);
    for (size_t i = 0; i < size && i < most; i++) {
        const json_t *one = json_array_get(list, i), *count = json_object_get(one, counted);
        text_append(text, "%s%s", i ? ", " : "", text_at(one, "name"));
        if (count) text_append(text, " (%lld)", (long long)json_integer_value(count));
    }
    if (size > most) text_append(text, " ... %zu more", size - most);
}

/* ------------------------------------------------------------------------------------------------- columns ---- */

/* The most frequent categories that fit. */
static void append_categories(struct text *text, const json_t *column, int width)
{
    const json_t *list = json_object_get(column, "categories");
    const size_t different = (size_t)integer_at(column, "different");
    const size_t begin = text->size;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct text next = { 0 };
        const json_t *one = json_array_get(list, i);
        text_append(&next, "%s%s (%lld)", i ? ", " : "", text_at(one, "name"), (long long)integer_at(one, "samples"));
        if (next.failed) return;
        const int used = text->data ? length_of(text->data + begin) : 0, rest = i + 1 < different ? 12 : 0;
        const bool fits = used + length_of(next.data) + rest <= width;
        if (fits || i == 0) text_append(text, "%s", next.data);
        text_free(&next);
        if (fits) continue;
        if (different > i + (i == 0)) text_append(text, " ... %zu more", different - i - (i == 0));
        return;
    }
    if (different > json_array_size(list)) text_append(text, " ... %zu more", different - json_array_size(list));
}

static void append_range(struct text *text, const json_t *column, bool quartiles, bool mean)
{
    append_value(text, json_object_get(column, "least"));
    text_append(text, " .. ");
    for (size_t i = 0; i < 3 && quartiles; i++) {
        append_value(text, json_array_get(json_object_get(column, "quartiles"), i));
        text_append(text, "%s", i < 2 ? " " : " .. ");
    }
    append_value(text, json_object_get(column, "largest"));
    if (!mean) return;
    text_append(text, ", mean ");
    append_value(text, json_object_get(column, "mean"));
}

void inspect_append_values(struct text *text, const json_t *column, int width)
{
    const json_t *least = json_object_get(column, "least");
    if (json_object_get(column, "categories")) {
        append_categories(text, column, width);
        return;
    }
    if (!least) return;
    if (json_equal(least, json_object_get(column, "largest"))) {
        text_append(text, "always ");
        append_value(text, least);
        return;
    }
    for (int form = 0; form < 3; form++) {
        struct text line = { 0 };
        append_range(&line, column, form < 2, form < 1);
        const bool fits = !line.failed && (form == 2 || length_of(line.data) <= width);
        if (fits) text_append(text, "%s", line.data);
        text_free(&line);
        if (fits) return;
    }
}

/* What becomes of a column, in few words: the legend explains them. */
static void append_becomes(struct text *text, const json_t *column)
{
    const char *becomes = text_at(column, "becomes"), *more = strchr(becomes, ';');
    const bool date = !strcmp(text_at(column, "kind"), "date") && !strcmp(text_at(column, "role"), "input");
    if (date)
        text_append(text, "6 parts of the date");
    else
        text_append(text, "%.*s", more ? (int)(more - becomes) : (int)strlen(becomes), becomes);
    if (more) text_append(text, " *");
}

/* Control characters of names do not reach the terminal. */
static void print_text(const char *text, int most)
{
    for (int i = 0; *text && i < most; i++) {
        const int bytes = text_character(text);
        if (bytes == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
            putchar('?');
        else
            printf("%.*s", bytes, text);
        text += bytes ? bytes : 1;
    }
}

/* Prints a text in a column of the table, cut to its width. */
static void print_cell(const char *text, int width, bool right)
{
    const int length = length_of(text), pad = length < width ? width - length : 0;
    printf("%*s", right ? pad : 0, "");
    print_text(text, length > width ? width - 3 : width);
    if (length > width) printf("...");
    printf("%*s  ", right ? 0 : pad, "");
}

struct widths {
    int name, kind, missing, values, becomes;
};

static int most(int a, int b)
{
    return a > b ? a : b;
}

static void measure(struct widths *widths, const json_t *columns, size_t shown, int width)
{
    *widths = (struct widths) { 6, 4, 7, 0, 17 };
    for (size_t i = 0; i < shown; i++) {
        const json_t *column = json_array_get(columns, i);
        struct text becomes = { 0 };
        append_becomes(&becomes, column);
        widths->name = most(widths->name, length_of(text_at(column, "name")));
        widths->kind = most(widths->kind, length_of(text_at(column, "kind")));
        if (becomes.data && *text_at(column, "kind")) widths->becomes = most(widths->becomes, length_of(becomes.data));
        text_free(&becomes);
    }
    if (widths->name > 24) widths->name = 24;
    if (widths->becomes > 36) widths->becomes = 36;
    widths->values = most(24, width - widths->name - widths->kind - widths->missing - widths->becomes - 10);
}

static void print_column(const struct widths *widths, const json_t *column)
{
    char missing[32];
    struct text values = { 0 }, becomes = { 0 };
    const json_int_t count = integer_at(column, "missing");
    append_becomes(&becomes, column);
    inspect_append_values(&values, column, widths->values);
    printf("  ");
    print_cell(text_at(column, "name"), widths->name, false);
    snprintf(missing, sizeof(missing), "%lld", (long long)count);
    if (*text_at(column, "kind")) {
        print_cell(text_at(column, "kind"), widths->kind, false);
        print_cell(count > 0 ? missing : "-", widths->missing, true);
        print_cell(values.data ? values.data : "", widths->values, false);
    }
    print_text(becomes.data ? becomes.data : "", WIDTH);
    putchar('\n');
    text_free(&values);
    text_free(&becomes);
}

/* Explains the words that the table uses. */
static void print_legend(const json_t *columns, size_t shown)
{
    bool numbers = false, missing = false, dates = false, texts = false, codes = false;
    for (size_t i = 0; i < shown; i++) {
        const json_t *column = json_array_get(columns, i);
        const bool input = !strcmp(text_at(column, "role"), "input");
        numbers |= json_object_get(column, "quartiles") != NULL;
        const bool code = strstr(text_at(column, "becomes"), "embedded") != NULL;
        codes |= input && code;
        texts |= input && !code && !strcmp(text_at(column, "kind"), "text");
        dates |= input && !strcmp(text_at(column, "kind"), "date");
        missing |= strstr(text_at(column, "becomes"), "; missing") != NULL;
    }
    if (numbers) printf("  Numbers: least .. quartiles .. largest, mean. Standardised: (x - mean) / deviation.\n");
    if (texts)
        printf("  One-hot: an input for each text, 0 or 1, and one for texts that are not in the training part.\n");
    if (codes)
        printf("  Embedded: tabular learns numbers for each text; mlp and linear get these columns one-hot, too.\n");
    if (dates) printf("  Parts of a date: year, month, day, weekday, hour, days since 1970; standardised.\n");
    if (missing) printf("  * A missing value becomes the median, and one more input says that it is missing.\n");
}

static void print_columns(const json_t *columns, bool all)
{
    const size_t count = json_array_size(columns), shown = all || count <= SHOWN_COLUMNS ? count : SHOWN_COLUMNS;
    struct widths widths;
    measure(&widths, columns, shown, terminal_width());
    printf("\n  ");
    print_cell("column", widths.name, false);
    print_cell("kind", widths.kind, false);
    print_cell("missing", widths.missing, true);
    print_cell("values", widths.values, false);
    printf("what it becomes\n");
    for (size_t i = 0; i < shown; i++) print_column(&widths, json_array_get(columns, i));
    if (count > shown) printf("  ... and %zu more columns; --all shows them\n", count - shown);
    print_legend(columns, shown);
    putchar('\n');
}

/* ------------------------------------------------------------------------------------------------- summary ---- */

void inspect_append_title(struct text *text, const json_t *facts)
{
    const json_int_t samples = integer_at(facts, "samples");
    const json_t *columns = json_object_get(facts, "columns"), *files = json_object_get(facts, "files");
    const char *separator = text_at(json_array_get(files, 0), "separator");
    if (columns) {
        text_append(text, "a table of ");
        append_count(text, samples, "row");
        text_append(text, " and ");
        append_count(text, (json_int_t)json_array_size(columns), "column");
        text_append(text, ", separated by %s",
            !strcmp(separator, "\t")      ? "tabs"
                : !strcmp(separator, " ") ? "blanks"
                : !strcmp(separator, ";") ? "semicolons"
                : !strcmp(separator, "|") ? "bars"
                                          : "commas");
        if (!json_is_true(json_object_get(json_array_get(files, 0), "header")))
            text_append(text, "; columns have no names");
        return;
    }
    if (is_kind(facts, "images"))
        append_count(text, samples, "picture");
    else if (is_kind(facts, "masks"))
        text_append(text, "%lld pictures with masks", (long long)samples);
    else if (is_kind(facts, "recordings"))
        append_count(text, samples, "recording");
    else if (is_kind(facts, "speech")) {
        append_count(text, samples, "recording");
        text_append(text, " with transcripts");
    } else
        text_append(text, "%lld samples (%s)", (long long)samples, text_at(facts, "kind"));
    if (!json_object_get(facts, "classes") && (is_kind(facts, "images") || is_kind(facts, "recordings")))
        text_append(text, " without classes");
    if (json_array_size(json_object_get(facts, "classes")) > 0) {
        text_append(text, ", ");
        append_count(text, (json_int_t)json_array_size(json_object_get(facts, "classes")), "class");
    }
}

static void line_target(const json_t *facts, bool all, struct text *text)
{
    const char *target = text_at(facts, "target");
    const json_t *classes = json_object_get(facts, "classes");
    (void)all;
    if (!*target) return;
    text_append(text, "%s: ", target);
    if (classes)
        append_count(text, (json_int_t)json_array_size(classes), "class");
    else
        text_append(text, "a number; --target '%s:class' would make its values classes", target);
    text_append(text, "; --target COLUMN predicts another column");
}

static void line_classes(const json_t *facts, bool all, struct text *text)
{
    inspect_append_list(text, json_object_get(facts, "classes"), "samples", all ? SIZE_MAX : SHOWN_CLASSES);
}

static void line_parts(const json_t *facts, bool all, struct text *text)
{
    static const char *const parts[] = { "train", "val", "test" };
    const json_t *counts = json_object_get(facts, "parts");
    int used = 0;
    (void)all;
    for (int i = 0; i < 3; i++)
        if (integer_at(counts, parts[i]) > 0)
            text_append(text, "%s%s %lld", used++ ? ", " : "", parts[i], (long long)integer_at(counts, parts[i]));
}

static void line_inputs(const json_t *facts, bool all, struct text *text)
{
    const json_t *shape = json_object_get(facts, "shape");
    const bool resized = is_kind(facts, "images") || is_kind(facts, "masks");
    (void)all;
    if (json_object_get(facts, "columns")) {
        append_count(text, json_integer_value(json_array_get(shape, 0)), "number");
        text_append(text, " a row");
        return;
    }
    append_shape(text, shape);
    if (resized) text_append(text, ", or --input CxHxW: pictures are resized");
    if (is_kind(facts, "speech"))
        text_append(text, ": at most so many steps of %lld numbers, spectrograms at %lld Hz",
            (long long)json_integer_value(json_array_get(shape, 1)), (long long)integer_at(facts, "rate"));
    if (!is_kind(facts, "recordings")) return;
    text_append(text, ": spectrograms of pieces of %.3g s at %lld Hz",
        json_number_value(json_object_get(facts, "piece_seconds")), (long long)integer_at(facts, "rate"));
}

static void line_files(const json_t *facts, bool all, struct text *text)
{
    static const char *const lists[] = { "formats", "colours", "rates", "channels", "stored" };
    int used = 0;
    (void)all;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const json_t *list = json_object_get(facts, lists[i]);
        if (json_array_size(list) == 0) continue;
        text_append(text, "%s", used++ ? "; " : "");
        inspect_append_list(text, list, "files", SHOWN_SIZES);
    }
}

static void append_spread(struct text *text, const json_t *spread, const char *noun)
{
    text_append(text, "%s", noun);
    append_value(text, json_object_get(spread, "least"));
    text_append(text, " to ");
    append_value(text, json_object_get(spread, "largest"));
    text_append(text, ", median ");
    append_value(text, json_object_get(spread, "median"));
}

static void line_sizes(const json_t *facts, bool all, struct text *text)
{
    const json_t *sizes = json_object_get(facts, "sizes");
    const json_int_t different = integer_at(facts, "different_sizes");
    if (!sizes) return;
    if (different == 1) {
        text_append(text, "all %s", text_at(json_array_get(sizes, 0), "name"));
        return;
    }
    append_spread(text, json_object_get(facts, "width"), "widths ");
    append_spread(text, json_object_get(facts, "height"), "; heights ");
    text_append(text, "; %lld different: ", (long long)different);
    inspect_append_list(text, sizes, "files", all ? SIZE_MAX : SHOWN_SIZES);
}

static void line_tokens(const json_t *facts, bool all, struct text *text)
{
    const json_t *texts = json_object_get(facts, "text"), *unknown = json_object_get(texts, "unknown");
    (void)all;
    if (!texts) return;
    text_append(text, "%lld of %lld bytes, from a vocabulary of %lld", (long long)integer_at(texts, "tokens"),
        (long long)integer_at(texts, "bytes"), (long long)integer_at(texts, "vocabulary"));
    if (unknown) text_append(text, "; %.3g %% unknown", 100 * json_number_value(unknown));
    if (json_is_true(json_object_get(texts, "pairs"))) text_append(text, "; pairs of texts");
    if (json_object_get(texts, "words"))
        text_append(text, "; %lld words, each with a tag at its first token", (long long)integer_at(texts, "words"));
    if (json_is_true(json_object_get(texts, "next_tokens")))
        text_append(text, "; blocks of %lld, targets are the next tokens", (long long)integer_at(texts, "length"));
}

/* Quantiles of the tokens of a text, before it is cut. */
static void append_tokens(const json_t *texts, struct text *text)
{
    static const struct {
        const char *key, *words;
    } quantiles[] = { { "least", "from " }, { "median", ", median " }, { "nine_tenths", ", 90 % up to " },
        { "99_percent", ", 99 % up to " }, { "largest", ", largest " } };
    const json_t *lengths = json_object_get(texts, "lengths");
    if (!lengths) return;
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++)
        text_append(text, "%s%lld", quantiles[i].words, (long long)integer_at(lengths, quantiles[i].key));
    text_append(text, " tokens; samples have up to %lld, and %lld are cut", (long long)integer_at(texts, "length"),
        (long long)integer_at(texts, "cut"));
}

static void line_transcripts(const json_t *facts, bool all, struct text *text)
{
    const json_t *transcripts = json_object_get(facts, "transcripts");
    (void)all;
    if (!transcripts) return;
    text_append(text, "%lld tokens of %lld different ones; the first: %s", (long long)integer_at(transcripts, "tokens"),
        (long long)integer_at(transcripts, "vocabulary"), text_printable(text_at(transcripts, "first")).text);
}

static void line_lengths(const json_t *facts, bool all, struct text *text)
{
    append_tokens(json_object_get(facts, "text"), text);
    const json_t *seconds = json_object_get(facts, "seconds");
    (void)all;
    if (!seconds) return;
    append_spread(text, seconds, "");
    text_append(text, " s; ");
    append_value(text, json_object_get(seconds, "sum"));
    text_append(text, " s in all");
}

static void line_values(const json_t *facts, bool all, struct text *text)
{
    const json_t *values = json_object_get(facts, "values"), *targets = json_object_get(facts, "targets");
    (void)all;
    if (!values) return;
    append_range(text, values, false, true);
    if (json_is_true(json_object_get(facts, "bytes"))) text_append(text, " (bytes)");
    if (!targets) return;
    text_append(text, "; targets ");
    append_range(text, targets, false, true);
}

/* What was opened, if that is not all, and what of it is damaged. */
static void line_opened(const json_t *facts, bool all, struct text *text)
{
    const json_t *opened = json_object_get(facts, "opened");
    const json_int_t read = integer_at(opened, "read"), damaged = integer_at(opened, "damaged");
    (void)all;
    if (!opened || (read == integer_at(opened, "all") && damaged == 0)) return;
    text_append(text, "%lld of %lld", (long long)read, (long long)integer_at(opened, "all"));
    if (damaged > 0)
        text_append(text, "; %lld cannot be read and stop%s a training without --skip-damaged: %s", (long long)damaged,
            damaged == 1 ? "s" : "", text_at(opened, "example"));
    if (read < integer_at(opened, "all")) text_append(text, "; --all opens each");
}

static void line_ignored(const json_t *facts, bool all, struct text *text)
{
    const json_t *ignored = json_object_get(facts, "ignored"), *examples = json_object_get(ignored, "examples");
    (void)all;
    if (!ignored) return;
    text_append(text, "%s", text_at(ignored, "text"));
    for (size_t i = 0; i < json_array_size(examples); i++)
        text_append(text, "%s%s", i ? ", " : ", such as ", json_string_value(json_array_get(examples, i)));
}

static void line_problem(const json_t *facts, bool all, struct text *text)
{
    (void)all;
    if (*text_at(facts, "problem")) text_append(text, "a training refuses this: %s", text_at(facts, "problem"));
}

static void line_few(const json_t *facts, bool all, struct text *text)
{
    enum { TIMES = 10 };
    const json_t *classes = json_object_get(facts, "classes"), *least = NULL, *largest = NULL;
    (void)all;
    for (size_t i = 0; i < json_array_size(classes); i++) {
        const json_t *one = json_array_get(classes, i);
        if (!json_object_get(one, "samples")) return;
        if (!least || integer_at(one, "samples") < integer_at(least, "samples")) least = one;
        if (!largest || integer_at(one, "samples") > integer_at(largest, "samples")) largest = one;
    }
    if (least && integer_at(largest, "samples") >= TIMES * integer_at(least, "samples"))
        text_append(text, "class '%s' has %lld samples and '%s' %lld: --oversample draws each class equally often",
            text_at(least, "name"), (long long)integer_at(least, "samples"), text_at(largest, "name"),
            (long long)integer_at(largest, "samples"));
}

const char *inspect_line(int number, const json_t *facts, bool all, struct text *text)
{
    static const struct {
        const char *name;
        void (*append)(const json_t *facts, bool all, struct text *text);
    } lines[] = { { "target", line_target }, { "classes", line_classes }, { "parts", line_parts },
        { "inputs", line_inputs }, { "files", line_files }, { "sizes", line_sizes }, { "tokens", line_tokens },
        { "lengths", line_lengths }, { "labels", line_transcripts }, { "values", line_values },
        { "opened", line_opened }, { "ignored", line_ignored }, { "balance", line_few }, { "problem", line_problem } };
    if (number >= (int)(sizeof(lines) / sizeof(*lines))) return NULL;
    lines[number].append(facts, all, text);
    return lines[number].name;
}

/* Prints a text after a label, and breaks it between words. */
static void print_line(const char *label, const char *text, int width)
{
    int column = printf("  %-*s", LABEL - 2, label);
    while (*text) {
        const size_t bytes = strcspn(text, " ");
        char *word = memory_format("%.*s", (int)bytes, text);
        if (!word) return;
        const int length = length_of(word);
        if (column > LABEL && column + 1 + length > width)
            column = printf("\n%*s", LABEL, "") - 1;
        else if (column > LABEL)
            column += printf(" ");
        print_text(word, length);
        free(word);
        column += length;
        text += bytes + (text[bytes] == ' ');
    }
    putchar('\n');
}

static void print_models(const json_t *models, int width)
{
    struct text text = { 0 };
    for (size_t i = 0; i < json_array_size(models); i++)
        text_append(&text, "%s%s", i ? ", " : "", json_string_value(json_array_get(models, i)));
    if (text.data) print_line("models", text.data, width);
    text_free(&text);
}

void inspect_print(const json_t *facts, bool all)
{
    const int width = terminal_width();
    const json_t *columns = json_object_get(facts, "columns"), *notes = json_object_get(facts, "notes");
    struct text title = { 0 };
    const char *name = "";
    inspect_append_title(&title, facts);
    print_text(text_at(facts, "path"), 4096);
    printf(": %s\n", title.data ? title.data : "");
    text_free(&title);
    for (int i = 0; name; i++) {
        struct text text = { 0 };
        name = inspect_line(i, facts, all, &text);
        if (name && text.data) print_line(name, text.data, width);
        text_free(&text);
    }
    if (columns) print_columns(columns, all);
    for (size_t i = 0; i < json_array_size(notes); i++)
        print_line("note", json_string_value(json_array_get(notes, i)), width);
    print_models(json_object_get(facts, "models"), width);
    if (*text_at(facts, "next")) printf("  next     %s\n", text_at(facts, "next"));
}
