#include "tools/overwrite.h"

#include "base/text.h"
#include "formats/csv.h"
#include "formats/image.h"
#include "formats/sound.h"
#include "tools/files.h"
#include "tools/folds.h"
#include "tools/lora.h"
#include "tools/session.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_OUTPUTS = 8, PATH_BYTES = 4096 + 32 };

/* What the command writes. A file that is not there cannot be an input. */
static struct output {
    const char *option, *given;
    char path[PATH_BYTES];
    bool checkpoint;
    size_t position; /* in the path, of the number of a fold */
} outputs[MOST_OUTPUTS];
static int output_count, fold_count; /* of --folds: each writes files of its own */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* -------------------------------------------------------------------------------------------------- folders ---- */

/* Whether a file has the name of data that are not a table. */
static bool has_data_name(const char *name)
{
    static const char *const ends[] = { ".npy", ".npz", ".tar", ".bin", "-ubyte", "-ubyte.gz" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_has_extension(name, ends[i])) return true;
    return image_has_name(name) || sound_has_name(name);
}

/* Whether a table has the name of a part of the data. */
static bool has_part_name(const char *name)
{
    static const char *const parts[] = { "train.", "val.", "valid.", "validation.", "test." };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strncmp(name, parts[i], strlen(parts[i]))) return true;
    return false;
}

/* Whether the folder's table is this file: one of the parts, or the only table, with nothing else. Other tables next to
 * data are logs and scores, which may be written again. */
static bool has_table(const char *folder, const struct stat *file)
{
    DIR *directory = opendir(folder);
    bool part = false, only = false, others = false;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        struct stat found;
        const bool other = has_data_name(name), table = csv_has_name(name);
        others |= name[0] != '.' && other;
        if (name[0] == '.' || other || fstatat(dirfd(directory), name, &found, 0) != 0) continue;
        const bool same = table && is_same(&found, file);
        part |= same && has_part_name(name);
        only |= same;
        others |= !same && (table || S_ISDIR(found.st_mode));
    }
    if (directory) closedir(directory);
    return part || (only && !others);
}

/* Whether the folder has the file, in it or in a folder below it. */
static bool contains(const char *folder, const char *file)
{
    char *outer = realpath(folder, NULL), *inner = outer ? realpath(file, NULL) : NULL;
    const size_t length = outer ? strlen(outer) : 0;
    const bool within = inner && !strncmp(inner, outer, length) && inner[length] == '/';
    free(outer);
    free(inner);
    return within;
}

/* --------------------------------------------------------------------------------------------------- checks ---- */

/* Checks the file that an output is, or that a fold from 1 on writes for it. */
static int check_file(const char *command, const struct output *output, int fold, const char *path, const char *name,
    const struct stat *input)
{
    char written[PATH_BYTES + 16];
    struct stat found;
    if (fold == 0)
        snprintf(written, sizeof written, "%s", output->path);
    else
        snprintf(written, sizeof written, "%.*s.fold%d%s", (int)output->position, output->path, fold,
            output->path + output->position);
    if (stat(written, &found) != 0 || !S_ISREG(found.st_mode)) return EXIT_DONE;
    const bool folder = S_ISDIR(input->st_mode);
    if (folder && !(has_data_name(written) && contains(path, written)) && !has_table(path, &found)) return EXIT_DONE;
    if (!folder && !is_same(&found, input)) return EXIT_DONE;
    return wrong_use(command, "--%s %s: %s is %s %s, which is read: choose another name", output->option, output->given,
        strcmp(written, output->given) ? written : "this file", folder ? "in" : "also", name);
}

static int check_input(const char *command, const char *path, const char *name, const struct stat *input, bool resumed)
{
    int result = EXIT_DONE;
    for (int i = 0; i < output_count && result == EXIT_DONE; i++)
        for (int fold = 0; fold <= fold_count && result == EXIT_DONE; fold++)
            if (!resumed || !outputs[i].checkpoint) result = check_file(command, &outputs[i], fold, path, name, input);
    return result;
}

static int check_path(const char *command, const char *path, bool resumed)
{
    struct stat found;
    if (!strcmp(path, "-"))
        return fstat(STDIN_FILENO, &found) ? EXIT_DONE : check_input(command, path, "standard input", &found, resumed);
    return stat(path, &found) ? EXIT_DONE : check_input(command, path, path, &found, resumed);
}

int overwrite_check_input(const char *command, const char *path)
{
    char weights[PATH_BYTES];
    const int result = output_count ? check_path(command, path, false) : EXIT_DONE;
    if (result != EXIT_DONE || !text_has_extension(path, SESSION_FILES)) return result;
    /* Large weights lie there, by custom. */
    if ((size_t)snprintf(weights, sizeof weights, "%s.data", path) >= sizeof weights) return result;
    return check_path(command, weights, false);
}

/* Checks the files NAME=FILE.npy of a list. */
static int check_arrays(const char *command, const char *list)
{
    int result = EXIT_DONE;
    for (const char *rest = list; *rest && result == EXIT_DONE;) {
        char path[PATH_BYTES];
        const size_t length = strcspn(rest, ",");
        const char *equals = memchr(rest, '=', length), *value = equals ? equals + 1 : rest;
        snprintf(path, sizeof path, "%.*s", (int)(rest + length - value), value);
        if (text_has_extension(path, ".npy")) result = overwrite_check_input(command, path);
        rest += length + (rest[length] == ',');
    }
    return result;
}

