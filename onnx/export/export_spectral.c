/* Fourier transforms in ONNX: DFT of a whole axis of complex numbers. Elements at other positions are moved. */
#include "onnx/export/export.h"

#include <string.h>

enum { COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL }; /* enum dft_form of layers/dft/dft.h */

struct transform {
    int64_t axis, in, length, count, from, to; /* layers/dft/dft.h; the axis is one of the array */
    int form, rank;                            /* rank: with the axis of the parts of complex numbers */
    bool inverse, doubled, unit;
    double scale;
};

static struct transform transform_of(struct source *source)
{
    struct transform t = { .form = (int)source_number(source, "form", 0) };
    int64_t axis = 0;
    (void)source_list(source, "axis", &axis, 1);
    (void)source_list(source, "length", &t.length, 1);
    (void)source_list(source, "count", &t.count, 1);
    (void)source_list(source, "from", &t.from, 1);
    (void)source_list(source, "to", &t.to, 1);
    t.axis = array_axis(&source->x, axis);
    t.in = source->x.shape.sizes[axis];
    t.inverse = source_number(source, "inverse", 0) != 0;
    t.doubled = source_number(source, "doubled", 0) != 0;
    t.unit = source_number(source, "unit", 0) != 0;
    t.scale = source_number(source, "scale", 1) * (t.inverse ? (double)t.length : 1); /* of what DFT gives */
    t.rank = array_rank(&source->x) + (t.form == REAL_TO_COMPLEX && !t.unit);
    return t;
}

static const char *along_last(struct source *source, const char *type, const char *from, int rank)
{
    return source_step(source, type, from, source_integers(source, &(int64_t) { rank - 1 }, 1));
}

/* Doubles the elements of one half of a symmetric spectrum, which begins at position `first`. */
static const char *weighted(
    struct source *source, const struct transform *t, const char *from, int64_t first, int64_t count)
{
    int64_t axes[TUTTI_MAX_RANK + 1];
    if (!t->doubled) return from;
    float *weights = export_new(source->export, (size_t)count, sizeof *weights);
    for (int64_t i = 0; weights && i < count; i++) {
        const int64_t position = (first + i) % t->length;
        weights[i] = position != 0 && 2 * position != t->length ? 2 : 1;
    }
    const int after = t->rank - 1 - (int)t->axis;
    for (int i = 0; i < after; i++) axes[i] = i + 1;
    const char *factor = weights ? source_vector(source, weights, count) : "";
    factor = source_step(source, "Unsqueeze", factor, source_integers(source, axes, after));
    return source_step(source, "Mul", from, factor);
}

/* `count` elements from position `from` on, in a circle: those up to the end, then those from the first one on. */
static const char *turned(struct source *source, const struct transform *t, const char *x, int64_t from, int64_t count)
{
    if (from == 0 && count == t->length) return x;
    const int64_t end = from + count < t->length ? from + count : t->length;
    const char *part = source_slice(source, x, t->axis, from, end, NULL);
    if (from + count <= t->length) return part;
    const char *const parts[] = { part, source_slice(source, x, t->axis, 0, from + count - t->length, NULL) };
    const char *joined = source_temporary(source);
    made_integer(source_node_of(source, "Concat", parts, 2, joined), "axis", t->axis);
    return joined;
}

/* Puts the elements at their positions, with zeros elsewhere. If they begin at position 0, DFT itself appends the
 * zeros. */
static const char *placed(struct source *source, const struct transform *t, const char *x)
{
    int64_t pads[2 * TUTTI_MAX_RANK + 4] = { 0 };
    if (t->from == 0) return x;
    pads[t->rank + t->axis] = t->length - t->in;
    const char *padded = source_temporary(source);
    (void)source_node(source, "Pad", x, source_integers(source, pads, 2 * t->rank), source_scalar(source, 0), padded);
    return turned(source, t, padded, t->length - t->from, t->length);
}

void export_dft(struct source *source)
{
    const struct transform t = transform_of(source);
    const bool half = t.form == REAL_TO_COMPLEX && !t.inverse && t.to + t.count <= t.length / 2 + 1;
    const char *x = source_input(source, 0), *y = source_temporary(source);
    if (t.form == REAL_TO_COMPLEX && !t.unit) x = along_last(source, "Unsqueeze", x, t.rank);
    if (t.form == COMPLEX_TO_REAL) x = weighted(source, &t, x, t.from, t.in);
    x = placed(source, &t, x);
    const struct made made =
        source_node(source, "DFT", x, source_integer(source, t.length), source_integer(source, t.axis), y);
    made_integer(made, "inverse", t.inverse);
    made_integer(made, "onesided", half);
    if (!half || t.count != t.length / 2 + 1) y = turned(source, &t, y, t.to, t.count);
    if (t.form == COMPLEX_TO_REAL) y = source_slice(source, y, t.rank - 1, 0, 1, NULL);
    if (t.form == REAL_TO_COMPLEX) y = weighted(source, &t, y, t.to, t.count);
    if ((float)t.scale != 1) y = source_step(source, "Mul", y, source_scalar(source, (float)t.scale));
    if (t.form == COMPLEX_TO_REAL && !t.unit) y = along_last(source, "Squeeze", y, t.rank);
    source_finish(source, y);
}
