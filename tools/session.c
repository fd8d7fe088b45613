#include "tools/session.h"

#include "base/numbers.h"
#include "base/text.h"
#include "models/speech.h"
#include "tools/progress.h"
#include "tools/shape.h"
#include "tutti_inspect.h"
#include "tutti_onnx.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *const *session_models(void)
{
    static const char *names[SESSION_MAX_MODELS + 1];
    for (int i = 0; i < SESSION_MAX_MODELS && model_at(i); i++) names[i] = model_at(i)->name;
    return names;
}

const struct model *session_model(const char *name)
{
    static struct model file = { .description = "an ONNX file", .learning_rate = 0.01f, .momentum = 0.9f, .batch = 32 };
    const struct model *model = model_find(name);
    file.name = name;
    return model ? model : &file;
}

/* Appends "linear, mlp or tabular": the models that take this. */
static void name_models(struct text *text, enum model_input takes, const char *last_joint)
{
    int count = 0, named = 0;
    for (int i = 0; model_at(i); i++) count += model_at(i)->takes == takes;
    for (int i = 0; model_at(i); i++) {
        if (model_at(i)->takes != takes) continue;
        text_append(text, "%s%s", !named ? "" : named == count - 1 ? last_joint : ", ", model_at(i)->name);
        named++;
    }
}

const char *session_models_take(void)
{
    static char buffer[512];
    struct text text = { 0 };
    name_models(&text, MODEL_TAKES_NUMBERS, " and ");
    text_append(&text, " take any numbers, ");
    name_models(&text, MODEL_TAKES_TEXT, " and ");
    text_append(&text, " texts, ");
    name_models(&text, MODEL_TAKES_SPEECH, " and ");
    snprintf(buffer, sizeof(buffer), "%s recordings with transcripts, the others images [C, H, W].",
        text.data ? text.data : "");
    text_free(&text);
    return buffer;
}

const char *session_models_defaults(void)
{
    static char buffer[4096];
    struct text text = { 0 };
    text_append(&text, "Defaults of the models:\n  %-16s %-10s %-9s %-8s %-8s %-12s %s\n", "model", "input",
        "optimizer", "lr", "momentum", "weight-decay", "batch");
    for (int i = 0; model_at(i); i++) {
        const struct model *model = model_at(i);
        char sizes[64] = "";
        for (int axis = 0; axis < model->input.rank; axis++)
            number_append(sizes, sizeof(sizes), "%s%lld", axis ? "x" : "", (long long)model->input.sizes[axis]);
        text_append(&text, "  %-16s %-10s %-9s %-8g %-8g %-12g %lld\n", model->name, sizes,
            tutti_optimizer_name(model->optimizer), (double)model->learning_rate, (double)model->momentum,
            (double)model->weight_decay, (long long)model->batch);
    }
    snprintf(buffer, sizeof(buffer), "%s", text.data ? text.data : "");
    text_free(&text);
    return buffer;
}

/* "a table of 4 columns" */
static const char *describe_samples(const tutti_shape *shape, const tutti_data_info *info, char *buffer, size_t size)
{
    char sizes[96];
    if (info && !strcmp(info->kind, "table"))
        snprintf(buffer, size, "these data are a table of %lld columns", (long long)shape->sizes[0]);
    else if (info && !strcmp(info->kind, "line"))
        snprintf(buffer, size, "these data are points of a line");
    else
        snprintf(buffer, size, "%s %s", info ? "samples of these data are" : "--input is",
            format_shape(shape, sizes, sizeof(sizes)));
    return buffer;
}

/* Refuses texts for other networks, and other data for networks that take texts. */
static int refuse_speech(const char *command, const struct model *model, const tutti_data_info *info)
{
    if (model->takes != MODEL_TAKES_SPEECH)
        return wrong_use(command, "these data are recordings with transcripts: use speech instead of %s", model->name);
    return wrong_use(command,
        "%s needs recordings with transcripts (docs/speech.md), but these data are %s%s: use another model",
        model->name, strcmp(info->kind, "table") ? "" : "a ", info->kind);
}

static int refuse_kind(const char *command, const struct model *model, const tutti_data_info *info)
{
    struct text names = { 0 };
    const bool texts = model->takes == MODEL_TAKES_TEXT;
    name_models(&names, texts ? MODEL_TAKES_NUMBERS : MODEL_TAKES_TEXT, " or ");
    const int result = wrong_use(command, "%s needs %s, but these data are %s: use %s", model->name,
        texts ? "texts" : "numbers or images", texts ? info->kind : "texts", names.data ? names.data : "another model");
    text_free(&names);
    return result;
}

