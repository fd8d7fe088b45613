/* What a network gets wrong: the confusion matrix, scores by class, and the worst mistakes as pictures. */
#include "base/memory.h"
#include "base/numbers.h"
#include "formats/png.h"
#include "tools/page.h"
#include "tools/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_CLASSES = 60, NUMBERED_CLASSES = 16, TABLE_CLASSES = 40, MATRIX_WIDTH = 360, NAME_CHARACTERS = 11 };
enum { PICTURE_SIDE = 128, PIXELATED_SIDE = 64, LARGEST_SAMPLE = 1 << 26, SHOWN_MISTAKES = 16, SHOWN_CONFUSIONS = 8 };

/* ---------------------------------------------------------------------------------------------- confusion ---- */

/* Where the matrix lies: the names of the classes are to the left of it and above it. */
struct place {
    double left, top, side, cell;
};

static struct place place_of(const struct report_facts *facts)
{
    char number[32];
    size_t longest = 1;
    for (int i = 0; i < facts->classes; i++) {
        const size_t length = strlen(report_class(facts, i, number, sizeof(number)));
        if (length > longest) longest = length < NAME_CHARACTERS ? length : NAME_CHARACTERS;
    }
    const double names = 6.8 * (double)longest + 12;
    const double side = MATRIX_WIDTH - 4 - names;
    return (struct place) { names, names, side, side / facts->classes };
}

static void matrix_cell(struct text *page, const struct report_facts *facts, const struct place *place,
    const int64_t *counts, int row, int column, int64_t sum)
{
    const int classes = facts->classes;
    const int64_t count = counts[(int64_t)row * classes + column];
    const double size = place->cell, part = sum ? (double)count / (double)sum : 0;
    const double x = place->left + size * column, y = place->top + size * row;
    char a[32], b[32];
    if (!count) return;
    text_append(page, "<g><title>");
    page_text(page, report_class(facts, row, a, sizeof(a)));
    text_append(page, " taken for ");
    page_text(page, report_class(facts, column, b, sizeof(b)));
    text_append(page,
        ": %lld of %lld</title><rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
        "fill-opacity=\"%.2f\"/>",
        (long long)count, (long long)sum, row == column ? 0 : 1, x + 0.5, y + 0.5, size - 1, size - 1,
        row == column ? 0.15 + 0.85 * part : fmin(1, 0.2 + 1.6 * part));
    const bool dark = row == column ? part > 0.5 : part > 0.28;
    if (classes <= NUMBERED_CLASSES && count < 10000)
        text_append(page, "<text class=\"mid\" style=\"font-size:%.1fpx%s\" x=\"%.1f\" y=\"%.1f\">%lld</text>",
            fmin(13, size / (count > 999 ? 2.6 : 2.0)), dark ? ";fill:var(--card)" : "", x + size / 2, y + size / 2 + 4,
            (long long)count);
    text_append(page, "</g>\n");
}

static void matrix_names(struct text *page, const struct report_facts *facts, const struct place *place)
{
    const double size = place->cell, letters = fmin(12, size * 0.85);
    char number[32];
    for (int i = 0; i < facts->classes && letters >= 5; i++) {
        const double middle = size * i + size / 2;
        text_append(page, "<text class=\"end\" style=\"font-size:%.1fpx\" x=\"%.1f\" y=\"%.1f\">", letters,
            place->left - 6, place->top + middle + letters / 3);
        page_text_cut(page, report_class(facts, i, number, sizeof(number)), NAME_CHARACTERS);
        text_append(page, "</text><text style=\"font-size:%.1fpx\" transform=\"translate(%.1f %.1f)rotate(-90)\">",
            letters, place->left + middle + letters / 3, place->top - 6);
        page_text_cut(page, report_class(facts, i, number, sizeof(number)), NAME_CHARACTERS);
        text_append(page, "</text>\n");
    }
}

static int64_t row_sum(const int64_t *counts, int classes, int row)
{
    int64_t sum = 0;
    for (int i = 0; i < classes; i++) sum += counts[(int64_t)row * classes + i];
    return sum;
}

