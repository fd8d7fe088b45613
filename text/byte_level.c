#include "text/byte_level.h"

#include "text/utf8.h"

/* Printable characters of Latin-1 stand for themselves; the other bytes have characters from 256 on, in their order. */
uint32_t byte_character(unsigned char byte)
{
    if ((byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD)) return byte;
    return byte <= ' ' ? 256u + byte : byte <= 0xA0 ? 256u + 33 + byte - 0x7F : 256u + 67;
}

int character_byte(uint32_t character)
{
    if (character < 256) return byte_character((unsigned char)character) == character ? (int)character : -1;
    if (character < 256 + 33) return (int)character - 256;
    if (character < 256 + 67) return (int)character - 256 - 33 + 0x7F;
    return character == 256 + 67 ? 0xAD : -1;
}

void byte_level_append(struct byte_list *to, const char *text, size_t size)
{
    if (to->capacity - to->size < size * 2 && !byte_list_reserve(to, size * 2)) return;
    char *end = to->data + to->size;
    for (size_t i = 0; i < size; i++) end += utf8_write(byte_character((unsigned char)text[i]), end);
    to->size = (size_t)(end - to->data);
}
