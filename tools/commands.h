/* The subcommands: each gets its own arguments (argv[0] is its name) and returns the exit status. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "tools/options.h"

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int command_devices(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_infer(int argc, char **argv);
int command_export(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_report(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_show(int argc, char **argv);
int command_op(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_generate(int argc, char **argv);
/* tutti completion SHELL: prints what completes words of these commands in bash, zsh or fish. */
int command_completion(const struct command *commands, int count, int argc, char **argv);

#endif
