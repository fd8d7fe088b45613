/* embedding n rows c [length tied from_end]: rows of c numbers by the numbers of a sample [length], of which some are
 * of no row. tied      the table is the weight of the output layer, too: its gradient is the sum of both from_end
 * negative numbers count from the end of the table */
#include "tests/layers/cases.h"
#include "tutti_sequences.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t length = case_get(c, "length", 0), rows = case_get(c, "rows", 1);
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I64, &length, length > 0);
    const bool from_end = case_get(c, "from_end", 0);
    tutti_tensor table = { -1 }, y;
    if (from_end) {
        table = tutti_parameter(network, "embedding.weight", TUTTI_SHAPE(rows, case_get(c, "c", 1)), NULL);
        y = tutti_op(network, "embedding", (tutti_tensor[]) { ids, table }, 2, "from_end=1");
    } else {
        y = tutti_embedding(network, "embedding", ids, rows, case_get(c, "c", 1));
        table = tutti_find_parameter(network, "embedding.weight");
    }
    if (!case_get(c, "tied", 0)) return y;
    if (length) return tutti_matmul(network, "output", y, table, false, true);
    const tutti_tensor operands[] = { y, table };
    return tutti_op(network, "dense", operands, 2, "name=output");
}

/* Numbers of all rows, with from_end half of them counted from the end; once in a while of none, and far from any. */
static void fill(const struct test_case *c, float *input, int64_t count)
{
    const int64_t rows = case_get(c, "rows", 1), from_end = case_get(c, "from_end", 0) * rows;
    for (int64_t i = 0; i < count; i++) {
        input[i] = (float)((i * i + 3 * i) % rows - i / 2 % 2 * from_end);
        if (i % 7 == 3) input[i] = (float)(i % 2 ? rows : -1 - from_end);
        if (i % 29 == 13) input[i] = i % 2 ? 0x1p30f : -0x1p31f;
    }
}

static int64_t length(const struct test_case *c)
{
    return case_get(c, "n", 1) * case_get(c, "length", 1) + case_get(c, "rows", 1);
}

static const char *const cases[] = {
    "embedding n3 rows2 c5",
    "embedding n1 rows4 c16 length2",
    "embedding n2 rows7 c35 length9",
    "embedding n5 rows3 c130 length17",
    "embedding n2 rows20 c33 length3",
    "embedding n3 rows70 c1 length64",
    "embedding n3 rows5 c7 length6 tied1",
    "embedding n9 rows6 c20 tied1",
    /* with rounding errors: fewer rows than numbers, and more */
    "embedding n1025 rows3 c21",
    "embedding n1025 rows1500 c5 tied1",
    /* around the rows and the columns of a task */
    "embedding n3 rows16 c64 length11",
    "embedding n3 rows33 c65 length40",
    "embedding n2 rows150 c129 length400",
    "embedding n2 rows3 c5 length6 from_end1",
    "embedding n3 rows7 c35 length9 from_end1 tied1",
    "embedding n1025 rows3 c21 from_end1",
    NULL,
};

/* The forward result in double. */
static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t rows = case_get(c, "rows", 1), width = case_get(c, "c", 1), length = case_get(c, "length", 1);
    const int64_t count = case_get(c, "n", 1) * length;
    const bool tied = case_get(c, "tied", 0);
    for (int64_t p = 0; p < count; p++) {
        const double given = inputs[0][p], row = case_get(c, "from_end", 0) && given < 0 ? (double)rows + given : given;
        const double *of_row = row >= 0 && row < (double)rows ? parameters[0] + (int64_t)row * width : NULL;
        for (int64_t i = 0; i < (tied ? rows : width); i++) {
            double sum = !tied && of_row ? of_row[i] : 0;
            for (int64_t k = 0; tied && of_row && k < width; k++) sum += of_row[k] * parameters[0][i * width + k];
            y[p * (tied ? rows : width) + i] = sum;
        }
    }
}

static const struct operation_test test_embedding = {
    .name = "embedding",
    .build = build,
    .cases = cases,
    .fill = fill,
    .length = length,
    .reference = reference,
};

OPERATION_TESTS(test_embedding, &test_embedding)
