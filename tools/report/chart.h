/* Charts as SVG: lines over an axis, and areas that are stacked. Colours are classes of style.css. */
#ifndef TOOLS_CHART_H
#define TOOLS_CHART_H

#include "formats/json_lines.h"

enum { CHART_SERIES = 16, CHART_MARKS = 2 };

struct series {
    const char *name;    /* written at the line's end; NULL: not named, and drawn faintly */
    const double *x, *y; /* y that is not finite leaves a gap */
    size_t count;
    int colour;  /* 0 to 7; lines of one colour differ by their dashes */
    int dashes;  /* 0: none; 1, 2: two kinds */
    bool points; /* each has a mark, with its value as a tip */
};

struct chart {
    const char *title;   /* of the picture, for screen readers */
    const char *x_label; /* "epoch" */
    double factor;       /* of values, as 100 for percent; 0: 1 */
    const char *unit;    /* after the numbers of the y axis: "%" or NULL */
    double most;         /* larger values are drawn at it; 0: no limit */
    bool logarithm;      /* of y, where the values span enough */
    bool from_zero;
    bool x_logarithm;
    struct series series[CHART_SERIES];
    int count;
    struct mark {
        const char *name; /* NULL: there is no mark */
        double x;
    } marks[CHART_MARKS]; /* vertical lines */
};

/* Writes the picture, with its title, as a file of its own. */
tutti_status chart_write(const struct chart *chart, const char *path);
/* Adds the picture to the facts of a page. */
void chart_lines(struct json_line *facts, const char *key, const struct chart *chart);
/* Stacks the series, whose values are at the same places, as parts of their sum. */
void chart_stacked(struct json_line *facts, const char *key, const struct chart *chart);

#endif