static void matrix(struct text *page, const struct report_facts *facts, const int64_t *counts)
{
    const int classes = facts->classes;
    const struct place place = place_of(facts);
    text_append(page,
        "<svg role=\"img\" viewBox=\"0 0 360 %.0f\" aria-label=\"Confusion matrix of %d classes; the table below has "
        "its numbers\">\n",
        place.top + place.side + 24, classes);
    text_append(page, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" class=\"axis\"/>\n",
        place.left, place.top, place.side, place.side);
    matrix_names(page, facts, &place);
    for (int row = 0; row < classes; row++) {
        const int64_t sum = row_sum(counts, classes, row);
        for (int column = 0; column < classes; column++) matrix_cell(page, facts, &place, counts, row, column, sum);
    }
    text_append(page,
        "<text class=\"soft small mid\" x=\"%.1f\" y=\"%.1f\">rows: true class; columns: predicted "
        "class</text></svg>\n",
        place.left + place.side / 2, place.top + place.side + 18);
}

struct confusion {
    int target, predicted;
    int64_t count;
};

/* The most frequent ones, in `list`; how many. */
static int worst_confusions(const int64_t *counts, int classes, struct confusion *list)
{
    int kept = 0;
    for (int row = 0; row < classes; row++)
        for (int column = 0; column < classes; column++) {
            const int64_t count = counts[(int64_t)row * classes + column];
            if (row == column || !count || (kept == SHOWN_CONFUSIONS && count <= list[kept - 1].count)) continue;
            int at = kept < SHOWN_CONFUSIONS ? kept++ : kept - 1;
            for (; at > 0 && list[at - 1].count < count; at--) list[at] = list[at - 1];
            list[at] = (struct confusion) { row, column, count };
        }
    return kept;
}

static void confusions(struct text *page, const struct report_facts *facts, const int64_t *counts)
{
    struct confusion list[SHOWN_CONFUSIONS];
    const int kept = worst_confusions(counts, facts->classes, list);
    char name[32];
    page_table(page, "Most frequent confusions as a table", "true class|predicted as|#samples");
    for (int i = 0; i < kept; i++) {
        text_append(page, "<tr><td class=\"name\">");
        page_text(page, report_class(facts, list[i].target, name, sizeof(name)));
        text_append(page, "</td><td class=\"name\">");
        page_text(page, report_class(facts, list[i].predicted, name, sizeof(name)));
        text_append(page, "</td><td class=\"n\">%lld</td></tr>\n", (long long)list[i].count);
    }
    page_table_end(page);
}

static void whole_table(struct text *page, const struct report_facts *facts, const int64_t *counts)
{
    const int classes = facts->classes;
    char name[32];
    page_table(page, "The whole matrix as a table", "true class");
    text_append(page, "<tr><th scope=\"row\">predicted as</th>");
    for (int i = 0; i < classes; i++) {
        text_append(page, "<th scope=\"col\" class=\"n\">");
        page_text(page, report_class(facts, i, name, sizeof(name)));
        text_append(page, "</th>");
    }
    text_append(page, "</tr>\n");
    for (int row = 0; row < classes; row++) {
        text_append(page, "<tr><th scope=\"row\">");
        page_text(page, report_class(facts, row, name, sizeof(name)));
        text_append(page, "</th>");
        for (int i = 0; i < classes; i++)
            text_append(page, "<td class=\"n\">%lld</td>", (long long)counts[(int64_t)row * classes + i]);
        text_append(page, "</tr>\n");
    }
    page_table_end(page);
}

/* ------------------------------------------------------------------------------------------------ classes ---- */

static void class_bar(struct text *page, const struct report *report, int number, int y)
{
    tutti_class_scores scores = { .size = sizeof(scores) };
    char name[32];
    if (tutti_scores_class(report->facts.scores, number, &scores) != TUTTI_OK) return;
    const double f1 = isfinite(scores.f1) ? scores.f1 : 0;
    text_append(page, "<text class=\"small end\" x=\"110\" y=\"%d\">", y + 12);
    page_text_cut(page, report_class(&report->facts, number, name, sizeof(name)), 15);
    text_append(page,
        "</text><rect x=\"118\" y=\"%d\" width=\"176\" height=\"10\" rx=\"2\" fill=\"var(--grid)\"/>"
        "<rect class=\"f0\" x=\"118\" y=\"%d\" width=\"%.1f\" height=\"10\" rx=\"2\"/><text class=\"small end\" "
        "x=\"358\" y=\"%d\">"
        "%.1f %%</text>\n",
        y + 3, y + 3, 176 * f1, y + 12, 100 * f1);
}

