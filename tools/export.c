/* tutti export: a network with its weights as an ONNX file, which records what the data of the training were. */
#include "base/status.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/saved.h"

#include "tutti_onnx.h"

struct settings {
    struct saved_options saved;
    const char *output, *input;
    int64_t classes;
    bool with_preparation;
};

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        { "weights", OPTION(s->saved.weights), "FILE", "safetensors file with the weights, written by train --save",
            .file = OPTION_READS_WEIGHTS },
        { "output", OPTION(s->output), "FILE", "ONNX file to write", .file = OPTION_WRITES },
        { "with-preparation", OPTION(s->with_preparation), NULL,
            "write nodes that prepare raw pixels, recordings or columns as in training, and convert the outputs" },
        { "input", OPTION(s->input), "CxHxW", "shape of a sample (default that of the weights, or the model's)" },
        { "classes", OPTION(s->classes), "N", "number of outputs (default that of the weights, or the model's)", 1,
            1e6 },
        DEVICE_OPTION(s->saved.session.runtime),
        ONNX_OPTIONS(s->saved.session.onnx),
    };
    const struct usage usage = { .command = "export",
        .summary = "Writes MODEL with its weights as an ONNX file, for inference in other programs",
        MODEL_ARGUMENT,
        .from_options = { "weights" },
        .details =
            "More than 1 GiB of weights lie in a file next to it, FILE.data.\n"
            "The file says what the data of the training were. With --with-preparation its inputs are pixels, samples "
            "of\n"
            "recordings, or the columns of the table, and its outputs probabilities with the class, or numbers in the\n"
            "units of the data.",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->saved.model);
}

static int export(struct settings *s, struct session *session)
{
    if (!s->output) return wrong_use("export", "--output is missing: name the ONNX file to write");
    int result = files_check_output("export", "output", s->output);
    if (result != EXIT_DONE) return result;
    result = saved_read_known("export", &s->saved);
    if (result == EXIT_DONE) result = saved_build("export", &s->saved, s->input, s->classes, NULL, session);
    if (result != EXIT_DONE) return result;
    session->training.loss = TUTTI_LOSS_NONE;
    session->training.batch = 1;
    result = session_compile(session);
    if (result != EXIT_DONE || (result = saved_load("export", &s->saved, session)) != EXIT_DONE) return result;
    const tutti_onnx_export_options options = { .data = s->saved.known ? s->saved.known->text : NULL,
        .with_preparation = s->with_preparation };
    const tutti_status status = tutti_export_onnx(session->network, session->trainer, s->output, &options);
    if (status != TUTTI_OK) return work_failed("export", status, tutti_message(session->runtime));
    if (s->with_preparation) user_data_warn_texts(s->saved.known);
    if (s->with_preparation) user_data_report_waveform(s->saved.known, &session->shape);
    return EXIT_DONE;
}

int command_export(int argc, char **argv)
{
    struct settings settings = { .output = NULL };
    struct session session = { 0 };
    const enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = saved_choose("export", &settings.saved);
    if (result == EXIT_DONE) result = export(&settings, &session);
    session_close(&session);
    saved_free(&settings.saved);
    return result;
}