int session_check_input(
    const char *command, const struct model *model, const tutti_shape *shape, const tutti_data_info *info)
{
    char found[160];
    struct text names = { 0 };
    if (model->build && info && !strcmp(info->kind, "speech") != (model->takes == MODEL_TAKES_SPEECH))
        return refuse_speech(command, model, info);
    if (model->takes == MODEL_TAKES_SPEECH && (shape->rank != 2 || shape->sizes[1] < 2))
        return wrong_use(command, "%s needs recordings with transcripts", model->name);
    if (model->build && info && !strcmp(info->kind, "text") != (model->takes == MODEL_TAKES_TEXT))
        return refuse_kind(command, model, info);
    if (model->takes == MODEL_TAKES_TEXT && shape->rank != 1)
        return wrong_use(command, "%s needs texts: --input is their length, such as 128", model->name);
    if (!model->build || model->takes != MODEL_TAKES_IMAGES || shape->rank == 3) return EXIT_DONE;
    name_models(&names, MODEL_TAKES_NUMBERS, " or ");
    const int result = wrong_use(command, "%s needs images [C, H, W]; %s: use %s%s", model->name,
        describe_samples(shape, info, found, sizeof(found)), names.data ? names.data : "mlp",
        info && !strcmp(info->kind, "table") ? "; tabular was made for tables" : "");
    text_free(&names);
    return result;
}

const char *const session_precisions[] = {
    [TUTTI_FP32] = "fp32", [TUTTI_BF16] = "bf16", [TUTTI_TF32] = "tf32", [TUTTI_FP16] = "fp16", NULL
};
const char *const session_wires[] = { [TUTTI_FP32] = "fp32", [TUTTI_BF16] = "bf16", NULL };

static int parse_shares(struct session *session, const char *text)
{
    int devices = tutti_device_count(session->runtime), count = 0;
    const char *rest = text;
    if (!strcmp(text, "auto")) return EXIT_DONE;
    if (!strcmp(text, "equal")) {
        session->training.sharing = TUTTI_SHARES_EQUAL;
        return EXIT_DONE;
    }
    while (count < SESSION_MAX_DEVICES) {
        char *end = NULL;
        double share = number_read(rest, &end);
        if (end == rest || (*end && *end != ',') || !(share >= 0 && share < 1e12))
            return wrong_use(
                session->command, "--shares needs auto, equal, or numbers separated by commas, not \"%s\"", text);
        session->shares[count++] = share;
        if (!*end) break;
        rest = end + 1;
    }
    if (count != devices)
        return wrong_use(session->command, "--shares has %d numbers (%s) for %d device%s; it needs one for each device",
            count, text, devices, devices == 1 ? "" : "s");
    session->training.shares = session->shares;
    return EXIT_DONE;
}

static void log_rank(void *user, tutti_log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "rank %d: %s\n", *(const int *)user, line);
}

int session_open(struct session *session, const char *command, const struct session_options *options)
{
    *session = (struct session) { .command = command,
        .onnx = options->onnx,
        .config.file = options->config,
        .rank = options->rank,
        .training = options->training,
        .advanced = options->advanced };
    session->training.advanced = &session->advanced;
    tutti_runtime_options runtime = options->runtime;
    runtime.memory_limit = (size_t)options->memory_mib << 20;
    if (session->rank > 0) {
        runtime.log = log_rank;
        runtime.log_user = &session->rank;
    }
    session->runtime = tutti_open(&runtime);
    if (!session->runtime) {
        tutti_device_info *list = NULL;
        int count = 0;
        char message[1024];
        snprintf(message, sizeof(message), "%s", tutti_message(NULL));
        /* tutti_open() has no status of its own: a choice that names no device is a wrong use, all else a failure. */
        tutti_status status = tutti_devices_list(&runtime, &list, &count);
        tutti_devices_free(list);
        return work_failed(command, status == TUTTI_OK ? TUTTI_DEVICE : status, message);
    }
    return options->shares ? parse_shares(session, options->shares) : EXIT_DONE;
}

static const char *input_name(const tutti_onnx *made, int position)
{
    tutti_tensor_info info = { .size = sizeof info };
    return tutti_network_tensor(made->network, made->inputs[position], &info) == TUTTI_OK ? info.name : "";
}

