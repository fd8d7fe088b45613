/* Shared by the tests of pictures: an .npz file with files of pictures ("file/NAME") and what is in them ("rgb/NAME",
 * "grey/NAME", "mask/NAME"), which make_*.py wrote. */
#ifndef TESTS_PICTURES_H
#define TESTS_PICTURES_H

#include "formats/image.h"
#include "formats/npz.h"

/* The one that the test decodes last; pictures_close() frees it. */
extern struct image image;

void pictures_open(const char *file);
void pictures_close(void);
/* NULL: there is none. */
const struct npz_array *picture_find(const char *kind, const char *name);

typedef bool picture_filter(const char *name, const struct npz_array *file);
typedef void picture_work(const char *name, const struct npz_array *file);
/* Calls `work` for each file but those that cannot be read here. Fails the test if there are fewer than `least`. */
void pictures_each(int least, picture_filter *is_unsupported, picture_work *work);

void expect_close(
    const char *name, const unsigned char *found, const unsigned char *wanted, size_t count, int most_error);
/* Changes one to three bytes at random, half of them among the first. */
void change_bytes(unsigned char *bytes, size_t count);

#endif
