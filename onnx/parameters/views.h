/* Initialisers with the elements of another one, in another order of axes: copies that exporters made. */
#ifndef ONNX_VIEWS_H
#define ONNX_VIEWS_H

#include "onnx/import.h"

/* Whether the initialiser has several elements, and all are equal. */
tutti_status value_is_uniform(const struct import *import, struct onnx_value *value, bool *uniform);

/* Makes `value` a view of `of` if it has the elements of `of` in some order of axes; *same: whether it has. A matrix
 * that matches in both orders is a transposed one if `transposed`. */
tutti_status view_find(
    const struct import *import, struct onnx_value *value, struct onnx_value *of, bool transposed, bool *same);

/* Sets the order of the axes of a view that is the transpose of a matrix. `rows`, `columns`: of the view; if one of
 * them is 1, transposing changes nothing (struct view leaves out axes of size 1). */
void view_transpose(struct view *view, int64_t rows, int64_t columns);

/* Initialisers with sums over their elements, which do not depend on the elements' order. */
struct twin {
    size_t count;
    uint64_t sum; /* of a hash of each element */
    struct onnx_value *value;
    char *name; /* the name that its parameter would have; NULL: not known */
};
struct twins {
    struct import *import;
    struct twin *list;
    size_t count;
};
tutti_status twins_new(struct import *import, struct twins *twins);
void twins_free(struct twins *twins);
/* Makes a nameless value a view of another initialiser with the same elements, unless they belong to two copies of a
 * layer. `name`: that of its parameter, or NULL. */
tutti_status twins_find(struct twins *twins, struct onnx_value *value, bool transposed, const char *name, bool *same);

#endif
