#include "tools/options.h"

#include "base/numbers.h"
#include "base/text.h"
#include "tools/files.h"
#include "tools/help.h"
#include "tools/overwrite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_BYTES = 1024, MOST_OPTIONS = 200 };

/* Looks at usages instead of reading words. */
static options_visitor *visitor;
static void *visitor_user;

/* What stands between an unknown name and the list of known ones. */
static struct suggestion separate(struct suggestion suggestion)
{
    if (!suggestion.text[0]) strcpy(suggestion.text, ";");
    return suggestion;
}

/* Returns -1 if the text is not one of them. */
static int position_of(const char *text, const char *const *choices)
{
    for (int i = 0; choices[i]; i++) {
        if (!strcmp(text, choices[i])) return i;
    }
    return -1;
}

/* Returns the option whose name is like the given word; NULL: none is. */
static const char *nearest_option(const struct usage *usage, const char *given)
{
    const char *names[MOST_OPTIONS + 1];
    char name[64];
    int count = 0;
    for (int i = 0; i < usage->count && count < MOST_OPTIONS; i++)
        if (!usage->options[i].heading) names[count++] = usage->options[i].name;
    names[count] = NULL;
    given += strspn(given, "-");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(given, "="), given);
    return text_nearest(name, names);
}

static int unknown_option(const struct usage *usage, const char *given)
{
    char names[NAMES_BYTES] = "";
    size_t used = 0;
    const char *nearest = nearest_option(usage, given);
    if (nearest)
        return wrong_use(usage->command, "unknown option %s; did you mean --%s? tutti %s --help lists all", given,
            nearest, usage->command);
    for (int i = 0; i < usage->count && used < sizeof(names); i++) {
        if (usage->options[i].heading) continue;
        int wrote = snprintf(names + used, sizeof(names) - used, "--%s, ", usage->options[i].name);
        used += (size_t)(wrote > 0 ? wrote : 0);
    }
    return wrong_use(usage->command, "unknown option %s; use one of %s--help", given, names);
}

static bool in_range(const struct option *option, double value)
{
    return isfinite(value) && (option->low == option->high || (value >= option->low && value <= option->high));
}

/* "; did you mean 0.1?" for 0,1. */
static struct suggestion suggest_point(const char *text)
{
    struct suggestion suggestion = { "" };
    char copy[32], *comma, *end;
    if (strlen(text) >= sizeof(copy) || strchr(text, '.')) return suggestion;
    strcpy(copy, text);
    if (!(comma = strchr(copy, ','))) return suggestion;
    *comma = '.';
    (void)number_read(copy, &end);
    if (end > comma && !*end) snprintf(suggestion.text, sizeof(suggestion.text), "; did you mean %s?", copy);
    return suggestion;
}

static int bad_number(const struct usage *usage, const struct option *option, bool whole, const char *text)
{
    const char *kind = whole ? "a whole number" : "a number";
    const struct suggestion near = whole ? (struct suggestion) { "" } : suggest_point(text);
    if (option->low == option->high)
        return wrong_use(usage->command, "--%s needs %s, not \"%s\"%s", option->name, kind, text, near.text);
    if (option->high >= 9e15)
        return wrong_use(usage->command, "--%s needs %s of at least %.15g, not \"%s\"%s", option->name, kind,
            option->low, text, near.text);
    return wrong_use(usage->command, "--%s needs %s from %.15g to %.15g, not \"%s\"%s", option->name, kind, option->low,
        option->high, text, near.text);
}

static int set_number(const struct usage *usage, const struct option *option, const char *text)
{
    const bool whole = option->kind == OPTION_INT || option->kind == OPTION_INTEGER;
    char *end = NULL;
    errno = 0;
    const long long integer = whole ? strtoll(text, &end, 10) : 0;
    const bool overflows = whole && errno;
    const double number = whole ? (double)integer : number_read(text, &end);
    if (end == text || *end || overflows || !in_range(option, number)) return bad_number(usage, option, whole, text);
    if (option->kind == OPTION_INT) *(int *)option->value = (int)integer;
    if (option->kind == OPTION_INTEGER) *(int64_t *)option->value = integer;
    if (option->kind == OPTION_FLOAT) *(float *)option->value = (float)number;
    if (option->kind == OPTION_NUMBER) *(double *)option->value = number;
    return EXIT_DONE;
}

