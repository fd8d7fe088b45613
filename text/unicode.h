/* Classes and forms of characters, by utf8proc, as the crates of Hugging Face's tokenizers have them. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include "base/status.h"
#include "text/lists.h"

bool unicode_is_space(uint32_t code);              /* White_Space */
bool unicode_is_numeric(uint32_t code);            /* Nd, Nl, No */
bool unicode_is_word(uint32_t code);               /* Alphabetic, M, Nd, Pc, Join_Control */
bool unicode_is_punctuation(uint32_t code);        /* of ASCII all but letters and digits, else P */
bool unicode_is_mark(uint32_t code);               /* M */
bool unicode_is_mark_without_width(uint32_t code); /* Mn */
bool unicode_is_control(uint32_t code);            /* Cc, Cf, Co */

enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD };
/* Appends the text in this form. */
tutti_status unicode_normalise(enum unicode_form form, const char *text, size_t size, struct byte_list *to);
/* Appends the lower case of a character. */
void unicode_lower(uint32_t code, struct byte_list *to);
/* Bytes of the extended grapheme cluster at the beginning of the text. */
size_t unicode_grapheme(const char *text, size_t size);

#endif
