/* What a network gets wrong: the confusion matrix, scores by class, and the worst mistakes as pictures. */
#include "base/status.h"
#include "tools/report/page.h"
#include "tools/report/report.h"
#include "tools/report/sample_picture.h"

#include <math.h>
#include <string.h>

enum { MATRIX_CLASSES = 60, NUMBERED_CLASSES = 16, TABLE_CLASSES = 40, MATRIX_WIDTH = 360, NAME_CHARACTERS = 11 };
enum { SHOWN_MISTAKES = 16, SHOWN_CONFUSIONS = 8, CLASS_HEIGHT = 22, CLASS_WIDTH = 176 };

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

static void draw_matrix(struct text *page, const struct report_facts *facts, const int64_t *counts)
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

/* Writes the most frequent confusions to `list`. Returns how many there are. */
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

static void add_worst(struct json_line *line, const struct report_facts *facts, const int64_t *counts)
{
    struct confusion list[SHOWN_CONFUSIONS];
    const int kept = worst_confusions(counts, facts->classes, list);
    char a[32], b[32];
    json_line_print(line, "worst [");
    for (int i = 0; i < kept; i++)
        json_line_print(line, "{ target %s predicted %s samples %lld }",
            report_class(facts, list[i].target, a, sizeof(a)), report_class(facts, list[i].predicted, b, sizeof(b)),
            (long long)list[i].count);
    json_line_print(line, "]");
}

static void add_matrix(struct json_line *line, const struct report_facts *facts, const int64_t *counts)
{
    const int classes = facts->classes;
    char name[32];
    json_line_print(line, "matrix { rows [");
    for (int row = 0; row < classes; row++) {
        json_line_print(line, "{ class %s samples [", report_class(facts, row, name, sizeof(name)));
        for (int i = 0; i < classes; i++) json_line_integer(line, NULL, counts[(int64_t)row * classes + i]);
        json_line_print(line, "] }");
    }
    json_line_print(line, "] }");
}

void report_confusion(struct json_line *line, const struct report_facts *facts, const int64_t *counts)
{
    struct text svg = { 0 };
    json_line_print(line, "confusion {");
    if (facts->classes <= MATRIX_CLASSES) draw_matrix(&svg, facts, counts);
    page_member(line, "svg", &svg);
    add_worst(line, facts, counts);
    if (facts->classes <= TABLE_CLASSES) add_matrix(line, facts, counts);
    json_line_print(line, "}");
}

/* ------------------------------------------------------------------------------------------------ classes ---- */

static void add_classes(struct json_line *line, const struct report *report)
{
    const int count = report->facts.classes;
    char name[32];
    json_line_print(line, "classes {");
    if (count <= TABLE_CLASSES) json_line_integer(line, "height", count * CLASS_HEIGHT + 4);
    json_line_print(line, "list [");
    for (int i = 0; i < count; i++) {
        tutti_class_scores scores = { .size = sizeof(scores) };
        if (tutti_scores_class(report->facts.scores, i, &scores) != TUTTI_OK) continue;
        json_line_print(line, "{ class %s samples %lld precision %g recall %g f1 %g top %d width %g }",
            report_class(&report->facts, i, name, sizeof(name)), (long long)scores.support, scores.precision,
            scores.recall, scores.f1, i * CLASS_HEIGHT, isfinite(scores.f1) ? CLASS_WIDTH * scores.f1 : 0.0);
    }
    json_line_print(line, "] }");
}

/* ----------------------------------------------------------------------------------------------- mistakes ---- */

static tutti_status add_mistake(
    struct json_line *line, const struct report_facts *facts, struct sample_room *room, const tutti_mistake *mistake)
{
    char a[32], b[32];
    json_line_print(line, "index %lld target %s predicted %s probability %g", (long long)mistake->index,
        report_class(facts, mistake->target, a, sizeof(a)), report_class(facts, mistake->predicted, b, sizeof(b)),
        mistake->probability);
    sample_name(line, facts, facts->part, mistake->index);
    return sample_picture(line, facts, room->values, NULL);
}

static bool read_mistake(const struct report_facts *facts, const tutti_mistake *mistake, struct sample_room *room)
{
    return facts->test->read(facts->test->user, &mistake->index, 1, room->buffers, 2) == 0;
}

static tutti_status add_mistakes(struct json_line *line, const struct report_facts *facts)
{
    tutti_mistake mistake = { .size = sizeof(mistake) };
    struct sample_room room = { 0 };
    tutti_status status = TUTTI_OK;
    if (!sample_is_picture(facts) || !facts->test || tutti_scores_mistake(facts->scores, 0, &mistake) != TUTTI_OK)
        return TUTTI_OK;
    if (!sample_room_make(&room, facts, 1)) goto done; /* too large to be shown */
    json_line_print(line, "mistakes { list [");
    for (int i = 0; i < SHOWN_MISTAKES && tutti_scores_mistake(facts->scores, i, &mistake) == TUTTI_OK; i++) {
        if (!read_mistake(facts, &mistake, &room)) continue;
        json_line_print(line, "{");
        TRY(add_mistake(line, facts, &room, &mistake));
        json_line_print(line, "}");
    }
    json_line_print(line, "] }");
done:
    sample_room_free(&room);
    return status;
}

tutti_status report_figure(const struct report_facts *facts, const tutti_mistake *mistake, json_t **figure)
{
    struct sample_room room = { 0 };
    struct json_line line = { 0 };
    tutti_status status = TUTTI_OK;
    *figure = NULL;
    if (facts->classes > 0 && facts->test && sample_is_picture(facts) && sample_room_make(&room, facts, 1) &&
        read_mistake(facts, mistake, &room)) {
        json_line_begin(&line, NULL);
        TRY(add_mistake(&line, facts, &room, mistake));
        *figure = page_facts(&line);
        if (!*figure) FAIL(TUTTI_NO_MEMORY, "there is no memory for the report");
    }
done:
    text_free(&line.text);
    sample_room_free(&room);
    return status;
}

tutti_status report_results(const struct report *report, json_t **facts)
{
    const int64_t *counts = tutti_scores_confusion(report->facts.scores);
    tutti_status status = TUTTI_OK;
    struct json_line line;
    if (!report->facts.classes || !counts) return TUTTI_OK;
    json_line_begin(&line, NULL);
    report_confusion(&line, &report->facts, counts);
    add_classes(&line, report);
    TRY(add_mistakes(&line, &report->facts));
    *facts = page_facts(&line);
    if (!*facts) FAIL(TUTTI_NO_MEMORY, "there is no memory for the report");
done:
    text_free(&line.text);
    return status;
}