static const char *output_name(const struct session *session)
{
    const char *name = "";
    for (int i = 0; i < session->file.output_count; i++) {
        tutti_tensor tensor;
        if (tutti_network_output(session->network, i, &name, &tensor) == TUTTI_OK && tensor.id == session->output.id)
            return name;
    }
    return "";
}

/* Checks that a file's network fits a command that feeds one input and reads one output. */
static int check_file(const struct session *session, int64_t classes)
{
    tutti_shape output = { 0 };
    const tutti_onnx *made = &session->file;
    const char *name = session->model->name;
    (void)tutti_shape_of(made->network, session->output, &output);
    if (made->input_count > 1)
        return wrong_use(session->command,
            "%s has %d inputs, '%s' and '%s'%s: the command feeds one, of floats, and has its own loss: export the "
            "network without targets and loss, or give the others their values: --known %s=VALUE",
            name, made->input_count, input_name(made, 0), input_name(made, 1), made->input_count > 2 ? ", ..." : "",
            input_name(made, 1));
    if (made->input_count != 1 || made->input_dtypes[0] != TUTTI_DTYPE_F32)
        return wrong_use(session->command, "%s has %d input%s: the command feeds one, of floats", name,
            made->input_count, made->input_count == 1 ? " of integers" : "s");
    if (output.rank != 1 && output.rank < 3)
        return wrong_use(session->command,
            "the output '%s' of %s has %d axes in a sample: the command needs one, classes, or those of an image",
            output_name(session), name, output.rank);
    if (output.rank == 1 && classes && output.sizes[0] != classes)
        return wrong_use(session->command,
            "%s has %lld outputs for a sample, '%s', but there are %lld classes: --head %lld gives it as many", name,
            (long long)output.sizes[0], output_name(session), (long long)classes, (long long)classes);
    return EXIT_DONE;
}

static bool begins_with(const char *line, const char *text)
{
    return !strncmp(line, text, strlen(text));
}

/* Prints warnings, with `lists_constants` what was decided on parameters, and with `tells` all notes. */
static void print_note(void *user, const char *line)
{
    const struct session *session = user;
    const bool decided = begins_with(line, "constant: ") || begins_with(line, "trains: ");
    if (session->rank > 0) return;
    if (session->reading.tells || begins_with(line, "warning: ") || (session->reading.lists_constants && decided))
        fprintf(stderr, "%s\n", line);
}

/* Imports a file with the options of the command and, if `arrays` is not NULL, the sizes of a file of arrays. */
static int import_file(struct session *session, tutti_shape shape, const char *arrays, tutti_status *status)
{
    struct onnx_read *read = NULL;
    const int result = onnx_options_read(session->command, &session->onnx, arrays, &read);
    if (result != EXIT_DONE) return result;
    tutti_onnx_options options = *onnx_options_of(read);
    options.input = shape;
    options.logits = !session->reading.as_it_is;
    options.without_preparation = !session->reading.raw;
    options.note = print_note;
    options.user = session;
    session->file = (tutti_onnx) { .size = sizeof session->file };
    *status = tutti_import_onnx(session->runtime, session->model->name, &options, &session->file);
    onnx_options_free(read);
    return EXIT_DONE;
}

/* Returns the output that can be trained: the first one of floats. Classifiers may have labels, which are integers,
 * before it. */
static tutti_tensor trainable_output(const tutti_onnx *file)
{
    for (int i = 0; i < file->output_count; i++)
        if (file->output_dtypes[i] == TUTTI_DTYPE_F32) return file->outputs[i];
    return file->outputs[0];
}

/* Sets the labels of a sample, one for each position: of texts, as many as the longest has tokens. Returns the number
 * of classes. */
static int64_t set_labels(struct session *session)
{
    tutti_shape output = { 0 };
    (void)tutti_shape_of(session->network, session->output, &output);
    const struct model_facts *facts = &session->facts;
    const bool of_steps = facts->tokens_are_classes || facts->tags || facts->transcript > 0;
    session->labels = facts->transcript > 0 ? facts->transcript : of_steps ? facts->length : 1;
    if (of_steps) return output.sizes[output.rank - 1];
    for (int i = 1; i < output.rank; i++) session->labels *= output.sizes[i];
    return output.sizes[0];
}

