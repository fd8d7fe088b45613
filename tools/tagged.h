/* Prints the words of a sample with their likeliest tags. */
#ifndef TOOLS_TAGGED_H
#define TOOLS_TAGGED_H

#include "tools/data.h"

struct tagged {
    const struct data *data;
    tutti_data_part part;
    const char *const *names; /* of the classes; NULL: they have numbers */
    int64_t classes;
};
/* outputs: [tokens][classes] of the sample. Lines of a word, a tab and its tag, with an empty line after the last; or a
 * JSON object with the lists "tokens" and "tags". A word without a token has the tag _, in JSON null. */
tutti_status tagged_print(
    const struct tagged *tagged, int64_t index, int64_t number, const char *title, const float *outputs, bool json);

#endif
