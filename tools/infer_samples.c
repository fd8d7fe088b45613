#include "tools/infer_samples.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/likeliest.h"
#include "tools/tagged.h"
#include "tools/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_NAME = 1100 };

/* Buffers for a batch, and the bytes of a sample. */
struct work {
    struct infer_request *request;
    struct session *session;
    const struct data *data;
    struct samples *samples;
    struct predicted predicted;
    int64_t outputs; /* numbers for a sample */
    size_t input_bytes, target_bytes;
    unsigned char *inputs, *targets;
    int32_t *types;             /* of pairs of texts, else NULL */
    int64_t length;             /* of texts or recordings in the present batch; 0: other data */
    tutti_tokenizer *tokenizer; /* of transcripts, else NULL */
    float *results;
    double *values; /* of a sample: probabilities, or numbers */
    int64_t *indices;
    bool *bad; /* samples of the batch that cannot be read */
};

/* ---------------------------------------------------------------------------------------------------- print ---- */

/* Prints a sample's numbers, which are in the units of the data. */
static tutti_status print_numbers(const struct work *w, int64_t index, const char *title)
{
    struct json_line line;
    if (!w->request->saved->json) {
        printf("%lld", (long long)index);
        for (int64_t i = 0; i < w->outputs; i++) printf(" %.*g", data_digits(w->data, i), w->values[i]);
        printf("  %s%s%s\n", w->request->file ? w->request->file : "", w->request->file ? " " : "", title);
        return TUTTI_OK;
    }
    json_line_begin(&line, stdout);
    json_line_integer(&line, "index", index);
    if (w->request->file) json_line_text(&line, "file", w->request->file);
    json_line_text(&line, "sample", title);
    if (w->outputs == 1) {
        json_line_digits(&line, "value", w->values[0], data_digits(w->data, 0));
    } else {
        json_line_print(&line, "values [");
        for (int64_t i = 0; i < w->outputs; i++) json_line_digits(&line, NULL, w->values[i], data_digits(w->data, i));
    }
    return json_line_end(&line);
}

/* Whether predictions are printed: not if they are written to a file, unless both are asked for. */
static bool prints(const struct work *w)
{
    return !w->request->predictions.path || w->request->saved->json;
}

static tutti_status use_numbers(struct work *w, int64_t index, const float *outputs, const char *title)
{
    for (int64_t i = 0; i < w->outputs; i++) w->values[i] = data_in_units(w->data, i, (double)outputs[i]);
    return prints(w) ? print_numbers(w, index, title) : TUTTI_OK;
}

static tutti_status use_classes(
    struct work *w, int64_t index, int64_t position, const float *outputs, const char *title)
{
    int32_t label = -1;
    if (w->target_bytes == sizeof(label)) memcpy(&label, w->targets + (size_t)position * sizeof(label), sizeof(label));
    const struct likeliest likeliest = { .title = title,
        .file = w->request->file,
        .index = w->request->alone ? -1 : index,
        .names = w->predicted.names,
        .outputs = outputs,
        .classes = w->predicted.count,
        .labels = w->session->labels,
        .label = label };
    likeliest_values(&likeliest, w->values);
    return prints(w) ? likeliest_print(&likeliest, w->values, w->request->saved->json) : TUTTI_OK;
}

static tutti_status use_tags(struct work *w, int64_t index, int64_t position, const char *title)
{
    const struct tagged tagged = {
        .data = w->data, .part = w->samples->part, .names = w->predicted.names, .classes = w->session->classes
    };
    const float *outputs = w->results + position * w->length * tagged.classes;
    w->request->done++;
    return tagged_print(&tagged, index, w->request->before + index, title, outputs, w->request->saved->json);
}

static tutti_status use_transcript(struct work *w, int64_t index, int64_t position, const char *title)
{
    const int64_t classes = w->session->classes;
    const float *logits = w->results + position * w->length * classes;
    if (w->bad[position]) return TUTTI_OK;
    char *text = transcript_of(w->tokenizer, logits, w->length, classes);
    if (!text) return fail(TUTTI_NO_MEMORY, "%s", tutti_message(NULL));
    tutti_status status = TUTTI_OK;
    if (w->request->saved->json) {
        struct json_line line;
        json_line_begin(&line, stdout);
        json_line_integer(&line, "index", w->request->before + index);
        json_line_text(&line, "sample", title);
        json_line_text(&line, "text", text);
        status = json_line_end(&line);
    } else
        printf("%s\t%s\n", title, text);
    w->request->done++;
    free(text);
    return status;
}

