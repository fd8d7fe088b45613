#include "tools/find_lr.h"

#include "base/file.h"
#include "base/numbers.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- picture ---- */

/* Where the axes are: rates by their logarithm to the right, losses upwards. */
enum { WIDTH = 720, HEIGHT = 420, LEFT = 64, RIGHT = 700, TOP = 72, BOTTOM = 366 };

struct axes {
    struct text text;
    double low, high;    /* logarithms of rates, to base 10 */
    double bottom, peak; /* losses */
};

static double x_of(const struct axes *axes, double rate)
{
    return LEFT + (RIGHT - LEFT) * (log10(rate) - axes->low) / (axes->high - axes->low);
}

/* Losses beyond the axis are drawn at its end. */
static double y_of(const struct axes *axes, double loss)
{
    const double at = (loss - axes->bottom) / (axes->peak - axes->bottom);
    return BOTTOM - (BOTTOM - TOP) * fmin(fmax(at, 0), 1);
}

static void set_axes(struct axes *axes, const tutti_rate_result *r)
{
    double least = r->smoothed[0], most = r->smoothed[0];
    for (int i = 1; i < r->count; i++) {
        least = fmin(least, fmin(r->smoothed[i], r->losses[i]));
        most = fmax(most, r->smoothed[i]);
    }
    const double first = r->smoothed[0]; /* an explosion would hide what comes before it */
    if (first - least > 0.05 * fabs(first)) most = fmin(most, 2 * first - least);
    if (!(most > least)) most = least + 1;
    axes->low = log10(r->rates[0]);
    axes->high = r->count > 1 ? log10(r->rates[r->count - 1]) : axes->low + 1;
    axes->bottom = least - 0.08 * (most - least);
    axes->peak = most + 0.08 * (most - least);
}