static int check_checkpoint(const char *command, const char *given)
{
    char name[PATH_BYTES - 32], path[PATH_BYTES];
    const char *base = files_checkpoint(given, name, sizeof name);
    snprintf(path, sizeof path, "%s.safetensors", base);
    const int result = check_path(command, path, true);
    snprintf(path, sizeof path, "%s.state.safetensors", base);
    return result == EXIT_DONE ? check_path(command, path, true) : result;
}

/* Whether both paths name one file, which may not be there yet. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat found, other;
    const bool there = stat(a, &found) == 0, other_there = stat(b, &other) == 0;
    if (there || other_there) return there && other_there && S_ISREG(found.st_mode) && is_same(&found, &other);
    const char *slash = strrchr(a, '/'), *other_slash = strrchr(b, '/');
    char folder[PATH_BYTES], other_folder[PATH_BYTES];
    if (strcmp(slash ? slash + 1 : a, other_slash ? other_slash + 1 : b) != 0) return false;
    snprintf(folder, sizeof folder, "%.*s.", slash ? (int)(slash - a + 1) : 0, a);
    snprintf(other_folder, sizeof other_folder, "%.*s.", other_slash ? (int)(other_slash - b + 1) : 0, b);
    return stat(folder, &found) == 0 && stat(other_folder, &other) == 0 && is_same(&found, &other);
}

static int add_output(const char *command, const char *option, const char *given, const char *name, const char *end)
{
    struct output *output = &outputs[output_count];
    if (output_count == MOST_OUTPUTS) return work_failed(command, TUTTI_INTERNAL, "there are too many outputs");
    *output = (struct output) { .option = option, .given = given, .checkpoint = *end };
    snprintf(output->path, sizeof output->path, "%s%s", name, end);
    output->position = *end ? strlen(name) : folds_position(output->path);
    for (int i = 0; i < output_count; i++)
        if (is_one_file(outputs[i].path, output->path))
            return wrong_use(command, "--%s %s: %s is also written by --%s %s: choose another name", option, given,
                strcmp(output->path, given) ? output->path : "this file", outputs[i].option, outputs[i].given);
    output_count++;
    return EXIT_DONE;
}

/* ------------------------------------------------------------------------------------------------------ all ---- */

static int add_outputs(const char *command, const struct option *option)
{
    char name[PATH_BYTES - 32];
    const bool checkpoint = option->file == OPTION_WRITES_CHECKPOINT;
    const char *given = checkpoint || option->file == OPTION_WRITES ? *(const char **)option->value : NULL;
    if (!given) return EXIT_DONE;
    if (!checkpoint) return add_output(command, option->name, given, given, "");
    const char *base = files_checkpoint(given, name, sizeof name);
    static const char *const ends[] = { ".safetensors", ".state.safetensors",
        LORA_FOLDER "/adapter_model.safetensors" };
    int result = EXIT_DONE;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && result == EXIT_DONE; i++)
        result = add_output(command, option->name, given, base, ends[i]);
    return result;
}

static int check_option(const char *command, const struct option *option)
{
    int result = EXIT_DONE;
    if (option->file == OPTION_READS_ARRAYS) {
        const struct texts *texts = option->value;
        for (int i = 0; i < texts->count && result == EXIT_DONE; i++) result = check_arrays(command, texts->list[i]);
        return result;
    }
    const char *given = option->file ? *(const char **)option->value : NULL;
    if (!given) return EXIT_DONE;
    switch (option->file) {
    case OPTION_READS:
    case OPTION_READS_WEIGHTS: return overwrite_check_input(command, given);
    case OPTION_READS_CHECKPOINT: return check_checkpoint(command, given);
    default: return EXIT_DONE;
    }
}

/* Whether the argument is a name that the command knows, not a file. */
static bool is_known(const struct usage *usage, const char *argument)
{
    for (int i = 0; usage->arguments && usage->arguments[i]; i++)
        if (!strcmp(argument, usage->arguments[i])) return true;
    return false;
}

int overwrite_check(const struct usage *usage, const char *argument, char *const *more, int more_count)
{
    int result = EXIT_DONE;
    for (int i = 0; i < usage->count && result == EXIT_DONE; i++) {
        const struct option *option = &usage->options[i];
        if (option->kind == OPTION_INT && !strcmp(option->name, "folds")) fold_count = *(const int *)option->value;
        result = add_outputs(usage->command, option);
    }
    if (!output_count) return result;
    for (int i = 0; i < usage->count && result == EXIT_DONE; i++)
        result = check_option(usage->command, &usage->options[i]);
    if (result == EXIT_DONE && argument && !is_known(usage, argument))
        result = overwrite_check_input(usage->command, argument);
    for (int i = 0; i < more_count && result == EXIT_DONE; i++) result = overwrite_check_input(usage->command, more[i]);
    return result;
}
