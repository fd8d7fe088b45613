#include "base/base64.h"

void base64_append(struct text *text, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char line[65];
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const unsigned group = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
            (left > 2 ? (unsigned)bytes[i + 2] : 0);
        line[used++] = digits[group >> 18];
        line[used++] = digits[group >> 12 & 63];
        line[used++] = left > 1 ? digits[group >> 6 & 63] : '=';
        line[used++] = left > 2 ? digits[group & 63] : '=';
        if (used < 64 && left > 3) continue;
        line[used] = 0;
        text_append(text, "%s", line);
        used = 0;
    }
}
