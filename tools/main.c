/* tutti: trains, tests and measures networks on every OpenCL device of the machine. */
#include "base/text.h"
#include "tools/commands.h"
#include "tutti.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
    { "devices", "lists the OpenCL devices and checks them", command_devices },
    { "inspect", "says what data are, and what a training would make of them", command_inspect },
    { "train", "trains a network", command_train },
    { "eval", "measures the loss and accuracy of saved weights", command_eval },
    { "infer", "predicts classes with saved weights", command_infer },
    { "export", "writes a network as an ONNX file", command_export },
    { "bench", "measures the time of a step", command_bench },
    { "tune", "finds the fastest kernels of a network on each device", command_tune },
    { "report", "compares trainings by their reports", command_report },
    { "show", "prints a network's layers, its memory, and the kernels of each device", command_show },
    { "op", "lists and explains the operations of tutti_op()", command_op },
    { "generate", "continues a text by a language model", command_generate },
    { "tokenize", "shows the tokens of texts, or learns a tokenizer from a text", command_tokenize },
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *stream)
{
    fprintf(stream,
        "Usage: tutti COMMAND [options]\n\n"
        "Trains one neural network on every OpenCL device of this machine.\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream,
        "\ntutti help COMMAND, or tutti COMMAND --help, describes a command and its\n"
        "options; tutti version prints the version. With --json, a command writes one\n"
        "JSON object per line to standard output, and text for people to standard error.\n\n"
        "Environment variables: TUTTI_DEVICES (as --devices), TUTTI_LOG (error, warn,\n"
        "info, debug), TUTTI_CACHE_DIR (folder of compiled kernels), TUTTI_TUNING (as\n"
        "--tuning).\n");
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS + 1] = { NULL };
    for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    const struct suggestion suggestion = text_suggest(name, names);
    fprintf(stderr, "tutti: unknown command \"%s\"%s use one of ", name, suggestion.text[0] ? suggestion.text : ";");
    for (int i = 0; i < COMMANDS; i++) fprintf(stderr, "%s%s", i ? ", " : "", commands[i].name);
    fputc('\n', stderr);
    return EXIT_WRONG_USE;
}

/* Checks that what was printed has arrived: a full disk behind standard output is a failure of the work. */
static int flush_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "tutti: cannot write to standard output\n");
    return status == EXIT_DONE ? EXIT_WORK_FAILED : status;
}

static int run(const char *name, int argc, char **argv)
{
    if (!strcmp(name, "completion")) return flush_output(command_completion(commands, COMMANDS, argc, argv));
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i].name)) return flush_output(commands[i].run(argc, argv));
    return unknown_command(name);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_WRONG_USE;
    }
    const char *name = argv[1];
    const bool help = !strcmp(name, "help");
    if (help && argc > 2) return run(argv[2], 2, (char *[]) { argv[2], "--help", NULL });
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || help) {
        print_help(stdout);
        return flush_output(EXIT_DONE);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "version")) {
        printf("tutti %s\n", tutti_version());
        return flush_output(EXIT_DONE);
    }
    return run(name, argc - 1, argv + 1);
}
