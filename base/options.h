/* Reading option structs and writing result structs, whose first member is `size_t size`: programs built with an older
 * or a newer header than the library pass structs of another size. A new member stands after the padding at the
 * struct's end, so that its size grows: what is in the padding is not defined. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/status.h"

/* Copies the struct at `from` into `to`, which has `known` bytes; members that `from` lacks become zero. NULL: all are
 * zero, but for the size. A size of 0 stands for `first` bytes, those of version 0.2.0. `type` is its name for
 * messages. Errors: TUTTI_INVALID if the size is impossible, or if it is larger than `known` and a byte beyond that is
 * not zero: the program asks for something that this library does not have. */
tutti_status options_read(void *to, size_t known, size_t first, const void *from, const char *type);
/* Reads a struct that has not grown since version 0.2.0. */
#define OPTIONS_READ(to, from, type) options_read((to), sizeof(type), sizeof(type), (from), #type)

/* Copies the struct at `from`, which has `known` bytes, into the caller's struct at `to`, but for the size, which the
 * caller has set. Members that are beyond the size or that the library does not know keep their values. 0 and `type` as
 * above. Errors: TUTTI_INVALID if the size is impossible. */
tutti_status result_write(void *to, size_t known, size_t first, const void *from, const char *type);
#define RESULT_WRITE(to, from, type) result_write((to), sizeof(type), sizeof(type), (from), #type)

#endif
