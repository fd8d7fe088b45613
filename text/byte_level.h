/* The characters that stand for bytes in vocabularies of byte-level BPE, as GPT-2's. */
#ifndef TEXT_BYTE_LEVEL_H
#define TEXT_BYTE_LEVEL_H

#include "text/lists.h"

/* The character of a byte, at most 0x143. */
uint32_t byte_character(unsigned char byte);
/* The byte of a character; -1: it stands for none. */
int character_byte(uint32_t character);
/* Appends the characters of the bytes. */
void byte_level_append(struct byte_list *to, const char *text, size_t size);

#endif
