#include "tools/help.h"

#include "base/numbers.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NAMES_BYTES = 1024, TEXT_BYTES = 2048, HEAD_COLUMNS = 26, LEAST_WIDTH = 60, WIDTH = 80 };

const char *help_join(const char *const *names, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; names[i] && used < size; i++) {
        int wrote = snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", names[i]);
        used += (size_t)(wrote > 0 ? wrote : 0);
    }
    return buffer;
}

static int find_width(void)
{
    struct winsize window;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return WIDTH;
    return window.ws_col < LEAST_WIDTH ? LEAST_WIDTH : window.ws_col;
}

/* Prints a text whose first line begins at `column`; others are indented. A line end between two lines is a blank,
 * unless an empty line or one that begins with a blank follows. */
static void print_wrapped(const char *text, int column, int indent)
{
    const int width = find_width();
    bool begun = false;
    while (*text) {
        const int length = (int)strcspn(text, " \n");
        if (begun && column + 1 + length > width) {
            printf("\n%*s", indent, "");
            column = indent;
            begun = false;
        }
        column += printf("%s%.*s", begun ? " " : "", length, text);
        begun = true;
        text += length;
        if (*text == '\n' && text[1] == '\n') {
            printf("\n\n%*s", indent, "");
            column = indent;
            begun = false;
        }
        text += strspn(text, " \n");
    }
    putchar('\n');
}

/* Formats the default as --help shows it; an empty text if there is none. */
static void format_default(const struct option *option, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (option->kind == OPTION_TEXT && *(const char **)option->value)
        snprintf(buffer, size, " (default %s)", *(const char **)option->value);
    else if (option->kind == OPTION_INTEGER && *(int64_t *)option->value)
        snprintf(buffer, size, " (default %lld)", (long long)*(int64_t *)option->value);
    else if (option->kind == OPTION_NUMBER && *(double *)option->value != 0)
        number_print(buffer, size, " (default %g)", *(double *)option->value);
}

static void print_row(const char *head, const char *text)
{
    const int column = printf("  %-*s ", HEAD_COLUMNS, head);
    print_wrapped(text, column, HEAD_COLUMNS + 3);
}

static void print_option(const struct option *option)
{
    char names[NAMES_BYTES], head[64], initial[128], text[TEXT_BYTES];
    const bool flag = option->kind == OPTION_FLAG;
    snprintf(head, sizeof(head), "--%s%s%s", option->name, flag ? "" : " ", flag ? "" : option->noun);
    format_default(option, initial, sizeof(initial));
    const char *choices = option->choices ? help_join(option->choices, names, sizeof(names)) : "";
    snprintf(text, sizeof(text), "%s%s%s%s", option->help, *choices ? ": " : "", choices, initial);
    print_row(head, text);
}

/* Options before the first heading, --help among them, and those of each heading. */
static void print_options(const struct usage *usage)
{
    bool grouped = false;
    printf("\nOptions:\n");
    for (int i = 0; i < usage->count; i++) {
        const char *heading = usage->options[i].heading;
        if (heading && !grouped) print_row("--help", "print this text");
        grouped |= heading != NULL;
        if (heading)
            printf("\n%s:\n", heading);
        else
            print_option(&usage->options[i]);
    }
    if (!grouped) print_row("--help", "print this text");
}

static void print_argument(const struct usage *usage)
{
    char names[NAMES_BYTES], list[NAMES_BYTES + 1];
    printf("\n%s is %s%s%sone of:\n", usage->argument, usage->suffix ? "a file *" : "",
        usage->suffix ? usage->suffix : "", usage->suffix ? " or " : "");
    snprintf(list, sizeof(list), "%s.", help_join(usage->arguments, names, sizeof(names)));
    print_wrapped(list, 0, 0);
    if (usage->arguments_take) print_wrapped(usage->arguments_take, 0, 0);
}

static void print_from_options(const struct usage *usage)
{
    const char *const *options = usage->from_options;
    char text[TEXT_BYTES];
    if (!options[0]) return;
    snprintf(text, sizeof(text), "%s may be left out with --%s%s%s: weights say of which model they are.",
        usage->argument, options[0], options[1] ? " or --" : "", options[1] ? options[1] : "");
    print_wrapped(text, 0, 0);
}

void help_print(const struct usage *usage)
{
    char summary[TEXT_BYTES];
    const bool optional = usage->argument_optional || usage->from_options[0];
    printf("Usage: tutti %s%s%s%s%s%s%s [options]\n\n", usage->command,
        !usage->argument ? ""
            : optional   ? " ["
                         : " ",
        usage->argument ? usage->argument : "", optional ? "]" : "", usage->more ? " [" : "",
        usage->more ? usage->more : "", usage->more ? " ...]" : "");
    snprintf(summary, sizeof(summary), "%s.", usage->summary);
    print_wrapped(summary, 0, 0);
    if (usage->arguments) print_argument(usage);
    print_from_options(usage);
    print_options(usage);
    if (usage->table) printf("\n%s", usage->table);
    if (usage->details) putchar('\n');
    if (usage->details) print_wrapped(usage->details, 0, 0);
    printf("\nExit status: 0 success, 1 the work failed, 2 wrong arguments.\n");
}