static int build_file(struct session *session, tutti_shape shape, int64_t classes)
{
    tutti_status status = TUTTI_OK;
    int result = import_file(session, shape, NULL, &status);
    if (result == EXIT_DONE && status == TUTTI_SHAPE && session->arrays)
        result = import_file(session, shape, session->arrays, &status);
    if (result != EXIT_DONE) return result;
    if (status != TUTTI_OK) return work_failed(session->command, status, tutti_message(session->runtime));
    session->network = session->file.network;
    session->output = trainable_output(&session->file);
    result = session->reading.any_ports || session->reading.as_it_is ? EXIT_DONE : check_file(session, classes);
    if (result != EXIT_DONE) return result;
    (void)tutti_shape_of(session->network, session->file.inputs[0], &session->shape);
    session->classes = set_labels(session);
    return EXIT_DONE;
}

/* Reads what the network is made of. By a config.json, its vocabulary may be larger than that of the data; without one,
 * it is that of the data. */
static int read_config(struct session *session, const struct model *model)
{
    struct model_facts *facts = &session->facts;
    const int result = text_config_read(session->command, model, &session->config);
    const int64_t vocabulary = session->config.made_of.vocabulary;
    facts->config = &session->config.made_of;
    if (result != EXIT_DONE || !session->config.json[0]) return result;
    if (facts->vocabulary > vocabulary)
        return wrong_use(session->command, "the data have %lld tokens, but the network has a vocabulary of %lld",
            (long long)facts->vocabulary, (long long)vocabulary);
    if (facts->vocabulary > 0) facts->vocabulary = vocabulary;
    return EXIT_DONE;
}

/* The model's own length may be too large for another configuration. */
static int64_t default_length(const struct model *model, int64_t length, int64_t most)
{
    return most > 0 && length == model->input.sizes[0] && length > most ? most : length;
}

/* Sets what data did not say of texts. */
static int complete_facts(struct session *session, const struct model *model, tutti_shape shape)
{
    struct model_facts *facts = &session->facts;
    if (!model->config && session->config.file)
        return wrong_use(session->command,
            "--config is of networks for texts, of speech and fno2d, but %s is none of them", model->name);
    const int result = model->config ? read_config(session, model) : EXIT_DONE;
    if (model->takes == MODEL_TAKES_SPEECH) {
        enum { LABELS = 16 }; /* where there are no data */
        if (facts->length == 0) facts->length = shape.sizes[0];
        if (facts->transcript == 0) facts->transcript = facts->length < 2 * LABELS ? 1 : LABELS;
        if (session->classes < 2)
            return wrong_use(session->command, "%s needs at least two classes: a blank and a label", model->name);
        session->training.sequence = facts->length;
    }
    if (result != EXIT_DONE || model->takes != MODEL_TAKES_TEXT) return result;
    const int64_t most = facts->config->positions;
    if (facts->length == 0) facts->length = default_length(model, shape.sizes[0], most);
    if (facts->vocabulary == 0) {
        facts->vocabulary = facts->config->vocabulary;
        facts->tokens_are_classes = model_predicts_tokens(model);
    }
    if (facts->tokens_are_classes && !model_is_causal(model))
        return wrong_use(
            session->command, "%s sees the whole text: it cannot predict the next token: use gpt or lstm", model->name);
    if (facts->tags && !model_gives_tags(model))
        return wrong_use(
            session->command, "%s gives no class for each word: use lstm, gru or one of BERT's networks", model->name);
    session->training.sequence = facts->length;
    if (most == 0 || facts->length <= most) return EXIT_DONE;
    return wrong_use(session->command, "%s has positions for %lld tokens, but texts would have up to %lld: ask for %s",
        model->name, (long long)most, (long long)facts->length,
        strcmp(session->command, "generate") ? "a smaller --length" : "fewer --tokens");
}

static tutti_tensor add_text(struct session *session)
{
    const int64_t length = TUTTI_SEQUENCE;
    const tutti_tensor ids = tutti_input_typed(session->network, "ids", TUTTI_DTYPE_I32, &length, 1);
    if (!session->facts.pairs) return ids;
    session->types = tutti_input_typed(session->network, "types", TUTTI_DTYPE_I32, &length, 1);
    session->facts.types = &session->types;
    return ids;
}

