/* Arguments of kernels that go along an axis of a tensor [..][length][inner], after others: argmax.cl, topk.cl and
 * scan.cl. A line is the elements along the axis. A work-item or task has `each` of all lines. */
#define LINES_ARGUMENTS(X) X##_LONG(lines) X##_INT(each) X##_INT(length) X##_INT(inner)