/* 1, 2 or 5 times a power of ten: at most six of them in the range. */
static double tick_of(double range)
{
    const double power = pow(10, floor(log10(range / 6)));
    const double factor = range / 6 / power;
    return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

static void draw_axes(struct axes *axes)
{
    const double tick = tick_of(axes->peak - axes->bottom);
    for (int power = (int)ceil(axes->low - 1e-9); power <= (int)floor(axes->high + 1e-9); power++) {
        const double x = x_of(axes, pow(10, power));
        text_append(&axes->text,
            "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
            TOP, BOTTOM, x, BOTTOM + 18, pow(10, power));
    }
    for (double loss = ceil(axes->bottom / tick) * tick; loss <= axes->peak; loss += tick)
        text_append(&axes->text,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT,
            y_of(axes, loss), RIGHT, LEFT - 8, y_of(axes, loss) + 4, fabs(loss) < tick / 2 ? 0 : loss);
    text_append(&axes->text, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, BOTTOM, RIGHT);
    text_append(&axes->text, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">learning rate (logarithmic)</text>\n",
        (LEFT + RIGHT) / 2, BOTTOM + 42);
    text_append(&axes->text, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">loss</text>\n",
        (TOP + BOTTOM) / 2);
}

static void draw_losses(struct axes *axes, const tutti_rate_result *r)
{
    for (int i = 0; i < r->count; i++)
        text_append(&axes->text, "<circle class=\"raw\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n", x_of(axes, r->rates[i]),
            y_of(axes, r->losses[i]));
    text_append(&axes->text, "<polyline class=\"smooth\" points=\"");
    for (int i = 0; i < r->count; i++)
        text_append(&axes->text, "%.1f,%.1f ", x_of(axes, r->rates[i]), y_of(axes, r->smoothed[i]));
    text_append(&axes->text, "\"/>\n");
}

/* Draws a vertical line, with its name above the plot in row `row`. */
static void draw_rate(struct axes *axes, const char *class, const char *name, double rate, int row)
{
    if (rate <= 0) return;
    const double x = x_of(axes, rate);
    const bool left = x > (LEFT + RIGHT) / 2.0;
    text_append(&axes->text, "<path class=\"%s\" d=\"M%.1f %dV%d\"/>", class, x, TOP - 30 + 16 * row, BOTTOM);
    text_append(&axes->text, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s: %.2g</text>\n", left ? x - 6 : x + 6,
        TOP - 22 + 16 * row, left ? "end" : "start", name, rate);
}

static const char style[] =
    "<style>\n"
    "svg{color-scheme:light dark;background:#fff;font:13px system-ui,sans-serif}\n"
    "text{fill:#333}.title{font-size:16px;font-weight:600}\n"
    ".grid{stroke:#e3e3e3}.axis{stroke:#777;fill:none}.raw{fill:#8aa4c8}\n"
    ".smooth{stroke:#1f5fae;stroke-width:2.5;fill:none;stroke-linejoin:round}\n"
    ".valley{stroke:#b3460d;stroke-width:2}.steep{stroke:#28703a;stroke-width:1.5;stroke-dasharray:5 4}\n"
    "@media (prefers-color-scheme:dark){\n"
    "svg{background:#161a20}text{fill:#dde1e6}.grid{stroke:#2c323b}.axis{stroke:#8b929c}.raw{fill:#4b6488}\n"
    ".smooth{stroke:#79b0f5}.valley{stroke:#f2955c}.steep{stroke:#79cf8f}}\n"
    "</style>\n";

/* Returns an SVG file, light or dark as the reader's screen is. Free it with free(). NULL without memory. */
static char *picture_of(const tutti_rate_result *r, const char *model)
{
    struct axes axes = { 0 };
    set_axes(&axes, r);
    text_append(&axes.text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t d\">\n"
        "<title id=\"t\">Range test of learning rates</title>\n",
        WIDTH, HEIGHT);
    text_append(&axes.text,
        "<desc id=\"d\">The loss over %d steps with rates from %.2g to %.2g. Suggested: %.2g (valley), %.2g "
        "(steepest).</desc>\n",
        r->count, r->rates[0], r->rates[r->count - 1], r->valley, r->steepest);
    text_append(&axes.text, "%s", style);
    text_append(&axes.text, "<text class=\"title\" x=\"%d\" y=\"24\">Learning rates: ", LEFT);
    page_text(&axes.text, model);
    text_append(&axes.text, "</text>\n");
    draw_axes(&axes);
    draw_losses(&axes, r);
    draw_rate(&axes, "steep", "steepest", r->steepest, 0);
    draw_rate(&axes, "valley", "suggested (valley)", r->valley, 1);
    text_append(&axes.text, "</svg>\n");
    return text_take(&axes.text);
}

/* ------------------------------------------------------------------------------------------------------- test ---- */

static tutti_status result_json(const tutti_rate_result *r)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "valley %g steepest %g steps [", r->valley, r->steepest);
    for (int i = 0; i < r->count; i++)
        json_line_print(&line, "{ rate %g loss %g smoothed %g }", r->rates[i], r->losses[i], r->smoothed[i]);
    return json_line_end(&line);
}

static tutti_status report_result(
    const struct session *session, const tutti_rate_result *r, const char *path, bool json)
{
    char *picture = picture_of(r, session->model->name), suggestion[128];
    const tutti_status status = picture ? file_write(path, picture, strlen(picture)) : TUTTI_NO_MEMORY;
    free(picture);
    if (status != TUTTI_OK) return status;
    if (r->valley > 0) {
        number_print(suggestion, sizeof(suggestion), "suggested --lr %.2g (valley); steepest descent at %.2g",
            r->valley, r->steepest);
        fprintf(stderr, "%s\n", suggestion);
    } else {
        fprintf(stderr, "the loss falls at no rate: no suggestion\n");
    }
    fprintf(stderr, "%d steps; the picture is %s; nothing was trained\n", r->count, path);
    return json ? result_json(r) : TUTTI_OK;
}

int find_lr_run(const struct session *session, const tutti_source *source, const char *path, bool json)
{
    tutti_rate_result result = { .size = sizeof(result) };
    tutti_status status =
        tutti_find_rate(session->trainer, source, &(tutti_rate_options) { .batch = session->training.batch }, &result);
    if (status != TUTTI_OK) return work_failed(session->command, status, tutti_message(session->runtime));
    if (session->rank == 0) status = report_result(session, &result, path, json);
    free(result.rates);
    free(result.losses);
    free(result.smoothed);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}