static tutti_tensor add_input(struct session *session, tutti_shape shape)
{
    const tutti_data_info *pixels = session->pixels;
    if (session->model->takes == MODEL_TAKES_TEXT) return add_text(session);
    if (session->model->takes == MODEL_TAKES_SPEECH) {
        shape.sizes[0] = TUTTI_SEQUENCE;
        return session->types = tutti_input(session->network, "input", shape);
    }
    if (!pixels) return tutti_input(session->network, "input", shape);
    const tutti_normalise_options options = { .size = sizeof options,
        .name = "normalise",
        .scale = 1.0f / 255,
        .mean = pixels->mean,
        .std = pixels->std,
        .channels = pixels->channels };
    const tutti_tensor x = tutti_input_typed(session->network, "input", TUTTI_DTYPE_U8, shape.sizes, shape.rank);
    return tutti_normalise(session->network, x, &options);
}

/* The pixels of a network that predicts numbers for each; 0: another network. */
static int64_t pixels_of(const struct model *model, tutti_shape shape)
{
    const bool fields = model->takes == MODEL_TAKES_IMAGES && model->loss == TUTTI_MSE && shape.rank == 3;
    return fields ? shape.sizes[1] * shape.sizes[2] : 0;
}

static int build_model(struct session *session, const struct model *model, tutti_shape shape, int classes)
{
    const char *given = onnx_options_given(&session->onnx);
    if (given)
        return wrong_use(session->command,
            "--%s needs an ONNX file: --input, --classes and the data say the sizes of the other networks", given);
    const int fits = session_check_input(session->command, model, &shape, NULL);
    if (fits != EXIT_DONE) return fits;
    if (shape.rank > 0 && shape.sizes[0] < session->facts.code_count)
        return wrong_use(session->command, "%s has %d columns that it embeds: samples need as many numbers, not %lld",
            model->name, session->facts.code_count, (long long)shape.sizes[0]);
    session->classes = classes;
    const int complete = complete_facts(session, model, shape);
    if (complete != EXIT_DONE) return complete;
    session->shape = shape;
    session->classes = session->facts.tokens_are_classes ? session->facts.vocabulary : classes;
    session->network = tutti_network_new(session->runtime);
    if (!session->network) return work_failed(session->command, TUTTI_NO_MEMORY, tutti_message(session->runtime));
    tutti_tensor x = add_input(session, shape);
    const int64_t pixels = pixels_of(model, shape);
    const bool fields =
        pixels > 0 && classes % pixels == 0; /* targets are numbers for each pixel, one after the other */
    if (fields) {
        x = model->build_for(session->network, x, (int)(classes / pixels), &session->facts);
        session->output = tutti_flatten(session->network, x);
    } else
        session->output = model->build_for
            ? model->build_for(session->network, x, (int)session->classes, &session->facts)
            : model->build(session->network, x, classes);
    tutti_status status = tutti_network_status(session->network);
    if (status == TUTTI_OK) status = tutti_output(session->network, "output", session->output);
    (void)set_labels(session);
    if (status == TUTTI_OK) return EXIT_DONE;
    char sizes[96], message[1200];
    const bool small = status == TUTTI_SHAPE && shape.rank == 3;
    snprintf(message, sizeof(message), "%s for inputs %s: %s%s", model->name,
        format_shape(&shape, sizes, sizeof(sizes)), tutti_message(session->runtime),
        small ? ": images may be too small: try a larger --input" : "");
    return work_failed(session->command, status, message);
}

int session_build(struct session *session, const struct model *model, tutti_shape shape, int classes)
{
    session->model = model;
    if (!model->build) session->pixels = NULL; /* a file's inputs are floats */
    const int result = model->build ? build_model(session, model, shape, classes) : build_file(session, shape, classes);
    return result == EXIT_DONE ? lora_network(session) : result;
}

/* Checks data with a class for each pixel. */
static int check_masks(const struct session *session, const tutti_shape *output, const tutti_shape *masks)
{
    char sizes[96], wanted[96];
    bool equal = output->rank == masks->rank + 1;
    for (int i = 0; equal && i < masks->rank; i++) equal = output->sizes[i + 1] == masks->sizes[i];
    if (equal) return EXIT_DONE;
    return wrong_use(session->command,
        "the data have a class for each pixel, %s, but %s gives %s for an image: use a network such as unet, and an "
        "--input whose size it keeps",
        format_shape(masks, wanted, sizeof(wanted)), session->model->name, format_shape(output, sizes, sizeof(sizes)));
}

