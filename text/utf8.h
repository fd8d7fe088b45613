/* UTF-8: characters of valid text, and the repair of text that is not. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include "text/lists.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the bytes are UTF-8 (RFC 3629). */
bool utf8_valid(const char *text, size_t size);
/* Appends the text with U+FFFD for each longest beginning of a character that is not continued, as Unicode recommends
 * (3.9, "U+FFFD Substitution of Maximal Subparts") and Python and Rust do. */
void utf8_repair(const char *text, size_t size, struct byte_list *to);

/* Reads the character at *at of valid text and moves on. */
static inline uint32_t utf8_next(const char *text, size_t *at)
{
    const unsigned char *byte = (const unsigned char *)text + *at;
    if (byte[0] < 0x80) return *at += 1, byte[0];
    if (byte[0] < 0xE0) return *at += 2, (uint32_t)(byte[0] & 0x1F) << 6 | (byte[1] & 0x3F);
    if (byte[0] < 0xF0)
        return *at += 3, (uint32_t)(byte[0] & 0x0F) << 12 | (uint32_t)(byte[1] & 0x3F) << 6 | (byte[2] & 0x3F);
    return *at += 4,
           (uint32_t)(byte[0] & 0x07) << 18 | (uint32_t)(byte[1] & 0x3F) << 12 | (uint32_t)(byte[2] & 0x3F) << 6 |
               (byte[3] & 0x3F);
}
/* The beginning of the character that ends before `at`, which is above 0. */
static inline size_t utf8_before(const char *text, size_t at)
{
    do at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}
/* Bytes of the character that begins with this byte. */
static inline size_t utf8_size(char first)
{
    const unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
/* Writes a character and returns its bytes, at most 4. */
static inline size_t utf8_write(uint32_t code, char *to)
{
    if (code < 0x80) return to[0] = (char)code, 1;
    if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6), to[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12), to[1] = (char)(0x80 | (code >> 6 & 0x3F));
        to[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | code >> 18), to[1] = (char)(0x80 | (code >> 12 & 0x3F));
    to[2] = (char)(0x80 | (code >> 6 & 0x3F)), to[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

#endif