static void class_rows(struct text *page, const struct report *report)
{
    page_table(page, "Classes as a table", "class|#samples|#precision|#recall|#F1");
    for (int i = 0; i < report->facts.classes; i++) {
        tutti_class_scores scores = { .size = sizeof(scores) };
        char name[32];
        if (tutti_scores_class(report->facts.scores, i, &scores) != TUTTI_OK) continue;
        text_append(page, "<tr><td class=\"name\">");
        page_text(page, report_class(&report->facts, i, name, sizeof(name)));
        text_append(page, "</td><td class=\"n\">%lld</td>", (long long)scores.support);
        const double values[] = { scores.precision, scores.recall, scores.f1 };
        for (int k = 0; k < 3; k++) {
            if (isfinite(values[k]))
                text_append(page, "<td class=\"n\">%.4f</td>", values[k]);
            else
                text_append(page, "<td></td>");
        }
        text_append(page, "</tr>\n");
    }
    page_table_end(page);
}

static void classes(struct text *page, const struct report *report)
{
    const int count = report->facts.classes;
    page_section(page, "F1 of each class", true);
    if (count <= TABLE_CLASSES) {
        text_append(page,
            "<svg role=\"img\" viewBox=\"0 0 360 %d\" aria-label=\"F1 of each class; the table below has its "
            "numbers\">\n",
            count * 22 + 4);
        for (int i = 0; i < count; i++) class_bar(page, report, i, i * 22);
        text_append(page, "</svg>\n");
    }
    class_rows(page, report);
    page_section_end(page);
}

/* ----------------------------------------------------------------------------------------------- mistakes ---- */

/* A sample as the network gets it, with values from the least to the largest shown as black to white. */
struct sample {
    int channels, height, width;
    const void *values;
    bool bytes;
    double least, most;
};

static double sample_value(const struct sample *sample, int64_t at)
{
    return sample->bytes ? ((const unsigned char *)sample->values)[at] : (double)((const float *)sample->values)[at];
}

static void find_range(struct sample *sample)
{
    const int64_t count = (int64_t)sample->channels * sample->height * sample->width;
    sample->least = INFINITY, sample->most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double value = sample_value(sample, i);
        if (!isfinite(value)) continue;
        sample->least = fmin(sample->least, value), sample->most = fmax(sample->most, value);
    }
    if (sample->bytes || (sample->least >= 0 && sample->most <= 1))
        sample->least = 0, sample->most = sample->bytes ? 255 : 1;
    if (!(sample->least < sample->most)) sample->least = 0, sample->most = 1;
}

/* The mean of the pixels that become one, 0 to 255. */
static unsigned char shown_pixel(const struct sample *sample, int channel, int x, int y, int factor)
{
    double sum = 0;
    int count = 0;
    for (int v = y * factor; v < (y + 1) * factor && v < sample->height; v++)
        for (int u = x * factor; u < (x + 1) * factor && u < sample->width; u++, count++)
            sum += sample_value(sample, ((int64_t)channel * sample->height + v) * sample->width + u);
    const double value = (sum / (count ? count : 1) - sample->least) / (sample->most - sample->least);
    return isfinite(value) ? (unsigned char)(255 * fmin(fmax(value, 0), 1) + 0.5) : 0;
}

static tutti_status append_picture(struct text *page, struct sample *sample)
{
    const int longest = sample->height > sample->width ? sample->height : sample->width;
    const int factor = (int)divide_up(longest, PICTURE_SIDE), channels = sample->channels == 3 ? 3 : 1;
    const int width = (int)divide_up(sample->width, factor), height = (int)divide_up(sample->height, factor);
    unsigned char *file = NULL, *pixels = memory_new((size_t)width * (size_t)height, (size_t)channels);
    size_t size = 0;
    if (!pixels) return TUTTI_NO_MEMORY;
    find_range(sample);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                pixels[((size_t)y * (size_t)width + (size_t)x) * (size_t)channels + (size_t)c] =
                    shown_pixel(sample, c, x, y, factor);
    const tutti_status status = png_encode(pixels, width, height, channels, &file, &size);
    free(pixels);
    if (status != TUTTI_OK) return status;
    base64_append(page, file, size);
    free(file);
    return TUTTI_OK;
}

/* Room for one sample and its targets. */
struct room {
    void *values, *targets;
    tutti_buffer buffers[2];
};

