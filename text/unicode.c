#include "text/unicode.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

static bool is_ascii_letter(uint32_t code)
{
    return (code | 32) >= 'a' && (code | 32) <= 'z';
}

bool unicode_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
        code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool unicode_is_numeric(uint32_t code)
{
    if (code < 0x80) return code >= '0' && code <= '9';
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool unicode_is_mark(uint32_t code)
{
    if (code < 0x300) return false;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool unicode_is_mark_without_width(uint32_t code)
{
    return code >= 0x300 && utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_MN;
}

/* Other_Alphabetic that are neither letters, marks nor Nl: circled and squared Latin letters. */
static bool is_other_alphabetic(uint32_t code)
{
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
        (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

bool unicode_is_word(uint32_t code)
{
    if (code < 0x80) return is_ascii_letter(code) || (code >= '0' && code <= '9') || code == '_';
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
        code == 0x200C || code == 0x200D || is_other_alphabetic(code);
}

bool unicode_is_punctuation(uint32_t code)
{
    if (code < 0x80) return code > ' ' && code < 0x7F && !is_ascii_letter(code) && !(code >= '0' && code <= '9');
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool unicode_is_control(uint32_t code)
{
    if (code < 0x80) return code < ' ' || code == 0x7F;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

/* Whether all characters are below one that has no other form, and none below it has. */
static bool is_unchanged(enum unicode_form form, const char *text, size_t size)
{
    const unsigned char least = form == UNICODE_NFC ? 0xCC : 0x80; /* NFC: U+0300 is 0xCC 0x80 */
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= least) return false;
    return true;
}

tutti_status unicode_normalise(enum unicode_form form, const char *text, size_t size, struct byte_list *to)
{
    if (is_unchanged(form, text, size)) {
        byte_list_append(to, text, size);
        return TUTTI_OK;
    }
    static const int options[] = { UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT };
    utf8proc_uint8_t *result = NULL;
    const utf8proc_ssize_t bytes = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &result,
        (utf8proc_option_t)(options[form] | UTF8PROC_STABLE));
    if (bytes >= 0) byte_list_append(to, result, (size_t)bytes);
    free(result);
    if (bytes >= 0) return TUTTI_OK;
    return fail(TUTTI_NO_MEMORY, "cannot normalise a text: %s", utf8proc_errmsg(bytes));
}

void unicode_lower(uint32_t code, struct byte_list *to)
{
    char bytes[4];
    if (code == 0x130) { /* the one whose lower case is two characters: i with a dot above */
        byte_list_append(to, "i\xCC\x87", 3);
        return;
    }
    const uint32_t lower =
        code < 0x80 ? (is_ascii_letter(code) ? code | 32 : code) : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
    byte_list_append(to, bytes, utf8_write(lower, bytes));
}

size_t unicode_grapheme(const char *text, size_t size)
{
    size_t at = 0;
    utf8proc_int32_t state = 0, before = (utf8proc_int32_t)utf8_next(text, &at);
    while (at < size) {
        size_t next = at;
        const utf8proc_int32_t code = (utf8proc_int32_t)utf8_next(text, &next);
        if (utf8proc_grapheme_break_stateful(before, code, &state)) break;
        before = code;
        at = next;
    }
    return at;
}
