#include "tools/files.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/little_endian.h"
#include "tools/options.h"
#include "tools/session.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *files_checkpoint(const char *given, char *buffer, size_t size)
{
    static const char *const ends[] = { ".state.safetensors", ".safetensors" };
    size_t length = strlen(given);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (!text_has_extension(given, ends[i])) continue;
        length -= strlen(ends[i]);
        break;
    }
    if (length >= size) return given;
    snprintf(buffer, size, "%.*s", (int)length, given);
    return buffer;
}

const char *files_weights(const char *given)
{
    enum { PATH_BYTES = 4096 };
    static char path[PATH_BYTES + 16];
    char name[PATH_BYTES];
    struct stat info;
    const bool found = stat(given, &info) == 0, there = found && !S_ISDIR(info.st_mode);
    if (found && !there) { /* as models are published */
        snprintf(path, sizeof(path), "%s/model.safetensors", given);
        if (access(path, F_OK) == 0) return path;
    }
    if (there && !text_has_extension(given, ".state.safetensors")) return given;
    snprintf(path, sizeof(path), "%s.safetensors", files_checkpoint(given, name, sizeof(name)));
    return access(path, F_OK) == 0 ? path : given;
}

const char *files_conversion(const char *path)
{
    static const char pytorch[] = "a file of PyTorch: save its weights by safetensors.torch.save_file("
                                  "model.state_dict(), \"m.safetensors\"), or the network by torch.onnx.export()";
    static const char keras[] = "a file of Keras: save the network by model.export(\"m.onnx\", format=\"onnx\")";
    static const struct {
        const char *end, *text;
    } known[] = { { ".pth", pytorch }, { ".pt", pytorch }, { ".ckpt", pytorch }, { ".h5", keras }, { ".hdf5", keras },
        { ".keras", keras } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (text_has_extension(path, known[i].end)) return known[i].text;
    return NULL;
}

/* A safetensors file begins with the length of its header, which is an object of JSON. */
static bool begins_well(FILE *file)
{
    unsigned char head[9];
    struct stat info;
    if (fread(head, 1, sizeof(head), file) != sizeof(head) || fstat(fileno(file), &info) != 0) return false;
    return head[8] == '{' && read_le64(head) <= (uint64_t)info.st_size - 8;
}

static tutti_status check_safetensors(const char *option, const char *path)
{
    struct stat info;
    const char *conversion = files_conversion(path);
    if (conversion) return fail(TUTTI_FORMAT, "--%s %s: this is %s", option, path, conversion);
    if (text_has_extension(path, SESSION_FILES))
        return fail(TUTTI_FORMAT, "--%s %s: this is a network with its weights: name it as MODEL", option, path);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return fail(TUTTI_FILE, "--%s %s: this is a folder: name a safetensors file in it", option, path);
    FILE *file = fopen(path, "rb");
    if (!file) {
        const int reason = errno;
        const struct suggestion near = path_suggest(path, ".safetensors");
        return fail(TUTTI_FILE, "--%s %s: this file cannot be read: %s%s", option, path, strerror(reason),
            near.text[0] ? near.text : ": name one that `tutti train --save NAME` has written");
    }
    const bool good = begins_well(file);
    fclose(file);
    if (good) return TUTTI_OK;
    return fail(TUTTI_FORMAT,
        "--%s %s: this is not a safetensors file, or it is cut off: name another one, or copy it again", option, path);
}

int files_check_weights(const char *command, const char *option, const char *path)
{
    const tutti_status status = path ? check_safetensors(option, path) : TUTTI_OK;
    return status == TUTTI_OK ? EXIT_DONE : work_failed(command, status, status_message());
}

int files_check_checkpoint(const char *name)
{
    if (!name) return EXIT_DONE;
    if (files_conversion(name)) return files_check_weights("train", "resume", name);
    char *weights = memory_format("%s.safetensors", name), *state = memory_format("%s.state.safetensors", name);
    char *pending =
        memory_format("%s.safetensors.new", name); /* all there is of weights after a kill at a first save */
    int result = weights && state && pending ? EXIT_DONE : work_failed("train", TUTTI_NO_MEMORY, status_message());
    if (result == EXIT_DONE && access(pending, F_OK) != 0) result = files_check_weights("train", "resume", weights);
    if (result == EXIT_DONE) result = files_check_weights("train", "resume", state);
    free(weights);
    free(state);
    free(pending);
    return result;
}

int files_check_parent(const char *command, const char *option, const char *path)
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? memory_format("%.*s", slash == path ? 1 : (int)(slash - path), path) : memory_copy_text(".");
    const char *reason = NULL;
    if (!folder) return work_failed(command, TUTTI_NO_MEMORY, status_message());
    if (stat(folder, &info) != 0)
        reason = strerror(errno);
    else if (!S_ISDIR(info.st_mode))
        reason = "it is a file";
    else if (access(folder, W_OK | X_OK) != 0)
        reason = strerror(errno);
    if (reason)
        fprintf(stderr, "tutti %s: --%s %s: nothing can be written in the folder %s: %s: make it, or name another\n",
            command, option, path, folder, reason);
    free(folder);
    return reason ? EXIT_WORK_FAILED : EXIT_DONE;
}

int files_check_output(const char *command, const char *option, const char *path)
{
    struct stat info;
    if (!path) return EXIT_DONE;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) return files_check_parent(command, option, path);
    fprintf(stderr, "tutti %s: --%s %s: this cannot be written: it is %s: name a file\n", command, option, path,
        S_ISDIR(info.st_mode) ? "a folder" : "a device, not a file");
    return EXIT_WORK_FAILED;
}

int files_check_log(const char *command, const char *option, const char *path)
{
    struct stat info;
    if (!path) return EXIT_DONE;
    if (stat(path, &info) != 0) return files_check_parent(command, option, path);
    const char *reason = S_ISDIR(info.st_mode) ? "it is a folder" : access(path, W_OK) ? strerror(errno) : NULL;
    if (!reason) return EXIT_DONE;
    fprintf(stderr, "tutti %s: --%s %s: this cannot be written: %s\n", command, option, path, reason);
    return EXIT_WORK_FAILED;
}

int files_check_folder(const char *command, const char *option, const char *path)
{
    struct stat info;
    if (!path) return EXIT_DONE;
    if (stat(path, &info) != 0) return files_check_parent(command, option, path);
    const char *reason = !S_ISDIR(info.st_mode) ? "it is a file" : access(path, W_OK | X_OK) ? strerror(errno) : NULL;
    if (!reason) return EXIT_DONE;
    fprintf(stderr, "tutti %s: --%s %s: nothing can be written in this folder: %s\n", command, option, path, reason);
    return EXIT_WORK_FAILED;
}

enum { LOCK_SECONDS = 3 }; /* a training that was just ended still closes its files */

int files_lock(const char *name, struct file_lock **lock)
{
    char *path = memory_format("%s.training.lock", name);
    const tutti_status status = path ? file_lock_take(lock, path, LOCK_SECONDS) : TUTTI_NO_MEMORY;
    const bool held = status == TUTTI_FILE && access(path, W_OK) == 0;
    free(path);
    if (status == TUTTI_OK) return EXIT_DONE;
    if (!held) return work_failed("train", status, status_message());
    fprintf(stderr, "tutti train: another training saves to %s: let it end, or choose another name by --save\n", name);
    return EXIT_WORK_FAILED;
}
