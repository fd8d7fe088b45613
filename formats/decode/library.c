/* What all decoders use. */
#include "base/numbers.h"
#include "formats/decode/decode.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool library_load(const char *const *files, const struct symbol *symbols, size_t count)
{
    for (; *files; files++) {
        size_t found = 0;
        void *handle = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
        for (; handle && found < count; found++) {
            void *function = dlsym(handle, symbols[found].name);
            if (!function) break;
            memcpy(symbols[found].function, &function, sizeof function);
        }
        if (handle && found == count) return true;
        if (handle) dlclose(handle);
    }
    return false;
}

bool refuse(struct decode_answer *answer, enum decode_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    number_print_list(answer->text, sizeof answer->text, format, arguments);
    va_end(arguments);
    answer->status = status;
    return false;
}

bool begin_picture(struct picture_file *file, struct decode_answer *answer, int64_t width, int64_t height, uint32_t row)
{
    if (width < 1 || height < 1 || width > DECODE_MOST_PIXELS || height > DECODE_MOST_PIXELS / width)
        return refuse(answer, DECODE_DAMAGED, "%lld x %lld pixels: at least one and at most %d can be read",
            (long long)width, (long long)height, DECODE_MOST_PIXELS);
    answer->width = (int32_t)width;
    answer->height = (int32_t)height;
    answer->row = row;
    if (!answer->orientation) answer->orientation = 1;
    if (!file->wants_pixels) return true;
    file->pixels = calloc((size_t)width * (size_t)height, row == 5 ? 4 : row);
    return file->pixels || refuse(answer, DECODE_NO_MEMORY, "no memory for its pixels");
}
