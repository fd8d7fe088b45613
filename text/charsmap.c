#include "text/charsmap.h"

#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>

struct charsmap {
    struct byte_list raw;
    size_t units;      /* of the double array, from byte 4 on */
    const char *texts; /* what beginnings become, each ends with NUL */
    size_t texts_size;
};

static int base64_value(char letter)
{
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

static bool decode_base64(const char *text, size_t size, struct byte_list *to)
{
    uint32_t bits = 0;
    int held = 0;
    while (size > 0 && text[size - 1] == '=') size--;
    for (size_t i = 0; i < size; i++) {
        const int value = base64_value(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            const char byte = (char)(bits >> held);
            byte_list_append(to, &byte, 1);
        }
    }
    return true;
}

static uint32_t number_at(const struct charsmap *map, size_t at)
{
    const unsigned char *byte = (const unsigned char *)map->raw.data + at;
    return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

tutti_status charsmap_new(struct charsmap **result, const char *base64, size_t size)
{
    struct charsmap *map = memory_new(1, sizeof(*map));
    if (!map) return TUTTI_NO_MEMORY;
    *result = map;
    if (size == 0) return TUTTI_OK;
    if (!decode_base64(base64, size, &map->raw))
        return fail(TUTTI_FORMAT, "\"precompiled_charsmap\" of the tokenizer is no base64");
    if (map->raw.failed) return TUTTI_NO_MEMORY;
    const size_t trie = map->raw.size >= 4 ? number_at(map, 0) : SIZE_MAX;
    if (trie % 4 != 0 || trie > map->raw.size - 4)
        return fail(TUTTI_FORMAT, "\"precompiled_charsmap\" of the tokenizer is damaged");
    map->units = trie / 4;
    map->texts = map->raw.data + 4 + trie;
    map->texts_size = map->raw.size - 4 - trie;
    return TUTTI_OK;
}

void charsmap_free(struct charsmap *map)
{
    if (!map) return;
    byte_list_free(&map->raw);
    free(map);
}

/* A unit of the double array: bit 31 marks a value, bits 0 to 7 and 31 are its label, bit 8 says that a value follows.
 */
static bool unit_at(const struct charsmap *map, size_t index, uint32_t *unit)
{
    if (index >= map->units) return false;
    *unit = number_at(map, 4 + 4 * index);
    return true;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* What the first beginning of the text becomes that the table has; NULL: none. */
static const char *replacement(const struct charsmap *map, const char *text, size_t size)
{
    uint32_t unit;
    size_t node = 0;
    if (!unit_at(map, 0, &unit)) return NULL;
    node ^= offset_of(unit);
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte == 0) return NULL;
        node ^= byte;
        if (!unit_at(map, node, &unit) || (unit & (1u << 31 | 0xFF)) != byte) return NULL;
        node ^= offset_of(unit);
        if (unit >> 8 & 1) {
            if (!unit_at(map, node, &unit)) return NULL;
            const size_t at = unit & 0x7FFFFFFF;
            const bool ends = at < map->texts_size && memchr(map->texts + at, 0, map->texts_size - at);
            return ends ? map->texts + at : NULL;
        }
    }
    return NULL;
}

/* As the peer: a grapheme of less than six bytes as a whole, else each character. */
void charsmap_apply(const struct charsmap *map, const char *text, size_t size, struct byte_list *to)
{
    for (size_t at = 0; at < size;) {
        const size_t bytes = unicode_grapheme(text + at, size - at);
        const char *whole = bytes < 6 ? replacement(map, text + at, bytes) : NULL;
        if (whole)
            byte_list_append(to, whole, strlen(whole));
        else
            for (size_t i = at; i < at + bytes;) {
                const size_t one = utf8_size(text[i]);
                const char *part = replacement(map, text + i, one);
                byte_list_append(to, part ? part : text + i, part ? strlen(part) : one);
                i += one;
            }
        at += bytes;
    }
}
