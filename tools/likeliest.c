#include "tools/likeliest.h"

#include "formats/json_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 5, BAR_CELLS = 30, NAME_COLUMNS = 32 };

/* Softmax of one sample. */
static void probabilities(const float *outputs, int64_t classes, double *to)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        if ((double)outputs[c] > largest) largest = (double)outputs[c];
    for (int64_t c = 0; c < classes; c++) sum += to[c] = exp((double)outputs[c] - largest);
    for (int64_t c = 0; c < classes; c++) to[c] /= sum;
}

/* Computes the share of the pixels for which each class is the likeliest. */
static void pixel_shares(const struct likeliest *l, double *to)
{
    memset(to, 0, (size_t)l->classes * sizeof(*to));
    for (int64_t i = 0; i < l->labels; i++) {
        int64_t best = 0;
        for (int64_t c = 1; c < l->classes; c++)
            if (l->outputs[c * l->labels + i] > l->outputs[best * l->labels + i]) best = c;
        to[best] += 1.0 / (double)l->labels;
    }
}

/* Writes the numbers of the largest values to `order`, of equal ones the lower first. Returns how many there are. */
static int find_largest(const double *values, int64_t count, int64_t order[SHOWN])
{
    int found = 0;
    for (int64_t i = 0; i < count; i++) {
        int at = found;
        while (at > 0 && values[order[at - 1]] < values[i]) at--;
        if (at == SHOWN) continue;
        if (found < SHOWN) found++;
        for (int k = found - 1; k > at; k--) order[k] = order[k - 1];
        order[at] = i;
    }
    return found;
}

static const char *name_of(const struct likeliest *l, int64_t number, char buffer[24])
{
    if (l->names) return l->names[number];
    snprintf(buffer, 24, "%lld", (long long)number);
    return buffer;
}

/* Letters, not bytes, of UTF-8. */
static int columns_of(const char *text)
{
    int columns = 0;
    for (; *text; text++) columns += (*text & 0xc0) != 0x80;
    return columns;
}

static void print_text(const struct likeliest *l, const double *values, const int64_t *order, int count)
{
    const bool colours = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    char buffer[24];
    int width = 0;
    for (int i = 0; i < count; i++) {
        const int columns = columns_of(name_of(l, order[i], buffer));
        if (columns > width) width = columns;
    }
    if (width > NAME_COLUMNS) width = NAME_COLUMNS;
    printf("%s\n", l->title);
    for (int i = 0; i < count; i++) {
        const double value = values[order[i]];
        const char *name = name_of(l, order[i], buffer);
        const int cells = (int)(value * BAR_CELLS + 0.5), columns = columns_of(name);
        printf("  %s%*s %6.2f %%", name, columns < width ? width - columns : 0, "", 100 * value);
        if (cells > 0) printf("  %s", colours ? "\033[44m" : "");
        for (int k = 0; k < cells; k++) putchar(colours ? ' ' : '#');
        printf("%s\n", cells > 0 && colours ? "\033[0m" : "");
    }
}

static tutti_status print_json(const struct likeliest *l, const double *values, const int64_t *order, int count)
{
    struct json_line line;
    const char *value = l->labels > 1 ? "share" : "probability";
    json_line_begin(&line, stdout);
    if (l->index >= 0) {
        json_line_print(&line, "index %lld class %lld", (long long)l->index, (long long)order[0]);
        json_line_number(&line, value, values[order[0]]);
    }
    if (l->file) json_line_text(&line, "file", l->file);
    json_line_text(&line, "sample", l->title);
    if (l->label >= 0) json_line_integer(&line, "label", l->label);
    if (l->label >= 0 && l->names) json_line_text(&line, "label_name", l->names[l->label]);
    json_line_print(&line, l->labels > 1 ? "shares [" : "likeliest [");
    for (int i = 0; i < count; i++) {
        json_line_print(&line, "{ class %lld", (long long)order[i]);
        if (l->names) json_line_text(&line, "name", l->names[order[i]]);
        json_line_number(&line, value, values[order[i]]);
        json_line_print(&line, "}");
    }
    return json_line_end(&line);
}

void likeliest_values(const struct likeliest *likeliest, double *values)
{
    if (likeliest->labels > 1)
        pixel_shares(likeliest, values);
    else
        probabilities(likeliest->outputs, likeliest->classes, values);
}

tutti_status likeliest_print(const struct likeliest *likeliest, const double *values, bool json)
{
    int64_t order[SHOWN];
    const int count = find_largest(values, likeliest->classes, order);
    if (json) return print_json(likeliest, values, order, count);
    if (likeliest->index >= 0)
        printf("%lld %s %.4f  %s%s%s\n", (long long)likeliest->index, name_of(likeliest, order[0], (char[24]) { "" }),
            values[order[0]], likeliest->file ? likeliest->file : "", likeliest->file ? " " : "", likeliest->title);
    else
        print_text(likeliest, values, order, count);
    return TUTTI_OK;
}
