#include "tools/saved.h"

#include "base/status.h"
#include "formats/sound.h"
#include "tools/division.h"
#include "tools/files.h"

#include <stdio.h>
#include <string.h>

const char *const saved_parts[] = { "test", "val", "train", "all", NULL };

static int check_weights(const char *command, const struct saved_options *options)
{
    if (!options->weights && session_model(options->model)->build)
        return wrong_use(command, "--weights is missing: name the safetensors file to use");
    return files_check_weights(command, "weights", options->weights);
}

const char *saved_weights(const struct saved_options *options)
{
    return options->weights || session_model(options->model)->build ? options->weights : options->model;
}

int saved_choose(const char *command, struct saved_options *options)
{
    return saved_model_choose(command, "weights", options->weights, &options->model, &options->network);
}

int saved_read_known(const char *command, struct saved_options *options)
{
    const char *weights = saved_weights(options);
    const tutti_status status = weights ? user_data_saved_read(weights, &options->known) : TUTTI_OK;
    return status == TUTTI_OK ? EXIT_DONE : work_failed(command, status, status_message());
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
    tutti_shape shape = saved_model_shape(&options->network, model);
    if (!classes) classes = saved_model_outputs(&options->network, model);
    int result = check_weights(command, options);
    if (result == EXIT_DONE && input) result = parse_shape(command, input, &shape);
    if (result == EXIT_DONE) result = session_open(session, command, &options->session);
    if (result != EXIT_DONE) return result;
    session->reading.as_it_is = true;
    session->reading.raw = arrays != NULL;
    session->arrays = arrays;
    session->facts = options->network.facts;
    session->lora = options->network.lora;
    session->config.weights = options->weights;
    return session_build(session, model, shape, (int)classes);
}

tutti_status saved_load_data(struct saved_options *options, struct data *data, struct samples **part)
{
    tutti_status status = TUTTI_OK;
    const struct model *model = session_model(options->model);
    if (options->known && options->known->rate == 0 && sound_has_name(options->data))
        FAIL(TUTTI_MISMATCH, "%s was not trained on recordings: %s is one", saved_weights(options), options->data);
    TRY(data_load(data, options->data, &options->own));
    if (data_is_unlabelled(data)) {
        data->classes = options->known ? options->known->class_count : model->classes;
        data->numbers = false;
    }
    *part = data_part(data, options->part);
    if (!*part) FAIL(TUTTI_INVALID, "%s has no part %s", options->data, options->part);
done:
    return status;
}

/* Whether data of this kind cannot be replaced by the built-in ones. */
static bool needs_data(const struct user_data_saved *known)
{
    static const char *const kinds[] = { "table", "recordings", "text", "speech" };
    for (size_t i = 0; known && known->kind && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(known->kind, kinds[i])) return true;
    return false;
}

int saved_begin(const char *command, struct saved_options *options, bool with_loss)
{
    const struct model *model = session_model(options->model);
    int result = check_weights(command, options);
    if (result != EXIT_DONE) return result;
    options->own.data.without_targets = !with_loss;
    options->own.shape = model->input;
    options->own.data.numbers = model->loss == TUTTI_MSE;
    result = saved_read_known(command, options);
    user_data_saved_apply(options->known, &options->own);
    if (model->takes == MODEL_TAKES_TEXT) user_data_keep_tokenizer(&options->own);
    division_report_split(options->known, saved_weights(options), &options->own.data);
    return result;
}

void saved_free(struct saved_options *options)
{
    user_data_saved_free(options->known);
    options->known = NULL;
}

int saved_compile(const char *command, struct saved_options *options, bool with_loss, struct session *session,
    const struct data *data, int64_t samples)
{
    const struct model *model = session_model(options->model);
    int result = session_check_input(command, model, &data->info.shape, &data->info);
    if (result != EXIT_DONE) return result;
    if (options->session.training.batch > samples) options->session.training.batch = samples;
    if ((result = session_open(session, command, &options->session)) != EXIT_DONE) return result;
    session->pixels = data_pixels(data);
    session->facts = data->info.length > 0 ? data_facts(data) : options->network.facts;
    session->lora = options->network.lora;
    session->config.weights = options->weights;
    result = session_build(session, model, data->info.shape, data_outputs(data));
    if (result == EXIT_DONE && with_loss) result = session_check_data(session, data_masks(data));
    if (result != EXIT_DONE) return result;
    const tutti_loss loss = data->numbers ? TUTTI_MSE : TUTTI_CROSS_ENTROPY;
    session->training.loss = with_loss ? loss : TUTTI_LOSS_NONE;
    result = session_compile(session);
    return result == EXIT_DONE ? saved_load(command, options, session) : result;
}

/* Says that a part is measured, if nobody has chosen it: data that were not those of the training are divided, too. */
static void report_part(const struct saved_options *options, const struct data *data, const struct samples *part)
{
    const tutti_source *all = tutti_data_source(data->opened, TUTTI_DATA_ALL);
    if (options->part_given || part->part != TUTTI_DATA_VAL || !all || all->samples == part->count) return;
    fprintf(stderr, "measured: part val, %lld of %lld samples; --part all measures all\n", (long long)part->count,
        (long long)all->samples);
}

int saved_open(const char *command, struct saved_options *options, bool with_loss, struct session *session,
    struct data *data, struct samples **part)
{
    int result = saved_begin(command, options, with_loss);
    if (result != EXIT_DONE) return result;
    if (!options->data && needs_data(options->known))
        return wrong_use(command, "the data are missing: %s was trained on %s%s: name %s%s by --data",
            saved_weights(options), strcmp(options->known->kind, "table") ? "" : "a ", options->known->kind,
            strcmp(options->known->kind, "table") ? "some" : "one", with_loss ? "" : " as FILE, or");
    options->own.defaulted = !options->data;
    if (!options->data) options->data = data_default(options->own.data.numbers);
    /* What stands in for a damaged sample would be predicted under its name. */
    if (!with_loss && options->known && options->known->kind && strcmp(options->known->kind, "table"))
        options->own.data.skip_damaged = false;
    tutti_status status = saved_load_data(options, data, part);
    if (status == TUTTI_OK && with_loss) status = data_check_first(data, *part); /* infer may read fewer */
    if (status != TUTTI_OK) return work_failed(command, status, status_message());
    if (with_loss && data_is_unlabelled(data))
        return wrong_use(
            command, "%s has files without classes: put those of each class into a folder of its own", options->data);
    if (with_loss) report_part(options, data, *part);
    return saved_compile(command, options, with_loss, session, data, (*part)->count);
}
