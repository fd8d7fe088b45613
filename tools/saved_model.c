#include "tools/saved_model.h"

#include "base/status.h"
#include "base/text.h"
#include "formats/json_shape.h"
#include "tools/files.h"
#include "tools/overwrite.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a text of the weights as JSON; NULL: there is none, or it is damaged. */
static json_t *load(const char *weights, const char *key, bool *damaged)
{
    char *text = tutti_weights_metadata(weights, key);
    json_t *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    *damaged |= text && !json_is_object(object);
    free(text);
    return object;
}

static bool read_codes(const json_t *list, struct model_facts *facts)
{
    enum { MOST = 1 << 24 }; /* whole numbers that a float has */
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < MODEL_CODES; i++) {
        facts->codes[i] = json_integer_value(json_array_get(list, i));
        if (facts->codes[i] < 1 || facts->codes[i] > MOST) return false;
    }
    facts->code_count = (int)count;
    return count <= MODEL_CODES;
}

/* Copies a text and lets *text point to the copy. */
static bool keep_text(const char **text, char copy[SAVED_MODEL_NAME])
{
    if (!*text) return true;
    if (strlen(*text) >= SAVED_MODEL_NAME) return false;
    *text = strcpy(copy, *text);
    return true;
}

/* What networks for texts depend on. */
static bool read_text(const json_t *text, struct model_facts *facts)
{
    if (!text) return true;
    const json_int_t vocabulary = json_integer_value(json_object_get(text, "vocabulary"));
    const json_int_t length = json_integer_value(json_object_get(text, "length"));
    if (vocabulary < 1 || vocabulary > INT32_MAX || length < 1 || length > INT32_MAX) return false;
    facts->vocabulary = vocabulary;
    facts->length = length;
    facts->tokens_are_classes = json_is_true(json_object_get(text, "tokens_are_classes"));
    facts->pairs = json_is_true(json_object_get(text, "pairs"));
    facts->tags = json_is_true(json_object_get(text, "tags"));
    return true;
}

static json_t *text_json(const struct model_facts *facts)
{
    json_t *text = json_pack("{s:I, s:I, s:b, s:b}", "vocabulary", (json_int_t)facts->vocabulary, "length",
        (json_int_t)facts->length, "tokens_are_classes", facts->tokens_are_classes, "pairs", facts->pairs);
    if (facts->tags) (void)json_object_set_new(text, "tags", json_true());
    return text;
}

static bool read_object(const json_t *object, struct saved_model *saved)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_int_t outputs = json_integer_value(json_object_get(object, "outputs"));
    if (!name || !*name || strlen(name) >= sizeof saved->name || outputs < 0 || outputs > INT32_MAX) return false;
    strcpy(saved->name, name);
    saved->outputs = (int64_t)outputs;
    return lora_read(json_object_get(object, "lora"), &saved->lora) &&
        keep_text(&saved->lora.layers, saved->lora_layers) && keep_text(&saved->lora.others, saved->lora_others) &&
        json_shape_read(json_object_get(object, "shape"), &saved->shape) &&
        read_codes(json_object_get(object, "codes"), &saved->facts) &&
        read_text(json_object_get(object, "text"), &saved->facts);
}

/* Older weights say only what their data were. */
static bool read_data(const json_t *object, struct saved_model *saved)
{
    const size_t classes = json_array_size(json_object_get(object, "classes"));
    const size_t numbers = json_array_size(json_object_get(object, "target_mean"));
    saved->outputs = (int64_t)(classes ? classes : numbers);
    return saved->outputs <= INT32_MAX && json_shape_read(json_object_get(object, "shape"), &saved->shape);
}

tutti_status saved_model_read(const char *weights, struct saved_model *saved)
{
    bool damaged = false;
    *saved = (struct saved_model) { .name = "" };
    json_t *object = load(weights, "model", &damaged), *data = object ? NULL : load(weights, "data", &damaged);
    if (object) damaged |= !read_object(object, saved);
    if (data) damaged |= !read_data(data, saved);
    json_decref(object);
    json_decref(data);
    if (!damaged) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: what it says of its network is damaged", weights);
}

tutti_shape saved_model_shape(const struct saved_model *saved, const struct model *model)
{
    return model->build && saved->shape.rank > 0 ? saved->shape : model->input;
}

int64_t saved_model_outputs(const struct saved_model *saved, const struct model *model)
{
    return model->build && saved->outputs > 0 ? saved->outputs : model->classes;
}

/* Adds what networks for texts depend on, and what a config.json said. */
static int add_text(const struct session *session, json_t *object)
{
    const char *config = session->config.json;
    int failed = 0;
    if (session->facts.vocabulary > 0) failed = json_object_set_new(object, "text", text_json(&session->facts));
    return config[0] ? failed | json_object_set_new(object, "config", json_loads(config, 0, NULL)) : failed;
}

tutti_status saved_model_keep(const struct session *session)
{
    if (!text_is_utf8(session->model->name)) return TUTTI_OK; /* a path that JSON cannot have */
    json_t *shape = json_array(), *codes = json_array();
    for (int i = 0; i < session->facts.code_count; i++)
        json_array_append_new(codes, json_integer((json_int_t)session->facts.codes[i]));
    for (int i = 0; i < session->shape.rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)session->shape.sizes[i]));
    json_t *object = json_pack(
        "{s:s, s:o, s:I}", "name", session->model->name, "shape", shape, "outputs", (json_int_t)session->classes);
    int failed = session->facts.code_count > 0 ? json_object_set(object, "codes", codes) : 0;
    if (session->lora.rank > 0) failed |= json_object_set_new(object, "lora", lora_describe(&session->lora));
    json_decref(codes);
    failed |= add_text(session, object);
    char *text = failed ? NULL : json_dumps(object, JSON_COMPACT);
    const tutti_status status = text ? tutti_set_metadata(session->trainer, "model", text)
                                     : fail(TUTTI_NO_MEMORY, "no memory for a description of the network");
    free(text);
    json_decref(object);
    return status;
}

static int nothing_saved(const char *command, const char *option, const char *weights)
{
    const int result = files_check_weights(command, option, weights);
    if (result != EXIT_DONE) return result;
    return wrong_use(
        command, "MODEL is missing: --%s %s does not say of which model these weights are: name it", option, weights);
}

int saved_model_choose(
    const char *command, const char *option, const char *weights, const char **model, struct saved_model *saved)
{
    if (!weights) return EXIT_DONE;
    const tutti_status status = saved_model_read(weights, saved);
    if (status != TUTTI_OK) return work_failed(command, status, status_message());
    const bool built_in = saved->name[0] && session_model(saved->name)->build;
    if (*model && built_in && session_model(*model)->build && strcmp(*model, saved->name)) {
        const tutti_status other =
            fail(TUTTI_MISMATCH, "--%s %s has the weights of %s, not of %s: leave MODEL out, or name %s", option,
                weights, saved->name, *model, saved->name);
        return work_failed(command, other, status_message());
    }
    if (*model) return EXIT_DONE;
    if (!saved->name[0]) return nothing_saved(command, option, weights);
    if (!built_in && (!text_ends_with(saved->name, SESSION_FILES) || access(saved->name, R_OK) != 0))
        return wrong_use(command, "MODEL is missing: --%s %s has the weights of \"%s\", which is not here: name it",
            option, weights, text_printable(saved->name).text);
    *model = saved->name;
    return built_in ? EXIT_DONE : overwrite_check_input(command, *model);
}
