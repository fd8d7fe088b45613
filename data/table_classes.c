#include "data/column.h"

#include "base/memory.h"
#include "base/status.h"

#include "formats/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 10000 };

/* Returns the position of the name in the sorted list, or where it belongs. */
static size_t find(const struct table_classes *classes, const char *name, bool *found)
{
    size_t low = 0, high = classes->count;
    *found = false;
    while (low < high && !*found) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(name, classes->list[middle].name);
        *found = order == 0;
        if (order < 0)
            high = middle;
        else
            low = order == 0 ? middle : middle + 1;
    }
    return low;
}

const char *table_class_name(const char *text, char number[])
{
    const double exact = 9007199254740992; /* 2^53 */
    const char *digits = text + strspn(text, "+-");
    double value;
    if (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return text; /* 007 is a code */
    if (!csv_number(text, &value) || fabs(value) > exact || value != floor(value)) return text;
    snprintf(number, TABLE_NUMBER_NAME, "%" PRId64, (int64_t)value);
    return number;
}

int32_t table_class_find(const struct table_classes *classes, const char *name)
{
    bool found;
    const size_t at = find(classes, name, &found);
    return found ? classes->list[at].number : -1;
}

void table_classes_free(struct table_classes *classes)
{
    for (size_t i = 0; i < classes->count; i++) free(classes->list[i].name);
    free(classes->list);
    *classes = (struct table_classes) { 0 };
}

tutti_status table_class_of(struct table_classes *classes, const char *name, int32_t *number)
{
    bool found;
    size_t at = find(classes, name, &found);
    if (!found) {
        if (classes->count == MOST_CLASSES)
            return fail(
                TUTTI_FORMAT, "there are more than %d different texts: this is not a column of classes", MOST_CLASSES);
        void *list = classes->list;
        const tutti_status status = memory_grow(&list, &classes->capacity, classes->count + 1, sizeof *classes->list);
        classes->list = list;
        char *copy = status == TUTTI_OK ? memory_copy_text(name) : NULL;
        if (!copy) return TUTTI_NO_MEMORY;
        memmove(classes->list + at + 1, classes->list + at, (classes->count - at) * sizeof *classes->list);
        classes->list[at] = (struct table_class) { .name = copy, .number = (int32_t)classes->count++ };
    }
    *number = classes->list[at].number;
    return TUTTI_OK;
}

static int compare(const void *a, const void *b)
{
    const struct table_class *first = a, *second = b;
    double x = 0, y = 0;
    const bool is_number = csv_number(first->name, &x), other = csv_number(second->name, &y);
    if (is_number != other) return is_number ? -1 : 1;
    if (x != y) return x < y ? -1 : 1;
    return strcmp(first->name, second->name);
}

tutti_status table_rank_classes(struct table_classes *classes, int32_t *labels, size_t count)
{
    int32_t *rank = memory_new(classes->count, sizeof *rank);
    if (!rank) return TUTTI_NO_MEMORY;
    qsort(classes->list, classes->count, sizeof *classes->list, compare);
    for (size_t i = 0; i < classes->count; i++) rank[classes->list[i].number] = (int32_t)i;
    for (size_t i = 0; i < count; i++) labels[i] = rank[labels[i]];
    free(rank);
    return TUTTI_OK;
}