static bool make_room(struct room *room, const struct report_facts *facts)
{
    size_t bytes = facts->dtype == TUTTI_DTYPE_U8 ? 1 : sizeof(float);
    for (int i = 0; i < facts->shape.rank; i++)
        if (facts->shape.sizes[i] < 1 || !size_multiply(bytes, (size_t)facts->shape.sizes[i], &bytes) ||
            bytes > LARGEST_SAMPLE)
            return false;
    room->values = memory_new(bytes, 1);
    room->targets = memory_new(facts->target_bytes ? facts->target_bytes : 1, 1);
    room->buffers[0] = (tutti_buffer) { "input", facts->dtype, room->values, bytes };
    room->buffers[1] = (tutti_buffer) { "targets", facts->target_dtype, room->targets, facts->target_bytes };
    return room->values && room->targets;
}

/* The end of the file's name, or the number. */
static void sample_name(struct text *page, const struct report_facts *facts, int64_t index)
{
    char name[1100], *last;
    if (facts->own && tutti_data_name(facts->own, facts->part, index, name, sizeof(name)) == TUTTI_OK) {
        last = strrchr(name, '/');
        page_text(page, last && last[1] ? last + 1 : name);
    } else
        text_append(page, "sample %lld", (long long)index);
}

static tutti_status mistake_figure(
    struct text *page, const struct report_facts *facts, struct room *room, const tutti_mistake *mistake)
{
    const tutti_shape *shape = &facts->shape;
    struct sample sample = { (int)shape->sizes[0], (int)shape->sizes[1], (int)shape->sizes[2], room->values,
        facts->dtype == TUTTI_DTYPE_U8, 0, 0 };
    char a[32], b[32];
    if (facts->test->read(facts->test->user, &mistake->index, 1, room->buffers, 2) != 0)
        return TUTTI_OK; /* not this one */
    const int longest = sample.height > sample.width ? sample.height : sample.width;
    text_append(page, "<figure><img%s alt=\"Sample %lld: ", longest <= PIXELATED_SIDE ? " class=\"pixels\"" : "",
        (long long)mistake->index);
    page_text(page, report_class(facts, mistake->target, a, sizeof(a)));
    text_append(page, ", taken for ");
    page_text(page, report_class(facts, mistake->predicted, b, sizeof(b)));
    text_append(page, "\" src=\"data:image/png;base64,");
    const tutti_status status = append_picture(page, &sample);
    text_append(page, "\"><figcaption><b>");
    page_text(page, report_class(facts, mistake->target, a, sizeof(a)));
    text_append(page, "</b>, taken for <b>");
    page_text(page, report_class(facts, mistake->predicted, b, sizeof(b)));
    text_append(page, "</b><br><span class=\"soft\">%.0f %% sure<br>", 100 * mistake->probability);
    sample_name(page, facts, mistake->index);
    text_append(page, "</span></figcaption></figure>\n");
    return status;
}

static tutti_status mistakes(struct text *page, const struct report *report)
{
    const struct report_facts *facts = &report->facts;
    tutti_mistake mistake = { .size = sizeof(mistake) };
    struct room room = { 0 };
    tutti_status status = TUTTI_OK;
    if (facts->shape.rank != 3 || !facts->test || tutti_scores_mistake(report->facts.scores, 0, &mistake) != TUTTI_OK)
        return TUTTI_OK;
    if (!make_room(&room, facts)) goto done; /* too large to be shown */
    page_section(page, "The worst mistakes", false);
    text_append(page, "<div class=\"mistakes\">\n");
    for (int i = 0; i < SHOWN_MISTAKES && status == TUTTI_OK &&
         tutti_scores_mistake(report->facts.scores, i, &mistake) == TUTTI_OK;
         i++)
        status = mistake_figure(page, facts, &room, &mistake);
    text_append(page, "</div>\n");
    page_section_end(page);
done:
    free(room.values);
    free(room.targets);
    return status;
}

tutti_status report_results(const struct report *report, struct text *page)
{
    const struct report_facts *facts = &report->facts;
    const int64_t *counts = tutti_scores_confusion(report->facts.scores);
    if (!facts->classes || !counts) return TUTTI_OK;
    page_section(page, "Confusion", true);
    if (facts->classes <= MATRIX_CLASSES) matrix(page, facts, counts);
    confusions(page, facts, counts);
    if (facts->classes <= TABLE_CLASSES) whole_table(page, facts, counts);
    page_section_end(page);
    classes(page, report);
    return mistakes(page, report);
}
