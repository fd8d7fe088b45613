/* What tutti_data_json() said of the data that a network was trained on: by it, other data are prepared for the
 * network. */
#ifndef DATA_DESCRIPTION_H
#define DATA_DESCRIPTION_H

#include "data/collection.h"

struct description {
    struct json_t *object; /* NULL: there is none, and all else is empty */
    const char *kind;      /* NULL: it does not say */
    tutti_shape shape;
    const char **classes;
    int class_count;
    char *normalise, *normalise_targets; /* as in the options */
};

/* Reads a text; NULL: none. Close it also after a failure. Errors: TUTTI_FORMAT if it is damaged. */
tutti_status description_open(struct description *description, const char *text);
void description_close(struct description *description);
/* Fills in options that the caller has not given. They are valid until description_close(). */
tutti_status description_apply(const struct description *description, tutti_data_options *options);
/* Checks that the network can take the collection, and changes its classes, which are found by name, to those of the
 * description. Errors: TUTTI_MISMATCH says each difference. */
tutti_status description_match(
    const struct description *description, const tutti_data_options *options, struct collection *collection);
/* Checks by what the collection's channels are normalised, once that is known. */
tutti_status description_check_normalised(const struct description *description, const struct collection *collection);

#endif