static tutti_status use_sample(struct work *w, int64_t index, int64_t position)
{
    char title[SAMPLE_NAME];
    const float *outputs = w->results + position * w->outputs;
    const tutti_data *opened = w->data->opened;
    struct infer_request *request = w->request;
    const int64_t row = tutti_data_row(opened, w->samples->part, index);
    if (request->predictions.field_of) w->predicted.table = tutti_data_file(opened, w->samples->part, index);
    tutti_status status = tutti_data_name(opened, w->samples->part, index, title, sizeof(title));
    if (status != TUTTI_OK) return status;
    if (w->data->info.tags) return use_tags(w, index, position, title);
    if (w->tokenizer) return use_transcript(w, index, position, title);
    if (w->bad[position]) return predictions_add(&request->predictions, &w->predicted, row, title, NULL);
    const int64_t number = request->before + index;
    status =
        w->data->numbers ? use_numbers(w, number, outputs, title) : use_classes(w, number, position, outputs, title);
    request->done++;
    return status == TUTTI_OK ? predictions_add(&request->predictions, &w->predicted, row, title, w->values) : status;
}

/* ----------------------------------------------------------------------------------------------------- read ---- */

/* Batches of texts are as long as their longest, or longer: few lengths need few plans. */
static tutti_status set_length(struct work *w, int64_t count)
{
    enum { LEAST = 16 };
    const tutti_source *source = &w->samples->source;
    if (w->data->info.length == 0) return TUTTI_OK;
    const int64_t longest = source->batch_length(source->user, w->indices, count), most = w->data->info.length;
    if (longest < 1) return fail(TUTTI_FILE, "%s", tutti_message(NULL));
    for (w->length = LEAST; w->length < longest; w->length *= 2) continue;
    if (w->length > most) w->length = most;
    w->input_bytes = (size_t)w->length * sizeof(int32_t);
    if (w->tokenizer) w->input_bytes *= (size_t)w->data->info.shape.sizes[1];
    if (w->data->info.tags) w->target_bytes = w->input_bytes;
    return TUTTI_OK;
}

static tutti_status read_texts(const struct work *w, int64_t at, int64_t count)
{
    const tutti_source *source = &w->samples->source;
    tutti_buffer buffers[] = { { "ids", TUTTI_DTYPE_I32, w->inputs + (size_t)at * w->input_bytes, w->input_bytes,
                                   w->length },
        { "targets", w->data->info.target_dtype, w->targets + (size_t)at * w->target_bytes, w->target_bytes,
            w->length },
        { "types", TUTTI_DTYPE_I32, w->types ? w->types + at * w->length : NULL, w->input_bytes, w->length } };
    return (tutti_status)source->read(source->user, w->indices + at, count, buffers, w->types ? 3 : 2);
}

static tutti_status read_some(const struct work *w, int64_t at, int64_t count)
{
    if (w->length > 0 && !w->tokenizer) return read_texts(w, at, count);
    const tutti_buffer buffers[] = { { "input", w->session->pixels ? TUTTI_DTYPE_U8 : TUTTI_DTYPE_F32,
                                         w->inputs + (size_t)at * w->input_bytes, w->input_bytes, w->length },
        { "targets", w->data->info.target_dtype, w->targets + (size_t)at * w->target_bytes, w->target_bytes,
            w->length } };
    return (tutti_status)w->samples->source.read(w->samples->source.user, w->indices + at, count, buffers, 2);
}

/* Reads a batch. If that fails for a file, reads its samples one by one, and names those that cannot be read. */
static tutti_status read_batch(const struct work *w, int64_t count)
{
    for (int64_t i = 0; i < count; i++) w->bad[i] = false;
    tutti_status status = read_some(w, 0, count);
    if (status != TUTTI_FILE && status != TUTTI_FORMAT && status != TUTTI_UNSUPPORTED) return status;
    for (int64_t i = 0; i < count; i++) {
        status = read_some(w, i, 1);
        if (status == TUTTI_OK) continue;
        if (status != TUTTI_FILE && status != TUTTI_FORMAT && status != TUTTI_UNSUPPORTED) return status;
        fprintf(stderr, "tutti infer: %s\n", tutti_message(NULL));
        memset(w->inputs + (size_t)i * w->input_bytes, 0, w->input_bytes);
        w->bad[i] = true;
        w->request->bad++;
    }
    return TUTTI_OK;
}

