/* HEIC and AVIF by libheif, which turns pictures as their files say. The declarations are those of libheif/heif.h. */
#include "formats/decode/decode.h"
#include "formats/image_kinds.h"

#include <dlfcn.h>
#include <string.h>

enum { COLOURS_RGB = 1, INTERLEAVED_RGB = 10, INTERLEAVED_RGBA = 11, CHANNEL_INTERLEAVED = 10 };

struct error {
    int code, subcode;
    const char *message;
};
struct context;
struct handle;
struct pixels;
static struct context *(*context_new)(void);
static void (*context_free)(struct context *context);
static struct error (*context_read)(struct context *context, const void *bytes, size_t count, const void *options);
static struct error (*primary_handle)(struct context *context, struct handle **handle);
static void (*handle_free)(const struct handle *handle);
static int (*handle_width)(const struct handle *handle);
static int (*handle_height)(const struct handle *handle);
static int (*handle_has_alpha)(const struct handle *handle);
static struct error (*decode)(
    const struct handle *handle, struct pixels **pixels, int colours, int chroma, const void *options);
static void (*pixels_free)(const struct pixels *pixels);
static int (*pixels_width)(const struct pixels *pixels, int channel);
static int (*pixels_height)(const struct pixels *pixels, int channel);
static const uint8_t *(*pixels_plane)(const struct pixels *pixels, int channel, int *stride);

/* Loads codecs that are files of their own, which the process cannot open later. */
static void load_codecs(void)
{
    struct error (*start)(const void *parameters);
    static const char *const files[] = { "libheif.so.1", NULL };
    const struct symbol symbols[] = { { "heif_init", (void *)&start } };
    if (library_load(files, symbols, 1)) (void)start(NULL);
}

static bool load(void)
{
    static const char *const files[] = { "libheif.so.1", NULL };
    const struct symbol symbols[] = { { "heif_context_alloc", (void *)&context_new },
        { "heif_context_free", (void *)&context_free },
        { "heif_context_read_from_memory_without_copy", (void *)&context_read },
        { "heif_context_get_primary_image_handle", (void *)&primary_handle },
        { "heif_image_handle_release", (void *)&handle_free }, { "heif_image_handle_get_width", (void *)&handle_width },
        { "heif_image_handle_get_height", (void *)&handle_height },
        { "heif_image_handle_has_alpha_channel", (void *)&handle_has_alpha }, { "heif_decode_image", (void *)&decode },
        { "heif_image_release", (void *)&pixels_free }, { "heif_image_get_width", (void *)&pixels_width },
        { "heif_image_get_height", (void *)&pixels_height },
        { "heif_image_get_plane_readonly", (void *)&pixels_plane } };
    if (!library_load(files, symbols, sizeof symbols / sizeof *symbols)) return false;
    load_codecs();
    struct context *context = context_new(); /* what is loaded at the first use */
    if (context) context_free(context);
    return context != NULL;
}

static bool refuse_error(struct decode_answer *answer, const struct error *error)
{
    const char *text = error->message ? error->message : "it is damaged";
    const bool codec = strstr(text, "nsupported codec") || strstr(text, "o decoding plugin");
    return refuse(answer, DECODE_DAMAGED, "libheif: %s%s", text,
        codec ? " (a plugin of libheif is missing: apt install libheif-plugin-libde265 libheif-plugin-dav1d)" : "");
}

static bool copy_pixels(const struct pixels *pixels, struct picture_file *file, struct decode_answer *answer)
{
    int stride = 0;
    const size_t bytes = (size_t)answer->width * answer->row;
    const uint8_t *plane = pixels_plane(pixels, CHANNEL_INTERLEAVED, &stride);
    if (!plane || pixels_width(pixels, CHANNEL_INTERLEAVED) != answer->width ||
        pixels_height(pixels, CHANNEL_INTERLEAVED) != answer->height || stride < 0 || (size_t)stride < bytes)
        return refuse(answer, DECODE_DAMAGED, "its pixels have another size than its header says");
    for (int y = 0; y < answer->height; y++)
        memcpy(file->pixels + (size_t)y * bytes, plane + (size_t)y * (size_t)stride, bytes);
    return true;
}

static bool read_handle(const struct handle *handle, struct picture_file *file, struct decode_answer *answer)
{
    struct pixels *pixels = NULL;
    const bool alpha = handle_has_alpha(handle) != 0;
    if (!begin_picture(file, answer, handle_width(handle), handle_height(handle), alpha ? ROW_RGBA : ROW_RGB))
        return false;
    if (!file->wants_pixels) return true;
    const struct error error = decode(handle, &pixels, COLOURS_RGB, alpha ? INTERLEAVED_RGBA : INTERLEAVED_RGB, NULL);
    if (error.code != 0) return refuse_error(answer, &error);
    const bool good = copy_pixels(pixels, file, answer);
    pixels_free(pixels);
    return good;
}

static bool read_picture(struct picture_file *file, struct decode_answer *answer)
{
    struct handle *handle = NULL;
    struct context *context = context_new();
    if (!context) return refuse(answer, DECODE_NO_MEMORY, "no memory for libheif");
    struct error error = context_read(context, file->bytes, file->count, NULL);
    if (error.code == 0) error = primary_handle(context, &handle);
    const bool good = error.code == 0 ? read_handle(handle, file, answer) : refuse_error(answer, &error);
    if (handle) handle_free(handle);
    context_free(context);
    return good;
}

const struct library library_heif = { .name = "heif", .load = load, .read_picture = read_picture };