/* Returns EXIT_DONE, or the status of a wrong value, which was reported. */
static int set_value(const struct usage *usage, const struct option *option, const char *text)
{
    char names[NAMES_BYTES];
    const int chosen = option->choices ? position_of(text, option->choices) : 0;
    if (option->kind >= OPTION_INT) return set_number(usage, option, text);
    if (chosen < 0)
        return wrong_use(usage->command, "--%s: \"%s\" is unknown%s use one of %s", option->name, text,
            separate(text_suggest(text, option->choices)).text, help_join(option->choices, names, sizeof(names)));
    if (!*text) return wrong_use(usage->command, "--%s needs %s, not an empty value", option->name, option->noun);
    if (option->kind == OPTION_TEXT)
        *(const char **)option->value = option->file == OPTION_READS_WEIGHTS ? files_weights(text) : text;
    if (option->kind == OPTION_CHOICE) *(unsigned *)option->value = (unsigned)option->low + (unsigned)chosen;
    if (option->kind != OPTION_TEXTS) return EXIT_DONE;
    struct texts *texts = option->value;
    if (texts->count == OPTION_MOST_TEXTS)
        return wrong_use(usage->command, "--%s is there more than %d times", option->name, OPTION_MOST_TEXTS);
    texts->list[texts->count++] = text;
    return EXIT_DONE;
}

static const struct option *find_option(const struct usage *usage, const char *name, size_t length)
{
    for (int i = 0; i < usage->count; i++) {
        if (!usage->options[i].heading && strlen(usage->options[i].name) == length &&
            !strncmp(usage->options[i].name, name, length))
            return &usage->options[i];
    }
    return NULL;
}

/* Reads the option at argv[*position] and moves *position to its last word. */
static int parse_option(const struct usage *usage, int argc, char **argv, int *position)
{
    const char *word = argv[*position], *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find_option(usage, name, length);
    if (!option) return unknown_option(usage, word);
    if (option->given) *option->given = true;
    if (option->kind == OPTION_FLAG) {
        if (equals) return wrong_use(usage->command, "--%s takes no value: leave \"%s\" out", option->name, equals);
        *(bool *)option->value = true;
        return EXIT_DONE;
    }
    if (equals) return set_value(usage, option, equals + 1);
    if (*position + 1 >= argc)
        return wrong_use(usage->command, "--%s needs a value: --%s %s", option->name, option->name, option->noun);
    return set_value(usage, option, argv[++*position]);
}

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t length = strlen(text), end = suffix ? strlen(suffix) : 0;
    return suffix && length > end && !strcmp(text + length - end, suffix);
}

/* Whether an option was given that says the argument. */
static bool is_in_options(const struct usage *usage)
{
    for (int i = 0; i < 2 && usage->from_options[i]; i++) {
        const struct option *option = find_option(usage, usage->from_options[i], strlen(usage->from_options[i]));
        if (option && *(const char **)option->value) return true;
    }
    return false;
}

/* Whether the first argument is one of those that may follow the left-out one. */
static bool is_left_out(const struct usage *usage, const char *argument)
{
    if (!usage->more || !argument || !is_in_options(usage)) return false;
    if (position_of(argument, usage->arguments) >= 0 || has_suffix(argument, usage->suffix)) return false;
    if (has_suffix(argument, ".safetensors")) return false;
    return access(argument, F_OK) == 0 || !text_nearest(argument, usage->arguments);
}

