/* tutti show: a network's layers, and what it costs on each device. */
#include "formats/json_lines.h"
#include "tools/arrays.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/picture.h"
#include "tools/saved_model.h"
#include "tools/session.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    const char *model, *weights, *mode, *input, *expect;
    int64_t classes;
    struct saved_model saved;
    bool why, passes, json;
    struct picture_options picture;
    struct session_options session;
};

static const char *const modes[] = { "train", "infer", NULL };

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        { "weights", OPTION(s->weights), "FILE", "safetensors file: take model, shape and number of outputs from it",
            .file = OPTION_READS_WEIGHTS },
        { "input", OPTION(s->input), "CxHxW", "shape of a sample (default that of the weights, or the model's)" },
        { "classes", OPTION(s->classes), "N", "number of outputs (default that of the weights, or the model's)", 1,
            1e6 },
        { "batch", OPTION(s->session.training.batch), "N", "samples of a step (default the model's)", 1, 1e9 },
        { "mode", OPTION(s->mode), "MODE", "kind of step", .choices = modes },
        { "why", OPTION(s->why), NULL,
            "print for each device and layer the chosen kernel, and why each other one was refused" },
        { "passes", OPTION(s->passes), NULL, "print the graph after each pass, and the commands of a step" },
        { "json", OPTION(s->json), NULL, "print a JSON object per layer, and one for the network" },
        PICTURE_OPTIONS(s->picture),
        EXPECT_OPTION(s->expect),
        SESSION_OPTIONS(s->session),
        RECOMPUTE_OPTION(s->session),
    };
    const struct usage usage = { .command = "show",
        .summary = "Prints the layers of MODEL and the memory it needs on each device",
        MODEL_ARGUMENT,
        .from_options = { "weights" },
        .details = "FLOPs are those of the forward pass of one sample; a multiply-add counts as two.",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->model);
}

static tutti_status layer_json(const tutti_layer_info *layer)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "layer %s operation %s shape [", layer->name, layer->operation);
    for (int i = 0; i < layer->shape.rank; i++) json_line_integer(&line, NULL, layer->shape.sizes[i]);
    json_line_print(&line, "] parameters %lld flops %g", (long long)layer->parameters, layer->flops);
    return json_line_end(&line);
}

/* Prints every layer and adds up their FLOPs. */
static tutti_status print_layers(const struct session *session, bool json, double *flops)
{
    int count = tutti_network_layers(session->network);
    tutti_status status = TUTTI_OK;
    char sizes[96];
    if (!json) printf("%-36s %-16s %-18s %12s %14s\n", "layer", "operation", "shape", "parameters", "FLOPs");
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        tutti_layer_info layer;
        status = tutti_network_layer(session->network, i, &layer);
        if (status != TUTTI_OK) return status;
        *flops += layer.flops;
        if (json)
            status = layer_json(&layer);
        else
            printf("%-36s %-16s %-18s %12lld %14.0f\n", layer.name, layer.operation,
                format_shape(&layer.shape, sizes, sizeof(sizes)), (long long)layer.parameters, layer.flops);
    }
    return status;
}

static tutti_status total_json(const struct settings *s, const struct session *session, double flops)
{
    struct json_line line;
    tutti_device_report report;
    json_line_begin(&line, stdout);
    json_line_print(&line, "model %s mode %s batch %lld parameters %lld flops %g devices [", s->model, s->mode,
        (long long)session->training.batch, (long long)tutti_network_parameters(session->network), flops);
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++)
        json_line_print(&line, "{ index %d name %s share %lld memory_bytes %llu }", report.index, report.name,
            (long long)report.share, (unsigned long long)report.memory_bytes);
    return json_line_end(&line);
}

static void total_text(const struct settings *s, const struct session *session, double flops)
{
    tutti_device_report report;
    printf("\n%s: %lld parameters, %.4g GFLOPs forward per sample\n", s->model,
        (long long)tutti_network_parameters(session->network), flops / 1e9);
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++)
        printf("device %d  %s: %lld of %lld samples, %.1f MiB to %s\n", report.index, report.name,
            (long long)report.share, (long long)session->training.batch, (double)report.memory_bytes / (1 << 20),
            s->mode);
}

/* With JSON on standard output, these texts are for people. */
static int print_explanations(const struct settings *s, const struct session *session)
{
    FILE *stream = s->json ? stderr : stdout;
    tutti_device_report report;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++) {
        char *text = tutti_explain(session->trainer, i, s->passes);
        if (!text) return work_failed("show", TUTTI_INTERNAL, tutti_message(session->runtime));
        fprintf(stream, "\ndevice %d  %s\n%s\n", report.index, report.name, text);
        free(text);
    }
    return EXIT_DONE;
}

static int show(struct settings *s, struct session *session)
{
    const struct model *model = session_model(s->model);
    tutti_shape shape = saved_model_shape(&s->saved, model);
    const int64_t outputs = s->classes ? s->classes : saved_model_outputs(&s->saved, model);
    double flops = 0;
    if (s->expect && model->build) return expects_a_file("show");
    int result = files_check_weights("show", "weights", s->weights);
    if (result == EXIT_DONE && s->input) result = parse_shape("show", s->input, &shape);
    if (result != EXIT_DONE || (result = session_open(session, "show", &s->session)) != EXIT_DONE) return result;
    session->reading.any_ports = true;
    session->reading.as_it_is = session->reading.raw = s->expect;
    session->reading.tells = s->why;
    session->arrays = s->expect;
    session->facts = s->saved.facts;
    session->config.weights = s->weights;
    result = session_build(session, model, shape, (int)outputs);
    if (result == EXIT_DONE && s->expect) result = arrays_expect(session, s->expect);
    if (result != EXIT_DONE) return result;
    tutti_status status = print_layers(session, s->json, &flops);
    if (status != TUTTI_OK) return work_failed("show", status, tutti_message(session->runtime));
    fflush(stdout);
    session->training.loss = strcmp(s->mode, "train") ? TUTTI_LOSS_NONE : model->loss;
    session->training.momentum = 0.9f;
    if (!session->training.batch) session->training.batch = model->batch;
    result = session_compile(session);
    if (result != EXIT_DONE) return result;
    if (!s->json)
        total_text(s, session, flops);
    else if (total_json(s, session, flops) != TUTTI_OK)
        return EXIT_WORK_FAILED;
    result = picture_write(session, &s->picture, session->training.batch, !strcmp(s->mode, "train"));
    return result == EXIT_DONE && (s->why || s->passes) ? print_explanations(s, session) : result;
}

int command_show(int argc, char **argv)
{
    struct settings settings = { .mode = "train" };
    struct session session = { 0 };
    enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = saved_model_choose("show", "weights", settings.weights, &settings.model, &settings.saved);
    if (result == EXIT_DONE) result = show(&settings, &session);
    session_close(&session);
    return result;
}
