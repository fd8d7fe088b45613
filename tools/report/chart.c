#include "tools/report/chart.h"

#include "base/file.h"
#include "base/numbers.h"
#include "base/status.h"
#include "tools/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 360,
    HEIGHT = 230,
    LEFT = 46,
    RIGHT = 76,
    TOP = 14,
    BOTTOM = 40,
    LABEL_STEP = 16,
    LABEL_LENGTH = 11,
    HEADING = 26
};

struct frame {
    double x0, x1, y0, y1; /* after their logarithms, if they have one */
    bool logarithm;
    double factor, most;
    bool x_logarithm;
};

static double x_place(const struct frame *frame, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * ((frame->x_logarithm ? log10(x) : x) - frame->x0) / (frame->x1 - frame->x0);
}

static double y_value(const struct frame *frame, double y)
{
    const double value = fmin(y, frame->most) * frame->factor;
    return frame->logarithm ? log10(value) : value;
}

static double y_place(const struct frame *frame, double y)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y_value(frame, y) - frame->y0) / (frame->y1 - frame->y0);
}

static bool shown(const struct frame *frame, double y)
{
    return isfinite(y) && (!frame->logarithm || y > 0);
}

static double nice_step(double span, int most)
{
    const double rough = span / most, power = pow(10, floor(log10(rough)));
    const double parts = rough / power;
    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
}

static void widen(struct frame *frame, bool from_zero)
{
    if (frame->x_logarithm) frame->x0 = log10(frame->x0), frame->x1 = log10(frame->x1);
    if (!(frame->x0 <= frame->x1)) frame->x0 = 0, frame->x1 = 1;
    if (!(frame->x0 < frame->x1)) frame->x1 = frame->x0 + 1;
    if (!(frame->y0 <= frame->y1)) frame->y0 = 0, frame->y1 = 1;
    if (frame->logarithm) {
        frame->y0 = log10(frame->y0), frame->y1 = log10(frame->y1);
        const double margin = 0.04 * (frame->y1 - frame->y0);
        frame->y0 -= margin, frame->y1 += margin;
        return;
    }
    if (from_zero && frame->y0 > 0) frame->y0 = 0;
    if (!(frame->y0 < frame->y1)) {
        const double half = frame->y0 ? fabs(frame->y0) / 2 : 0.5;
        frame->y0 -= frame->y0 == 0 ? 0 : half, frame->y1 += half;
    }
    const double step = nice_step(frame->y1 - frame->y0, 4);
    frame->y0 = step * floor(frame->y0 / step + 1e-9), frame->y1 = step * ceil(frame->y1 / step - 1e-9);
}

static struct frame frame_of(const struct chart *chart)
{
    struct frame frame = { INFINITY, -INFINITY, INFINITY, -INFINITY, chart->logarithm,
        chart->factor != 0 ? chart->factor : 1, chart->most != 0 ? chart->most : INFINITY, chart->x_logarithm };
    for (int s = 0; s < chart->count; s++) {
        const struct series *series = &chart->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (!isfinite(series->y[i])) continue;
            const double y = fmin(series->y[i], frame.most) * frame.factor;
            frame.x0 = fmin(frame.x0, series->x[i]), frame.x1 = fmax(frame.x1, series->x[i]);
            frame.y0 = fmin(frame.y0, y), frame.y1 = fmax(frame.y1, y);
        }
    }
    if (!(frame.y0 > 0 && frame.y1 > 20 * frame.y0)) frame.logarithm = false;
    widen(&frame, chart->from_zero);
    return frame;
}

static void y_tick(struct text *page, const struct chart *chart, const struct frame *frame, double value)
{
    const double y = y_place(frame, value / frame->factor);
    text_append(page,
        "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"soft small end\" x=\"%d\" y=\"%.1f\">%.6g%s</text>\n",
        LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, fabs(value) < 1e-12 ? 0 : value, chart->unit ? chart->unit : "");
}

static void y_axis(struct text *page, const struct chart *chart, const struct frame *frame)
{
    if (!frame->logarithm) {
        const double step = nice_step(frame->y1 - frame->y0, 5);
        for (double value = step * ceil(frame->y0 / step - 1e-9); value <= frame->y1 + 1e-9 * step; value += step)
            y_tick(page, chart, frame, value);
        return;
    }
    static const double parts[] = { 1, 2, 5 };
    const int each = frame->y1 - frame->y0 < 2.2 ? 3 : 1;
    for (int power = (int)floor(frame->y0); power <= (int)ceil(frame->y1); power++)
        for (int i = 0; i < each; i++) {
            const double value = parts[i] * pow(10, power);
            if (log10(value) >= frame->y0 && log10(value) <= frame->y1) y_tick(page, chart, frame, value);
        }
}

