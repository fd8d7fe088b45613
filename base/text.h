/* A growing string. Errors are sticky: check `failed` once at the end. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* NUL-terminated once anything was appended */
    size_t size, capacity;
    bool failed;
};

void text_append(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);
/* The string, which the caller frees; NULL if an allocation failed. The text is empty afterwards. */
char *text_take(struct text *text);

/* The beginning of a string as one printable line, for messages: names from files may hold line ends and control
 * characters. */
struct printable {
    char text[96];
};
struct printable text_printable(const char *text);

/* Returns the choice that was probably meant: one that begins the text or is begun by it, or that a few letters
 * inserted, left out, changed or swapped make of it; upper and lower case are the same. NULL: none is so near.
 * `choices` ends with NULL. */
const char *text_nearest(const char *text, const char *const *choices);
/* "; did you mean NAME?", or "" if none is near: the middle of a message about an unknown name. */
struct suggestion {
    char text[128];
};
struct suggestion text_suggest(const char *text, const char *const *choices);

/* Returns the bytes of the first character; 0: there is none, or it is not UTF-8 (RFC 3629: no surrogates, shortest
 * form only). */
int text_character(const char *text);
bool text_ends_with(const char *text, const char *end);
/* Returns whether a file's name has something before this extension, in small or capital letters. */
bool text_has_extension(const char *name, const char *extension);
/* Returns whether a string is UTF-8, as names in files are. */
bool text_is_utf8(const char *text);

#endif
