/* Nodes that make log mel spectrograms of recordings, as data/mel.c makes them. */
#include "onnx/export/export.h"

#include "base/mel_scale.h"
#include "base/numbers.h"

#include <jansson.h>

enum { MOST_RATE = 1 << 24 };

/* Sizes of a spectrogram. Doubles: rounding would show in what is nearly silent. */
struct spectrogram {
    int rate, window, frequencies;
    int64_t samples; /* of the recording */
};

static bool read_sizes(struct export *export, const tutti_shape *shape, struct spectrogram *s)
{
    const json_int_t rate = json_integer_value(json_object_get(export->data.object, "rate"));
    if (rate < 1 || rate > MOST_RATE) {
        export_fail(export, fail(TUTTI_FORMAT, "the rate of the recordings that it was trained on is damaged"));
        return false;
    }
    const int window = mel_window_length((int)rate);
    *s = (struct spectrogram) { (int)rate, window, window / 2 + 1, 0 };
    const bool fits = shape->rank == 3 && shape->sizes[0] == 1 && shape->sizes[1] == MEL_BANDS;
    if (fits) s->samples = (shape->sizes[2] - 1) * (window / MEL_WINDOW_HOPS);
    if (s->samples >= window) return true;
    export_fail(export,
        fail(TUTTI_MISMATCH,
            "the data are recordings, of which spectrograms of 1 x %d x %d or more are made, but the network takes "
            "samples of another shape",
            MEL_BANDS, MEL_WINDOW_HOPS + 1));
    return false;
}

/* The window, [window]. */
static const char *add_window(struct source *source, const struct spectrogram *s)
{
    const tutti_shape shape = { .rank = 1, .sizes = { s->window } };
    double *window = export_new(source->export, (size_t)s->window, sizeof *window);
    for (int i = 0; i < s->window && window; i++) window[i] = (double)mel_window_at(i, s->window);
    return window ? source_constant(source, ONNX_DOUBLE, &shape, window) : "";
}

/* The weight of each frequency in each band, [frequencies, bands]. */
static const char *add_bands(struct source *source, const struct spectrogram *s)
{
    const tutti_shape shape = { .rank = 2, .sizes = { s->frequencies, MEL_BANDS } };
    double *weights = export_new(source->export, (size_t)s->frequencies * MEL_BANDS, sizeof *weights);
    for (int b = 0; b < MEL_BANDS && weights; b++) {
        const struct mel_triangle triangle = mel_triangle_of(b, MEL_BANDS, s->rate);
        for (int k = 0; k < s->frequencies; k++)
            weights[k * MEL_BANDS + b] = (double)mel_weight(&triangle, (double)k * s->rate / s->window);
    }
    return weights ? source_constant(source, ONNX_DOUBLE, &shape, weights) : "";
}

static const char *axis_of(struct source *source, int64_t axis)
{
    return source_integers(source, &axis, 1);
}

/* Power, [N, frames, frequencies], of a recording [N, samples]. */
static const char *add_power(struct source *source, const struct spectrogram *s, const char *x)
{
    const int64_t half = s->window / 2, hop = s->window / MEL_WINDOW_HOPS, pads[] = { 0, half, 0, half };
    const char *padded = source_temporary(source), *spectrum = source_temporary(source);
    const struct made pad = source_node(source, "Pad", x, source_integers(source, pads, 4), NULL, padded);
    made_text(pad, "mode", "reflect");
    x = source_step(source, "Unsqueeze", padded, axis_of(source, 2));
    made_integer(
        source_node(source, "STFT", x, source_integer(source, hop), add_window(source, s), spectrum), "onesided", 1);
    const char *power = source_temporary(source), *squares = source_step(source, "Mul", spectrum, spectrum);
    const struct made sum = source_node(source, "ReduceSum", squares, axis_of(source, 3), NULL, power);
    made_integer(sum, "keepdims", 0);
    return power;
}

const char *export_spectrogram(struct source *source, const tutti_shape *shape)
{
    static const double least = (double)MEL_LEAST_POWER;
    static const int64_t bands_first[] = { 0, 2, 1 };
    struct export *export = source->export;
    struct spectrogram s;
    if (!read_sizes(export, shape, &s)) return "";
    const char *name = export_name(export, "waveform");
    const tutti_shape samples = { .rank = 1, .sizes = { s.samples } };
    Onnx__ValueInfoProto *port = export_port(export, name, ONNX_FLOAT, &samples, true);
    char *says = export_new(export, 80, 1);
    if (says) number_print(says, 80, "%d samples a second of one channel, from -1 to 1", s.rate);
    port->doc_string = says;
    (void)export_add(export, &export->inputs, port);
    const char *x = add_power(source, &s, source_cast(source, name, ONNX_DOUBLE));
    x = source_step(source, "MatMul", x, add_bands(source, &s));
    x = source_step(source, "Add", x, source_constant(source, ONNX_DOUBLE, &(tutti_shape) { 0 }, &least));
    x = source_cast(source, source_step(source, "Log", x, NULL), ONNX_FLOAT);
    x = source_transpose(source, x, bands_first, 3, NULL);
    return source_step(source, "Unsqueeze", x, axis_of(source, 1));
}