static void x_axis(struct text *page, const struct chart *chart, const struct frame *frame)
{
    const double span = frame->x1 - frame->x0, step = fmax(nice_step(span, 6), span >= 2 || frame->x_logarithm ? 1 : 0),
                 base = HEIGHT - BOTTOM;
    text_append(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>\n", LEFT, base, WIDTH - RIGHT);
    for (double at = step * ceil(frame->x0 / step - 1e-9); at <= frame->x1 + 1e-9 * step; at += step) {
        const double value = frame->x_logarithm ? pow(10, at) : fabs(at) < 1e-12 ? 0 : at;
        text_append(page, "<text class=\"soft small mid\" x=\"%.1f\" y=\"%.1f\">%.8g</text>\n", x_place(frame, value),
            base + 16, value);
    }
    text_append(page, "<text class=\"soft small mid\" x=\"%d\" y=\"%d\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
    page_text(page, chart->x_label);
    text_append(page, "</text>\n");
}

static void line(struct text *page, const struct frame *frame, const struct series *series)
{
    static const char *const dashes[] = { "", " stroke-dasharray=\"6 4\"", " stroke-dasharray=\"2 4\"" };
    bool open = false;
    text_append(page, "<path class=\"line%s s%d\"%s d=\"", series->name ? "" : " faint", series->colour,
        dashes[series->dashes]);
    for (size_t i = 0; i < series->count; i++) {
        if (!shown(frame, series->y[i])) {
            open = false;
            continue;
        }
        text_append(page, "%s%.1f %.1f", open ? "L" : "M", x_place(frame, series->x[i]), y_place(frame, series->y[i]));
        open = true;
    }
    text_append(page, "\"/>\n");
}

static void tip(struct text *page, const struct chart *chart, const struct series *series, size_t i)
{
    char value[64];
    number_print(value, sizeof(value), "%.4g", series->y[i] * (chart->factor != 0 ? chart->factor : 1));
    text_append(page, "<title>");
    if (series->name) page_text(page, series->name);
    text_append(page, ", %s %.6g: %s%s</title>", chart->x_label, series->x[i], value, chart->unit ? chart->unit : "");
}

static void points(struct text *page, const struct chart *chart, const struct frame *frame, const struct series *series)
{
    if (series->count > 60) return;
    for (size_t i = 0; i < series->count; i++) {
        if (!shown(frame, series->y[i])) continue;
        text_append(page, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\">", series->colour,
            x_place(frame, series->x[i]), y_place(frame, series->y[i]));
        tip(page, chart, series, i);
        text_append(page, "</circle>\n");
    }
}

/* Draws vertical lines with their names, one below the other. */
static void marks(struct text *page, const struct chart *chart, const struct frame *frame)
{
    for (int i = 0; i < CHART_MARKS; i++) {
        const struct mark *mark = &chart->marks[i];
        if (!mark->name) continue;
        const double x = x_place(frame, mark->x);
        const bool left = x > (LEFT + WIDTH - RIGHT) / 2.0;
        text_append(page, "<path class=\"line s%d\" d=\"M%.1f %dV%d\"/>", i + 1, x, TOP, HEIGHT - BOTTOM);
        text_append(page, "<text class=\"f%d small%s\" x=\"%.1f\" y=\"%d\">%s: %.2g</text>\n", i + 1,
            left ? " end" : "", left ? x - 6 : x + 6, TOP + 10 + LABEL_STEP * i, mark->name, mark->x);
    }
}

struct label {
    const char *name;
    double y;
    int colour;
};

static int higher_first(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    return (x->y > y->y) - (x->y < y->y);
}

/* Writes labels at the lines' ends, pushed apart if they would overlap. */
static void labels(struct text *page, struct label *list, int count)
{
    qsort(list, (size_t)count, sizeof(*list), higher_first);
    for (int i = 1; i < count; i++) list[i].y = fmax(list[i].y, list[i - 1].y + LABEL_STEP);
    const double over = count ? list[count - 1].y - (HEIGHT - BOTTOM) : 0;
    if (over > 0) list[count - 1].y -= over;
    for (int i = count - 2; i >= 0 && over > 0; i--) list[i].y = fmin(list[i].y, list[i + 1].y - LABEL_STEP);
    for (int i = 0; i < count; i++) {
        text_append(page, "<text class=\"f%d bold small\" x=\"%d\" y=\"%.1f\">", list[i].colour, WIDTH - RIGHT + 8,
            list[i].y + 4);
        page_text_cut(page, list[i].name, LABEL_LENGTH);
        text_append(page, "<title>");
        page_text(page, list[i].name);
        text_append(page, "</title></text>\n");
    }
}

/* "Loss by epoch. training: from 0.68 to 0.01."; head: room for the title, in a file of its own. */
static void describe(struct text *page, const struct chart *chart, int head)
{
    const double factor = chart->factor != 0 ? chart->factor : 1;
    text_append(page, "<svg %srole=\"img\" viewBox=\"0 %d %d %d\" aria-label=\"",
        head ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", -head, WIDTH, HEIGHT + head);
    page_text(page, chart->title);
    text_append(page, " by %s.", chart->x_label);
    for (int s = 0; s < chart->count; s++) {
        const struct series *series = &chart->series[s];
        if (!series->name || !series->count) continue;
        text_append(page, " ");
        page_text(page, series->name);
        text_append(page, ": from %.4g to %.4g%s.", series->y[0] * factor, series->y[series->count - 1] * factor,
            chart->unit ? chart->unit : "");
    }
    text_append(page, "\">\n");
}

static double last_shown(const struct frame *frame, const struct series *series)
{
    for (size_t i = series->count; i > 0; i--)
        if (shown(frame, series->y[i - 1])) return y_place(frame, series->y[i - 1]);
    return NAN;
}

static void lines(struct text *page, const struct chart *chart)
{
    const struct frame frame = frame_of(chart);
    struct label ends[CHART_SERIES];
    int count = 0;
    y_axis(page, chart, &frame);
    x_axis(page, chart, &frame);
    for (int s = 0; s < chart->count; s++) {
        const struct series *series = &chart->series[s];
        line(page, &frame, series);
        if (series->points) points(page, chart, &frame, series);
        const double y = last_shown(&frame, series);
        if (series->name && isfinite(y)) ends[count++] = (struct label) { series->name, y, series->colour };
    }
    marks(page, chart, &frame);
    labels(page, ends, count);
    text_append(page, "</svg>\n");
}

void chart_lines(struct json_line *facts, const char *key, const struct chart *chart)
{
    struct text page = { 0 };
    describe(&page, chart, 0);
    lines(&page, chart);
    page_member(facts, key, &page);
}

tutti_status chart_write(const struct chart *chart, const char *path)
{
    struct text page = { 0 };
    describe(&page, chart, HEADING);
    text_append(&page, "<style>\n%s</style><rect y=\"%d\" width=\"100%%\" height=\"100%%\" fill=\"var(--bg)\"/>\n",
        embedded_style, -HEADING);
    text_append(&page, "<text class=\"bold\" x=\"%d\" y=\"-6\">", LEFT);
    page_text(&page, chart->title);
    text_append(&page, "</text>\n");
    lines(&page, chart);
    const tutti_status status = page.failed ? TUTTI_NO_MEMORY : file_write(path, page.data, page.size);
    text_free(&page);
    return status;
}

static double part(const struct chart *chart, int until, size_t i)
{
    double sum = 0, below = 0;
    for (int s = 0; s < chart->count; s++) {
        const double y = chart->series[s].y[i];
        if (!isfinite(y)) continue;
        sum += y;
        if (s < until) below += y;
    }
    return sum > 0 ? below / sum : 0;
}

void chart_stacked(struct json_line *facts, const char *key, const struct chart *chart)
{
    struct text svg = { 0 }, *page = &svg;
    struct frame frame = { INFINITY, -INFINITY, 0, 100, false, 100, INFINITY, false };
    struct label ends[CHART_SERIES];
    const struct series *first = &chart->series[0];
    const size_t count = first->count;
    if (!count) return;
    frame.x0 = first->x[0], frame.x1 = first->x[count - 1];
    if (!(frame.x0 < frame.x1)) frame.x0 -= 1;
    describe(page, chart, 0);
    y_axis(page, chart, &frame);
    for (int s = 0; s < chart->count; s++) {
        text_append(page, "<path class=\"f%d\" opacity=\".85\" d=\"", chart->series[s].colour);
        if (count == 1)
            text_append(page, "M%.1f %.1f", x_place(&frame, frame.x0), y_place(&frame, part(chart, s + 1, 0)));
        for (size_t i = 0; i < count; i++)
            text_append(page, "%s%.1f %.1f", i || count == 1 ? "L" : "M", x_place(&frame, first->x[i]),
                y_place(&frame, part(chart, s + 1, i)));
        for (size_t i = count; i > 0; i--)
            text_append(page, "L%.1f %.1f", x_place(&frame, first->x[i - 1]), y_place(&frame, part(chart, s, i - 1)));
        if (count == 1) text_append(page, "L%.1f %.1f", x_place(&frame, frame.x0), y_place(&frame, part(chart, s, 0)));
        text_append(page, "Z\"/>\n");
        const double middle = (part(chart, s, count - 1) + part(chart, s + 1, count - 1)) / 2;
        ends[s] = (struct label) { chart->series[s].name, y_place(&frame, middle), chart->series[s].colour };
    }
    x_axis(page, chart, &frame);
    labels(page, ends, chart->count);
    text_append(page, "</svg>\n");
    page_member(facts, key, page);
}
