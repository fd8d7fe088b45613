#include "tools/picture.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "tools/report/network_svg.h"
#include "tools/report/page.h"

#include <stdlib.h>

/* Bytes of a batch of this shape, with four bytes a value; 0: too many. */
static size_t batch_bytes(const tutti_shape *shape, int64_t batch)
{
    size_t bytes = sizeof(float);
    bool fits = batch > 0 && size_multiply(bytes, (size_t)batch, &bytes);
    for (int i = 0; i < shape->rank; i++)
        fits = fits && shape->sizes[i] > 0 && size_multiply(bytes, (size_t)shape->sizes[i], &bytes);
    return fits ? bytes : 0;
}

/* The plan must have run before its launches are measured. */
static tutti_status run_step(const struct session *session, int64_t batch, bool train)
{
    tutti_shape output;
    tutti_status status = tutti_shape_of(session->network, session->output, &output);
    if (status != TUTTI_OK) return status;
    const size_t input_bytes = batch_bytes(&session->shape, batch), output_bytes = batch_bytes(&output, batch);
    if (!input_bytes || !output_bytes)
        return fail(TUTTI_INVALID, "a batch of %lld does not fit: lower --batch", (long long)batch);
    float *inputs = memory_new(input_bytes, 1), *outputs = memory_new(output_bytes, 1);
    if (!inputs || !outputs) {
        status = TUTTI_NO_MEMORY;
    } else {
        const struct session_arrays arrays = session_arrays(session, inputs, outputs, outputs);
        status = train ? tutti_train_step(session->trainer, arrays.feeds, 2, batch, NULL)
                       : tutti_infer(session->trainer, arrays.feeds, 1, batch, &arrays.fetch, 1);
    }
    free(inputs);
    free(outputs);
    return status;
}

static tutti_status write_page(const struct session *session, const struct costs *costs, const char *path)
{
    struct json_line line;
    const char *name = session->model->name;
    json_line_begin(&line, NULL);
    json_line_print(&line, "title %s shown { parameters %lld version %s }", name,
        (long long)tutti_network_parameters(session->network), tutti_version());
    const tutti_status status = network_facts(&line, session->network, costs, name);
    json_t *facts = page_facts(&line);
    if (status == TUTTI_OK) return page_write(facts, path);
    json_decref(facts);
    return status;
}

static tutti_status write_svg(const struct session *session, const struct costs *costs, const char *path)
{
    struct text page = { 0 };
    tutti_status status = network_svg(&page, session->network, costs, session->model->name, true);
    if (status == TUTTI_OK && page.failed) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = file_write(path, page.data, page.size);
    text_free(&page);
    return status;
}

int picture_write(const struct session *session, const struct picture_options *options, int64_t batch, bool train)
{
    struct costs costs = { 0 };
    tutti_status status = TUTTI_OK;
    bool writing = false; /* the command's own part: it has the message */
    if (!options->svg && !options->html)
        return options->time ? wrong_use(session->command, "--time needs --svg or --html") : EXIT_DONE;
    if (options->time) TRY(run_step(session, batch, train));
    TRY(costs_find(&costs, session->trainer, session->network, 0, options->time));
    writing = true;
    if (options->svg) TRY(write_svg(session, &costs, options->svg));
    if (options->html) TRY(write_page(session, &costs, options->html));
done:
    costs_free(&costs);
    if (status == TUTTI_OK) return EXIT_DONE;
    return work_failed(session->command, status, writing ? status_message() : tutti_message(session->runtime));
}