int session_check_data(const struct session *session, const tutti_shape *masks)
{
    tutti_shape output = { 0 };
    char sizes[96];
    (void)tutti_shape_of(session->network, session->output, &output);
    if (session->facts.tokens_are_classes || session->facts.tags || session->facts.transcript) return EXIT_DONE;
    if (masks) return check_masks(session, &output, masks);
    if (output.rank == 1) return EXIT_DONE;
    return wrong_use(session->command,
        "%s gives classes for each pixel, %s, but the data have one class for an image: use another model, or images/ "
        "with "
        "masks/",
        session->model->name, format_shape(&output, sizes, sizeof(sizes)));
}

/* The loss of transcripts: CTC, whose blank is class 0. */
static void add_ctc(struct session *session)
{
    if (session->loss.id == 0) {
        const tutti_tensor lengths = speech_lengths(session->network, session->types);
        const tutti_tensor targets =
            tutti_input_typed(session->network, "targets", TUTTI_DTYPE_I32, &session->facts.transcript, 1);
        session->loss =
            tutti_ctc(session->network, session->output, targets, &(tutti_ctc_options) { .lengths = &lengths });
    }
    session->training.losses = &session->loss;
    session->training.loss_count = 1;
}

void session_add_loss(struct session *session)
{
    tutti_shape output = { 0 };
    const tutti_loss_options *options = &session->loss_options;
    const bool special = options->label_smoothing != 0 || options->class_weights || options->has_ignored;
    const bool tokens = session->facts.tokens_are_classes || session->facts.tags;
    if (session->training.loss != TUTTI_CROSS_ENTROPY) return;
    if (session->facts.transcript > 0) {
        add_ctc(session);
        return;
    }
    (void)tutti_shape_of(session->network, session->output, &output);
    if (output.rank < 2 && !special && !session->soft) return;
    if (session->loss.id == 0) {
        const int axes = session->soft ? 0 : 1; /* that targets do not have: the classes' */
        tutti_loss_options of_loss = *options;
        of_loss.class_axis = tokens ? -1 : 0;
        const tutti_tensor targets = tutti_input_typed(session->network, "targets",
            session->soft ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32, output.sizes + (tokens ? 0 : axes), output.rank - axes);
        session->loss = tutti_cross_entropy(session->network, session->output, targets, &of_loss);
    }
    session->training.losses = &session->loss;
    session->training.loss_count = 1;
}

/* Shows why people wait: the first time on a device, kernels are built for seconds. */
struct building {
    pthread_mutex_t lock; /* devices build at the same time */
    struct progress progress;
};

static void on_building(void *user, int built, int total)
{
    struct building *building = user;
    pthread_mutex_lock(&building->lock);
    progress_building(&building->progress, built, total);
    pthread_mutex_unlock(&building->lock);
}

int session_compile(struct session *session)
{
    static struct building building = { .lock = PTHREAD_MUTEX_INITIALIZER }; /* later plans report their building too */
    progress_begin(&building.progress, NULL, 0);
    session->training.building = session->rank == 0 ? on_building : NULL;
    session->training.building_user = &building;
    session_add_loss(session);
    session->trainer = tutti_compile(session->network, session->output, &session->training);
    progress_clear(&building.progress);
    if (session->trainer) return EXIT_DONE;
    if (session->rank > 0) return EXIT_WORK_FAILED; /* the first rank tells what failed, wherever it was */
    return work_failed(session->command, TUTTI_INTERNAL, tutti_message(session->runtime));
}

void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    tutti_close(session->runtime);
}

int parse_shape(const char *command, const char *text, tutti_shape *shape)
{
    bool good = shape_from_text(text, shape) && (shape->rank == 1 || shape->rank == 3);
    for (int i = 0; good && i < shape->rank; i++) good = shape->sizes[i] >= 1 && shape->sizes[i] <= 1 << 20;
    if (good) return EXIT_DONE;
    return wrong_use(command, "--input needs CxHxW, such as 3x224x224, or one number of features, not \"%s\"", text);
}

struct session_arrays session_arrays(
    const struct session *session, const void *inputs, const void *targets, float *outputs)
{
    const tutti_dtype dtype = session->model->loss == TUTTI_MSE ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32;
    const tutti_dtype input = session->pixels ? TUTTI_DTYPE_U8 : TUTTI_DTYPE_F32;
    return (struct session_arrays) { .feeds = { { NULL, input, inputs }, { "targets", dtype, targets } },
        .fetch = { session->output, TUTTI_DTYPE_F32, outputs } };
}
