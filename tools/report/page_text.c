#include "tools/report/page_text.h"

#include "base/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int character_count(const char *text)
{
    int count = 0;
    for (int bytes; *text; count++) text += (bytes = text_character(text)) ? bytes : 1;
    return count;
}

void page_text_cut(struct text *page, const char *text, int characters)
{
    const bool cut = character_count(text) > characters;
    for (int i = 0; *text && i < characters; i++) {
        const int bytes = text_character(text);
        if (cut && i == characters - 1)
            text_append(page, "\xe2\x80\xa6");
        else if (bytes == 0)
            text_append(page, "\xef\xbf\xbd");
        else if (strchr("&<>\"'", *text))
            text_append(page, "&#%d;", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            text_append(page, " ");
        else
            text_append(page, "%.*s", bytes, text);
        text += bytes ? bytes : 1;
    }
}

void page_text(struct text *page, const char *text)
{
    page_text_cut(page, text, character_count(text) + 1);
}

const char *format_count(double value, char *buffer, size_t size)
{
    if (value < 1e4)
        number_print(buffer, size, "%.0f", value);
    else if (value < 1e6)
        number_print(buffer, size, "%d,%03d", (int)value / 1000, (int)value % 1000);
    else
        number_print(buffer, size, "%.3g %c", value < 1e9 ? value / 1e6 : value / 1e9, value < 1e9 ? 'M' : 'G');
    return buffer;
}

const char *format_seconds(double seconds, char *buffer, size_t size)
{
    const long long whole = llround(seconds);
    if (!(seconds >= 0) || seconds > 1e12)
        number_print(buffer, size, "unknown");
    else if (seconds < 60)
        number_print(buffer, size, "%.1f s", seconds);
    else if (whole < 3600)
        number_print(buffer, size, "%lld:%02lld min", whole / 60, whole % 60);
    else
        number_print(buffer, size, "%lld:%02lld h", whole / 3600, whole / 60 % 60);
    return buffer;
}

const char *format_bytes(double bytes, char *buffer, size_t size)
{
    if (bytes < (double)(1 << 30))
        number_print(buffer, size, "%.*f MiB", bytes < 10 * (1 << 20) ? 1 : 0, bytes / (1 << 20));
    else
        number_print(buffer, size, "%.1f GiB", bytes / (1 << 30));
    return buffer;
}

const char *format_shape(const tutti_shape *shape, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", i ? ", " : "", (long long)shape->sizes[i]);
    if (used < size) snprintf(buffer + used, size - used, "]");
    return buffer;
}
