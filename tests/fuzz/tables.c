/* Tables and the data made of them. The first byte says whether there are classes, whether damaged rows are left out,
 * and whether there is noise; the others are the file. */
#include "base/status.h"
#include "data/collection.h"
#include "tests/fuzz/target.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char path[512];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_link("input.csv", path, sizeof path);
    return 0;
}

/* Whatever a table holds can be told. */
static void inspect(const struct collection *table)
{
    json_t *facts = json_object();
    if (!facts || table->inspect(table, 0, facts) != 0) abort();
    json_decref(facts);
}

static void read_rows(struct collection *table)
{
    signed char *part = calloc((size_t)table->samples, 1);
    float target;
    char name[64];
    const struct draw draw = { .training = true };
    if (!part) abort();
    if (table->fit(table, part) != TUTTI_OK) {
        check_message(); /* too many inputs */
        free(part);
        return;
    }
    const size_t inputs = (size_t)table->info.shape.sizes[0];
    float *row = malloc(inputs * sizeof *row);
    if (!row) abort();
    for (int64_t i = 0; i < table->samples; i++) {
        if (table->read(table, i, &draw, row, &target) != TUTTI_OK) abort();
        for (size_t k = 0; k < inputs; k++)
            if (!isfinite(row[k])) abort();
        if (table->info.classes && (table->labels[i] < 0 || table->labels[i] >= table->info.classes)) abort();
        table->name(table, i, name, sizeof name);
    }
    for (int i = 0; i < table->info.classes; i++)
        if (!table->info.class_names[i]) abort();
    inspect(table);
    free(part);
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const tutti_data_options options = { .skip_damaged = data[0] & 1,
        .fill_missing = data[0] & 16,
        .row_names = data[0] & 32 ? "2" : NULL,
        .augment = data[0] & 8 ? "noise=0.5" : NULL,
        .target = data[0] & 2 ? "1:class"
            : data[0] & 4     ? "a"
                              : NULL };
    struct collection *table = NULL;
    (void)input_path(data + 1, size - 1);
    if (table_open(path, &options, &table) != TUTTI_OK) {
        check_message();
        return 0;
    }
    if (!table) abort();
    read_rows(table);
    table->free(table);
    return 0;
}
