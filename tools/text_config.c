#include "tools/text_config.h"

#include "base/status.h"
#include "base/text.h"
#include "tools/failure.h"
#include "tutti_data.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* Copies an object as a text, without the names of classes, which may be many. False: it is too long. */
static bool copy(json_t *object, struct text_config *config)
{
    (void)json_object_del(object, "id2label");
    (void)json_object_del(object, "label2id");
    const size_t bytes = json_dumpb(object, config->json, sizeof config->json - 1, JSON_COMPACT);
    const bool fits = bytes > 0 && bytes < sizeof config->json;
    config->json[fits ? bytes : 0] = '\0';
    return fits;
}

static int read_file(const char *command, const char *path, struct text_config *config)
{
    json_error_t error;
    json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    const bool fits = json_is_object(object) && copy(object, config);
    const bool read = object != NULL;
    json_decref(object);
    if (fits) return EXIT_DONE;
    if (access(path, R_OK) != 0) return work_failed(command, TUTTI_FILE, path);
    return wrong_use(command, "%s is not the config.json of a network: %s", path,
        read ? "it is not an object, or longer than 16 KiB" : error.text);
}

/* What Tutti saved with weights. *own: they are Tutti's, so that another file in their folder says nothing of them. */
static int read_saved(const char *command, const char *weights, struct text_config *config, bool *own)
{
    char *text = tutti_weights_metadata(weights, "model");
    json_t *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *saved = json_object_get(object, "config");
    const bool good = !saved || (json_is_object(saved) && copy(saved, config));
    *own = text != NULL;
    json_decref(object);
    free(text);
    if (good) return EXIT_DONE;
    fail(TUTTI_FORMAT, "%s: what it says of its network is damaged", weights);
    return work_failed(command, TUTTI_FORMAT, status_message());
}

static int read_any(const char *command, const char *given, const char *weights, struct text_config *config)
{
    char path[PATH_BYTES];
    bool own = false;
    if (given) return read_file(command, given, config);
    if (!weights) return EXIT_DONE;
    const int result = read_saved(command, weights, config, &own);
    if (result != EXIT_DONE || own) return result;
    const char *slash = strrchr(weights, '/');
    const int folder = slash ? (int)(slash - weights) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*sconfig.json", folder, weights) >= PATH_BYTES) return EXIT_DONE;
    return access(path, F_OK) == 0 ? read_file(command, path, config) : EXIT_DONE;
}

int text_config_read(const char *command, const struct model *model, struct text_config *config)
{
    char message[256];
    config->json[0] = '\0';
    config->made_of = *model->config;
    const int result = read_any(command, config->file, config->weights, config);
    if (result != EXIT_DONE || !config->json[0]) return result;
    if (model_config_read(config->json, model->config, &config->made_of, message, sizeof message)) return EXIT_DONE;
    return wrong_use(
        command, "%s: %s: %s", model->name, config->file ? config->file : "the config.json of its weights", message);
}
