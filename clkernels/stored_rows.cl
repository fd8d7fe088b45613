/* y [..][length] = rows of a matrix [rows][length] that is stored in fewer bits (stored.h), as floats: INDEXED 0: all of
 * them; 1: those of `ids`, zeros for one that does not exist. FROM_END 1: negative ids count from the end. ld: elements
 * between rows as stored. Launched by layers/stored.c: a work-item or task has `chunk` elements of y. */
#include "stored.h"
#include "parameters.h"
#include "arguments/stored_rows.h"

kernel void stored_rows(STORED_ROWS_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, elements);
    for (long e = begin; e < end;) {
        const long line = e / length;
        const int first = (int)(e - line * length), count = (int)min((long)(length - first), end - e);
#if INDEXED
        const int id = FROM_END && ids[line] < 0 ? ids[line] + rows : ids[line];
#else
        const int id = (int)line;
#endif
        const bool exists = id >= 0 && id < rows;
        global const stored_t *row = from + (size_t)(exists ? id : 0) * ld;
        for (int i = 0; i < count; i++) y[e + i] = exists ? STORED_AT(row, first + i, length) : 0.0f;
        e += count;
    }
}
