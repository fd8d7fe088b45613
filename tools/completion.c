/* tutti completion: scripts by which bash, zsh and fish complete words, from the commands' tables of options. The build
 * installs them. */
#include "tools/commands.h"
#include "tools/help.h"

#include <stdio.h>
#include <string.h>

/* A text within quotes of the shell: `before` stands before each character of `special`. */
static void print_quoted(const char *text, const char *special, const char *before)
{
    for (; *text; text++) {
        if (*text == '\n') continue;
        if (strchr(special, *text)) fputs(before, stdout);
        putchar(*text);
    }
}

static void print_words(const char *const *words)
{
    for (int i = 0; words && words[i]; i++) printf("%s%s", i ? " " : "", words[i]);
}

static bool takes_file(const struct option *option)
{
    static const char *const nouns[] = { "FILE", "DIR", "NAME" };
    if (option->kind == OPTION_FLAG || option->choices) return false;
    for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
        if (!strncmp(option->noun, nouns[i], strlen(nouns[i])) && !strchr(option->noun, '=')) return true;
    return false;
}

static void print_commands(const struct command *commands, int count)
{
    for (int i = 0; i < count; i++) printf("%s ", commands[i].name);
}

/* ----------------------------------------------------------------------------------------------------- bash ---- */

/* Only values that are files or have choices are completed. */
static void bash_visit(const struct usage *usage, void *user)
{
    (void)user;
    printf("    %s)\n        case $before in\n", usage->command);
    for (int i = 0; i < usage->count; i++) {
        const struct option *option = &usage->options[i];
        if (option->heading || option->kind == OPTION_FLAG) continue;
        printf("        --%s) value=yes words='", option->name);
        print_words(option->choices);
        printf("'%s ;;\n", takes_file(option) ? " files=yes" : "");
    }
    printf("        esac\n        options='");
    for (int i = 0; i < usage->count; i++)
        if (!usage->options[i].heading) printf("--%s ", usage->options[i].name);
    printf("--help'\n        arguments='");
    print_words(usage->arguments);
    printf("' ;;\n");
}

static void bash_begin(const struct command *commands, int count)
{
    printf("# Completes words of tutti in bash; printed by `tutti completion bash`.\n"
           "_tutti()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local commands='");
    print_commands(commands, count);
    printf("' options='' arguments='' value='' files='' words=''\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W \"$commands help version --help --version\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    if [[ $word == '=' ]]; then word=''\n"
           "    elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n"
           "    help) words=$commands value=yes ;;\n");
}

