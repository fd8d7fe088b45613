#include "text/utf8.h"

#include <string.h>

/* Bytes of the longest beginning of a character here; *whole: whether it is a character. */
static size_t beginning(const unsigned char *byte, size_t size, bool *whole)
{
    const unsigned char first = byte[0];
    *whole = first < 0x80;
    if (first < 0xC2 || first > 0xF4) return 1;
    const size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xBF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    for (size_t i = 1; i < wanted; i++) {
        if (i >= size || byte[i] < low || byte[i] > high) return i;
        low = 0x80, high = 0xBF;
    }
    *whole = true;
    return wanted;
}

/* Bytes at the beginning that are UTF-8. */
static size_t valid_bytes(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint64_t eight;
        if (size - at >= sizeof(eight)) {
            memcpy(&eight, text + at, sizeof(eight));
            if (!(eight & 0x8080808080808080u)) {
                at += sizeof(eight);
                continue;
            }
        }
        bool whole;
        const size_t bytes = beginning((const unsigned char *)text + at, size - at, &whole);
        if (!whole) break;
        at += bytes;
    }
    return at;
}

bool utf8_valid(const char *text, size_t size)
{
    return valid_bytes(text, size) == size;
}

void utf8_repair(const char *text, size_t size, struct byte_list *to)
{
    for (size_t at = 0; at < size;) {
        const size_t valid = valid_bytes(text + at, size - at);
        byte_list_append(to, text + at, valid);
        at += valid;
        if (at == size) break;
        bool whole;
        at += beginning((const unsigned char *)text + at, size - at, &whole);
        byte_list_append(to, "\xEF\xBF\xBD", 3);
    }
}
