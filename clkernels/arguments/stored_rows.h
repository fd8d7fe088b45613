/* Arguments of stored_rows.cl. */
#define STORED_ROWS_ARGUMENTS(X)                                                                                   \
    X##_FIRST(global const stored_t *, from) X##_BUFFER(global const int *, ids) X##_BUFFER(global float *, y)     \
        X##_LONG(elements) X##_LONG(chunk) X##_INT(rows) X##_INT(length) X##_INT(ld)