static void bash_end(void)
{
    printf("    esac\n"
           "    if [[ $value ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "    elif ((COMP_CWORD == 2)) || [[ ${COMP_WORDS[2]} == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$arguments\" -- \"$word\")) files=yes\n"
           "    else files=yes\n"
           "    fi\n"
           "    if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi\n"
           "}\n"
           "complete -F _tutti tutti\n");
}

/* ------------------------------------------------------------------------------------------------------ zsh ---- */

static void zsh_visit(const struct usage *usage, void *user)
{
    (void)user;
    printf("    %s)\n        _arguments", usage->command);
    for (int i = 0; i < usage->count; i++) {
        const struct option *option = &usage->options[i];
        if (option->heading) continue;
        printf(" \\\n            '%s--%s%s[", option->kind == OPTION_TEXTS ? "*" : "", option->name,
            option->kind == OPTION_FLAG ? "" : "=");
        for (const char *at = option->help; *at; at++) {
            if (strchr("[]:\\", *at)) putchar('\\');
            fputs(*at == '\'' ? "'\\''" : (char[]) { *at, '\0' }, stdout);
        }
        putchar(']');
        if (option->kind != OPTION_FLAG) {
            putchar(':');
            print_quoted(option->noun, ":'", "\\");
            putchar(':');
        }
        if (option->choices) {
            putchar('(');
            print_words(option->choices);
            putchar(')');
        }
        printf("%s'", takes_file(option) ? "_files" : "");
    }
    printf(" \\\n            '--help[print this text]'");
    if (usage->arguments) {
        printf(" \\\n            '1:%s:{_alternative \"names:%s:(", usage->argument, usage->argument);
        print_words(usage->arguments);
        printf(")\" files:file:_files}'");
    } else if (usage->argument) {
        printf(" \\\n            '1:%s:_files'", usage->argument);
    }
    printf("%s ;;\n", usage->more ? " \\\n            '*:file:_files'" : "");
}

static void zsh_begin(const struct command *commands, int count)
{
    printf("#compdef tutti\n"
           "# Completes words of tutti in zsh; printed by `tutti completion zsh`.\n"
           "_tutti()\n{\n    local commands=(");
    for (int i = 0; i < count; i++) {
        printf("\n        '%s:", commands[i].name);
        for (const char *at = commands[i].summary; *at; at++)
            fputs(*at == '\'' ? "'\\''" : (char[]) { *at, '\0' }, stdout);
        putchar('\'');
    }
    printf("\n        'help:describes a command' 'version:prints the version')\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n    ((CURRENT--))\n"
           "    case $words[1] in\n"
           "    help) _describe command commands ;;\n");
}

static void zsh_end(void)
{
    printf("    esac\n}\n_tutti \"$@\"\n");
}

/* ----------------------------------------------------------------------------------------------------- fish ---- */

static void fish_visit(const struct usage *usage, void *user)
{
    char condition[96];
    (void)user;
    snprintf(condition, sizeof(condition), "complete -c tutti -n '__fish_seen_subcommand_from %s'", usage->command);
    if (usage->arguments) {
        printf("%s -a '", condition);
        print_words(usage->arguments);
        printf("'\n");
    }
    for (int i = 0; i < usage->count; i++) {
        const struct option *option = &usage->options[i];
        if (option->heading) continue;
        printf("%s -l %s%s", condition, option->name,
            option->kind == OPTION_FLAG ? ""
                : takes_file(option)    ? " -r"
                                        : " -x");
        if (option->choices) {
            printf(" -a '");
            print_words(option->choices);
            putchar('\'');
        }
        printf(" -d '");
        print_quoted(option->help, "\\'", "\\");
        printf("'\n");
    }
    printf("%s -l help -d 'print this text'\n", condition);
}

static void fish_begin(const struct command *commands, int count)
{
    printf("# Completes words of tutti in fish; printed by `tutti completion fish`.\n");
    for (int i = 0; i < count; i++) {
        printf("complete -c tutti -f -n __fish_use_subcommand -a %s -d '", commands[i].name);
        print_quoted(commands[i].summary, "\\'", "\\");
        printf("'\n");
    }
    printf("complete -c tutti -f -n __fish_use_subcommand -a help -d 'describes a command'\n"
           "complete -c tutti -f -n __fish_use_subcommand -a version -d 'prints the version'\n"
           "complete -c tutti -f -n '__fish_seen_subcommand_from help' -a '");
    print_commands(commands, count);
    printf("'\n");
}

static void fish_end(void) { }

static const struct shell {
    const char *name;
    void (*begin)(const struct command *commands, int count);
    options_visitor *visit;
    void (*end)(void);
} shells[] = { { "bash", bash_begin, bash_visit, bash_end }, { "zsh", zsh_begin, zsh_visit, zsh_end },
    { "fish", fish_begin, fish_visit, fish_end } };

int command_completion(const struct command *commands, int count, int argc, char **argv)
{
    const struct shell *shell = NULL;
    for (size_t i = 0; argc == 2 && i < sizeof(shells) / sizeof(shells[0]); i++)
        if (!strcmp(argv[1], shells[i].name)) shell = &shells[i];
    if (!shell) return wrong_use("completion", "name one shell: bash, zsh or fish");
    shell->begin(commands, count);
    options_visit(shell->visit, NULL);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s", commands[i].name);
        (void)commands[i].run(1, (char *[]) { name, NULL });
    }
    options_visit(NULL, NULL);
    shell->end();
    return EXIT_DONE;
}
