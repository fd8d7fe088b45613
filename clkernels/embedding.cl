/* The gradient of a table whose rows were read by index; launched by layers/embedding.c. ids [count], of the type that
 * indices.h says, table [rows][width], dy [count][width]. The gradient of a row that does not exist goes nowhere.
 * FROM_END 1: negative ids count from the end.
 *   dtable[r] = added[r] + sum of dy[p] over all p where ids[p] is r, in their order
 * added [rows][width] is read where ADD is 1, and is 0 else; it may be dtable, where gradients of a table are added up.
 *
 * ROWS 1, CPU class: one task for `columns` columns of every row of dtable whose number modulo `parts` is the task's, since low
 * numbers are often those of frequent words. It adds one p after the other; with ERRORS 1 as sum.h says, with `errors` as
 * dtable.
 * ROWS 0, any device: embedding_begin fills dtable with what is added, one work-item for each float; then
 * embedding_gradient has a group of GROUP work-items for each p: the first p of a row sums for all of them. No float is
 * added by two work-items, so that the order is fixed. */
#include "parameters.h"
#include "indices.h"
#include "arguments/embedding.h"
#include "sum.h"
#include "vector.h"

/* -1: there is no such row. */
INLINE int row_of(INDEX id, int rows)
{
    return FROM_END || id >= 0 ? number_in(id, rows) : -1;
}

#if ROWS

enum { RUN = 16 };

/* Most rows of a large table are 0 since the last step. Reading them costs half of writing them. */
INLINE void clear(global float *to, int length)
{
    int i = 0;
    for (; i < length / V * V; i += V)
        if (any(CONCATENATE(as_int, V)(VLOAD(0, to + i)) != 0)) VSTORE((VF)(0.0f), 0, to + i);
    for (; i < length; i++) to[i] = 0.0f;
}

/* The next row of the same task. */
INLINE int next_row(int row, int parts)
{
    return (row + 1) % RUN ? row + 1 : row + 1 + (parts - 1) * RUN;
}

TASK void embedding_gradient(TASKS_ARGUMENTS(PARAMETER))
{
    const int column = get_group_id(0) * columns, length = min(columns, width - column), whole = length / V * V;
    const int part = get_group_id(1);
    for (int row = part * RUN; row < rows && !(ADD && added == dtable); row = next_row(row, parts)) {
        const size_t at = (size_t)row * width + column;
        if (ADD)
            for (int i = 0; i < length; i++) dtable[at + i] = added[at + i];
        else
            clear(dtable + at, length);
    }
    for (int p = 0; ERRORS && p < count; p++) { /* of the rows that are read: there may be many more */
        const int id = row_of(ids[p], rows);
        if (id < 0 || (id / RUN & (parts - 1)) != part) continue;
        for (int i = 0; i < length; i++) errors[(size_t)id * width + column + i] = 0.0f;
    }
    for (int p = 0; p < count; p++) {
        const int id = row_of(ids[p], rows);
        if (id < 0 || (id / RUN & (parts - 1)) != part) continue;
        global const float *from = dy + (size_t)p * width + column;
        global float *to = dtable + (size_t)id * width + column;
#if ERRORS
        global float *lost = errors + (size_t)id * width + column;
        for (int i = 0; i < whole; i += V) {
            VF sum = VLOAD(0, to + i), error = VLOAD(0, lost + i);
            SUM_ADD(VF, sum, error, VLOAD(0, from + i));
            VSTORE(sum, 0, to + i);
            VSTORE(error, 0, lost + i);
        }
        for (int i = whole; i < length; i++) SUM_ADD(float, to[i], lost[i], from[i]);
#else
        for (int i = 0; i < whole; i += V) VSTORE(VLOAD(0, to + i) + VLOAD(0, from + i), 0, to + i);
        for (int i = whole; i < length; i++) to[i] += from[i];
#endif
    }
}

#else
#include "group.h"

kernel void embedding_begin(global float *dtable, global const float *added, long floats)
{
    const size_t i = get_global_id(0);
    if ((long)i < floats && !(ADD && added == dtable)) dtable[i] = ADD ? added[i] : 0.0f;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void embedding_gradient(
    global const INDEX *ids, global const float *dy, global float *dtable, int count, int rows, int width)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), p = get_group_id(0), id = row_of(ids[p], rows);
    float earlier = 0.0f;
    for (int i = item; i < p && earlier == 0.0f; i += GROUP) earlier = row_of(ids[i], rows) == id ? 1.0f : 0.0f;
    const bool first = group_max(earlier, scratch) == 0.0f && id >= 0;
    for (int i = item; first && i < width; i += GROUP) {
        float sum = 0.0f, error = 0.0f;
        for (int q = p; q < count; q++)
            if (row_of(ids[q], rows) == id) SUM_ADD(float, sum, error, dy[(size_t)q * width + i]);
        dtable[(size_t)id * width + i] += sum;
    }
}
#endif
