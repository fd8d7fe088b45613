#include "tools/saved.h"

#include "base/status.h"

#include <string.h>

const char *const saved_parts[] = { "test", "train", NULL };

static int weights_missing(const char *command)
{
    return wrong_use(command, "--weights is missing: name the safetensors file to use");
}

int saved_load(const char *command, const struct saved_options *options, struct session *session)
{
    if (!options->weights) return EXIT_DONE;
    const tutti_status status = tutti_load_weights(session->trainer, options->weights);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(command, status, tutti_message(session->runtime));
}

int saved_build(const char *command, const struct saved_options *options, const char *input, int64_t classes,
    const char *arrays, struct session *session)
{
    const struct model *model = session_model(options->model);
    tutti_shape shape = model->input;
    if (!options->weights && model->build) return weights_missing(command);
    int result = input ? parse_shape(command, input, &shape) : EXIT_DONE;
    if (result == EXIT_DONE) result = session_open(session, command, &options->session);
    if (result != EXIT_DONE) return result;
    session->as_it_is = true;
    session->arrays = arrays;
    return session_build(session, model, shape, classes ? (int)classes : model->classes);
}

int saved_open(const char *command, struct saved_options *options, bool with_loss, struct session *session,
    struct data *data, struct samples **part)
{
    const struct model *model = session_model(options->model);
    bool numbers = model->loss == TUTTI_MSE;
    if (!options->weights && model->build) return weights_missing(command);
    if (!options->data) options->data = numbers ? "line" : "digits";
    tutti_status status = data_load(data, options->data, numbers);
    if (status != TUTTI_OK) return work_failed(command, status, status_message());
    *part = strcmp(options->part, "train") ? &data->test : &data->train;
    if (options->batch > (*part)->count) options->batch = (*part)->count;
    int result = session_open(session, command, &options->session);
    if (result != EXIT_DONE) return result;
    result = session_build(session, model, data_shape(data), numbers ? 1 : data->classes);
    if (result == EXIT_DONE) result = session_check_data(session);
    if (result != EXIT_DONE) return result;
    tutti_training training = { .loss = with_loss ? model->loss : TUTTI_LOSS_NONE, .batch = options->batch };
    result = session_compile(session, &training);
    return result == EXIT_DONE ? saved_load(command, options, session) : result;
}