static tutti_status compute(const struct work *w, int64_t count)
{
    struct session_arrays arrays = session_arrays(w->session, w->inputs, NULL, w->results);
    if (w->tokenizer) arrays.feeds[0].length = w->length;
    const tutti_feed texts[] = { { "ids", TUTTI_DTYPE_I32, w->inputs, w->length },
        { "types", TUTTI_DTYPE_I32, w->types, w->length } };
    if (w->length > 0 && !w->tokenizer)
        return tutti_infer(w->session->trainer, texts, w->types ? 2 : 1, count, &arrays.fetch, 1);
    return tutti_infer(w->session->trainer, arrays.feeds, 1, count, &arrays.fetch, 1);
}

static tutti_status infer_batches(struct work *w)
{
    const struct infer_request *r = w->request;
    const int64_t end = r->count && r->count < w->samples->count - r->first ? r->first + r->count : w->samples->count;
    const int64_t batch = w->session->training.batch;
    for (int64_t first = r->first; first < end; first += batch) {
        const int64_t count = end - first < batch ? end - first : batch;
        for (int64_t i = 0; i < count; i++) w->indices[i] = first + i;
        tutti_status status = set_length(w, count);
        if (status == TUTTI_OK) status = read_batch(w, count);
        if (status != TUTTI_OK) return fail(status, "%s", tutti_message(NULL));
        status = compute(w, count);
        if (status != TUTTI_OK) return fail(status, "%s", tutti_message(w->session->runtime));
        for (int64_t i = 0; i < count && status == TUTTI_OK; i++) status = use_sample(w, first + i, i);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- set up ---- */

static size_t elements_of(const tutti_shape *shape)
{
    size_t elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= (size_t)shape->sizes[i];
    return elements;
}

static tutti_status infer_with_file(struct work *w)
{
    struct predictions *predictions = &w->request->predictions;
    tutti_status status = predictions_begin(predictions, &w->predicted);
    if (status == TUTTI_OK) status = infer_batches(w);
    return status == TUTTI_OK ? predictions_end(predictions, &w->predicted) : status;
}

/* Says what the outputs are. */
static void set_predicted(struct work *w)
{
    const struct infer_request *r = w->request;
    const struct user_data_saved *known = r->saved->known;
    const bool numbers = w->data->numbers;
    const char *const *names = numbers ? NULL : w->data->info.class_names;
    if (!numbers && !names && known && known->class_count > 0) names = (const char *const *)known->classes;
    w->predicted = (struct predicted) { .data = w->data,
        .table = r->table,
        .whole = r->first == 0 && r->count == 0 && r->saved->own.data.ignore_targets,
        .names = names,
        .count = numbers ? w->outputs : w->outputs / w->session->labels,
        .numbers = numbers,
        .shares = w->session->labels > 1 };
}

tutti_status infer_samples(
    struct infer_request *request, struct session *session, const struct data *data, struct samples *samples)
{
    struct work w = { .request = request, .session = session, .data = data, .samples = samples };
    tutti_status status = TUTTI_NO_MEMORY;
    const size_t batch = (size_t)session->training.batch;
    tutti_shape output = { 0 };
    size_t inputs, outputs;
    (void)tutti_shape_of(session->network, session->output, &output);
    w.outputs =
        data->info.tags || data_is_speech(data) ? data->info.length * session->classes : (int64_t)elements_of(&output);
    w.input_bytes = elements_of(&data->info.shape) * (session->pixels ? 1 : sizeof(float));
    w.target_bytes = elements_of(&data->info.target_shape) * sizeof(float);
    if (!size_multiply(batch, w.input_bytes, &inputs) || !size_multiply(batch, (size_t)w.outputs, &outputs))
        FAIL(TUTTI_INVALID, "--batch %lld does not fit the memory of this machine: lower it", (long long)batch);
    if (data_is_speech(data) && !(w.tokenizer = tutti_tokenizer_parse(data->info.tokenizer)))
        FAIL(tutti_last_status(), "%s", tutti_message(NULL));
    set_predicted(&w);
    w.inputs = memory_new(inputs, 1);
    if (data->info.pairs && !(w.types = memory_new(inputs, 1))) goto done;
    w.results = memory_new(outputs, sizeof(float));
    w.values = memory_new((size_t)w.predicted.count, sizeof(double));
    w.indices = memory_new(batch, sizeof(int64_t));
    w.targets = memory_new(batch, w.target_bytes);
    w.bad = memory_new(batch, sizeof(bool));
    if (w.inputs && w.results && w.values && w.indices && w.targets && w.bad) status = infer_with_file(&w);
done:
    tutti_tokenizer_close(w.tokenizer);
    free(w.inputs);
    free(w.types);
    free(w.results);
    free(w.values);
    free(w.indices);
    free(w.targets);
    free(w.bad);
    return status;
}