static int check_argument(const struct usage *usage, const char *argument)
{
    char names[NAMES_BYTES];
    if (!usage->argument || (!argument && (usage->argument_optional || is_in_options(usage)))) return EXIT_DONE;
    if (!argument && usage->arguments)
        return wrong_use(usage->command, "%s is missing; use one of %s%s%s", usage->argument,
            help_join(usage->arguments, names, sizeof(names)),
            usage->from_options[0] ? ", or name its weights by --" : "",
            usage->from_options[0] ? usage->from_options[0] : "");
    if (!argument) return wrong_use(usage->command, "%s is missing (see --help)", usage->argument);
    const char *conversion = usage->suffix ? files_conversion(argument) : NULL;
    if (conversion) return wrong_use(usage->command, "%s \"%s\": this is %s", usage->argument, argument, conversion);
    if (usage->suffix && has_suffix(argument, ".safetensors"))
        return wrong_use(usage->command, "%s \"%s\": these are weights: write --weights %s%s", usage->argument,
            argument, argument, usage->from_options[0] ? "" : ", and the model");
    if (usage->more && usage->from_options[0] && !has_suffix(argument, usage->suffix) &&
        position_of(argument, usage->arguments) < 0 && access(argument, F_OK) == 0)
        return wrong_use(usage->command, "--%s is missing: \"%s\" is not a %s, which %s say, but a file",
            usage->from_options[0], argument, usage->argument, usage->from_options[0]);
    if (usage->arguments && position_of(argument, usage->arguments) < 0 && !has_suffix(argument, usage->suffix) &&
        find_option(usage, "data", strlen("data")) && access(argument, F_OK) == 0)
        return wrong_use(usage->command, "\"%s\" is a file or folder, not a %s: name one of %s, and --data %s",
            argument, usage->argument, help_join(usage->arguments, names, sizeof(names)), argument);
    if (usage->arguments && position_of(argument, usage->arguments) < 0 && !has_suffix(argument, usage->suffix))
        return wrong_use(usage->command, "unknown %s \"%s\"%s use one of %s%s%s", usage->argument, argument,
            separate(text_suggest(argument, usage->arguments)).text, help_join(usage->arguments, names, sizeof(names)),
            usage->suffix ? ", or a file *" : "", usage->suffix ? usage->suffix : "");
    return EXIT_DONE;
}

/* An argument after the one, or where there is none: perhaps data without their option. */
static void one_too_many(const struct usage *usage, const char *first, const char *argument)
{
    const bool data = find_option(usage, "data", strlen("data")) && access(argument, F_OK) == 0;
    if (data)
        wrong_use(usage->command, "\"%s\" is one argument too many; did you mean --data %s?", argument, argument);
    else if (first)
        wrong_use(usage->command, "\"%s\" is one argument too many: %s is \"%s\" already; name one of them", argument,
            usage->argument, first);
    else
        wrong_use(usage->command, "\"%s\" is one argument too many: %s takes options only", argument, usage->command);
}

enum parsed options_parse(const struct usage *usage, int argc, char **argv, const char **argument)
{
    char *found = NULL;
    int more = 0;
    if (visitor) {
        visitor(usage, visitor_user);
        return PARSED_HELP;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            help_print(usage);
            return PARSED_HELP;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || (!argv[i][1] && usage->argument)) {
            if (found && usage->more) {
                argv[++more] = argv[i];
                continue;
            }
            if (!usage->argument || found) {
                one_too_many(usage, found, argv[i]);
                return PARSED_WRONG;
            }
            found = argv[i];
        } else if (argv[i][1] != '-') {
            unknown_option(usage, argv[i]);
            return PARSED_WRONG;
        } else if (parse_option(usage, argc, argv, &i) != EXIT_DONE) {
            return PARSED_WRONG;
        }
    }
    if (is_left_out(usage, found)) {
        memmove(argv + 2, argv + 1, (size_t)more++ * sizeof(*argv));
        argv[1] = found;
        found = NULL;
    }
    if (check_argument(usage, found) != EXIT_DONE) return PARSED_WRONG;
    if (overwrite_check(usage, found, argv + 1, more) != EXIT_DONE) return PARSED_WRONG;
    if (argument) *argument = found;
    if (usage->more) *usage->more_count = more;
    return PARSED_RUN;
}

void options_visit(options_visitor *visit, void *user)
{
    visitor = visit;
    visitor_user = user;
}

int parsed_exit(enum parsed parsed)
{
    return parsed == PARSED_WRONG ? EXIT_WRONG_USE : EXIT_DONE;
}
