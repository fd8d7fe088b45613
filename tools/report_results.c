/* What a network gets wrong: the confusion matrix, scores by class, and the worst mistakes as pictures. */
#include "tools/page.h"
#include "tools/report.h"
#include "tools/sample_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_CLASSES = 60, NUMBERED_CLASSES = 16, TABLE_CLASSES = 40, MATRIX_WIDTH = 360, NAME_CHARACTERS = 11 };
enum { SHOWN_MISTAKES = 16, SHOWN_CONFUSIONS = 8 };

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

void report_confusion(struct text *page, const struct report_facts *facts, const int64_t *counts)
{
    page_section(page, "Confusion", true);
    if (facts->classes <= MATRIX_CLASSES) matrix(page, facts, counts);
    confusions(page, facts, counts);
    if (facts->classes <= TABLE_CLASSES) whole_table(page, facts, counts);
    page_section_end(page);
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

static tutti_status mistake_figure(
    struct text *page, const struct report_facts *facts, struct sample_room *room, const tutti_mistake *mistake)
{
    char a[32], b[32], alt[256];
    if (facts->test->read(facts->test->user, &mistake->index, 1, room->buffers, 2) != 0)
        return TUTTI_OK; /* not this one */
    const char *target = report_class(facts, mistake->target, a, sizeof(a));
    const char *predicted = report_class(facts, mistake->predicted, b, sizeof(b));
    snprintf(alt, sizeof(alt), "Sample %lld: %.80s, taken for %.80s", (long long)mistake->index, target, predicted);
    text_append(page, "<figure>");
    const tutti_status status = sample_append(page, facts, room->values, NULL, alt);
    text_append(page, "<figcaption><b>");
    page_text(page, target);
    text_append(page, "</b>, taken for <b>");
    page_text(page, predicted);
    text_append(page, "</b><br><span class=\"soft\">%.0f %% sure<br>", 100 * mistake->probability);
    sample_name(page, facts, facts->part, mistake->index);
    text_append(page, "</span></figcaption></figure>\n");
    return status;
}

static tutti_status mistakes(struct text *page, const struct report *report)
{
    const struct report_facts *facts = &report->facts;
    tutti_mistake mistake = { .size = sizeof(mistake) };
    struct sample_room room = { 0 };
    tutti_status status = TUTTI_OK;
    if (!sample_is_picture(facts) || !facts->test || tutti_scores_mistake(facts->scores, 0, &mistake) != TUTTI_OK)
        return TUTTI_OK;
    if (!sample_room_make(&room, facts, 1)) goto done; /* too large to be shown */
    page_section(page, "The worst mistakes", false);
    text_append(page, "<div class=\"samples\">\n");
    for (int i = 0;
         i < SHOWN_MISTAKES && status == TUTTI_OK && tutti_scores_mistake(facts->scores, i, &mistake) == TUTTI_OK; i++)
        status = mistake_figure(page, facts, &room, &mistake);
    text_append(page, "</div>\n");
    page_section_end(page);
done:
    sample_room_free(&room);
    return status;
}

tutti_status report_figure(const struct report_facts *facts, const tutti_mistake *mistake, struct text *page)
{
    struct sample_room room = { 0 };
    tutti_status status = TUTTI_OK;
    if (facts->classes > 0 && facts->test && sample_is_picture(facts) && sample_room_make(&room, facts, 1))
        status = mistake_figure(page, facts, &room, mistake);
    sample_room_free(&room);
    return status;
}

tutti_status report_results(const struct report *report, struct text *page)
{
    const struct report_facts *facts = &report->facts;
    const int64_t *counts = tutti_scores_confusion(report->facts.scores);
    if (!facts->classes || !counts) return TUTTI_OK;
    report_confusion(page, facts, counts);
    classes(page, report);
    return mistakes(page, report);
}
