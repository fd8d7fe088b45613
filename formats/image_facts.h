/* What a picture file is, from its first bytes: for people, who ask what lies in a folder. */
#ifndef FORMATS_IMAGE_FACTS_H
#define FORMATS_IMAGE_FACTS_H

#include <stddef.h>

struct image_facts {
    const char *format;  /* "JPEG" */
    const char *colours; /* "colour", "grey", "colour with alpha" ...; NULL: not known */
};
/* Reads no further than the header. Unknown files are of the format "other". */
struct image_facts image_facts(const unsigned char *bytes, size_t count);

#endif
