/* Arguments of gather.cl and scatter.cl: first, where the indices of elements lie, and along which axes they
 * select (indices.h). numbers: coordinates in each index. */
#define INDICES_ARGUMENTS(X)                                                                                   \
    X##_INT(rows) X##_INT(count) X##_INT(inner) X##_INT(axis) X##_LONG(index_sample) X##_LONG(index_row)       \
        X##_INT(index_next) X##_INT(index_inner) X##_INT(numbers) X##_INT(size0) X##_INT(size1) X##_INT(size2) \
            X##_INT(size3) X##_INT(size4) X##_INT(size5)
#define GATHER_ARGUMENTS(X)                                                                                       \
    X##_FIRST(global const float *, data) X##_BUFFER(global const INDEX *, indices) X##_BUFFER(global float *, y) \
        X##_LONG(data_sample) X##_LONG(slices) X##_INT(each) X##_INT(piece)
#define SCATTER_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const INDEX *, indices) X##_BUFFER(global const float *, updates) X##_BUFFER(global float *, y) \
        X##_BUFFER(global float *, errors) X##_BUFFER(global float *, dupdates) X##_INT(samples)                     \
            X##_LONG(update_sample) X##_INT(columns) X##_LONG(outer) X##_INT(each)
