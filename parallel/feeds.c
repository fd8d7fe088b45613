#include "parallel/feeds.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "graph/operation.h"
#include "layers/loss/loss.h"
#include "plan/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------- what is needed ---- */

/* Marks the feeds on which some of these values depend. */
static tutti_status mark_needed(
    struct feed_list *list, const tutti_network *network, const int *inputs, const int *values, int count, bool trains)
{
    bool *reached = graph_reaches(&network->graph, values, count);
    if (!reached) return TUTTI_NO_MEMORY;
    for (int i = 0; i < list->arrays.count; i++) {
        if (!reached[inputs[i]]) continue;
        if (trains) list->feeds[i].trains = true;
        if (!trains) list->feeds[i].infers = true;
    }
    free(reached);
    return TUTTI_OK;
}

static void note_classes(struct feed *feed, const struct node *loss, const struct value *predictions)
{
    const int64_t classes = predictions->shape.sizes[loss_class_axis(loss, predictions)];
    if (feed->classes == 0 || classes < feed->classes) feed->classes = classes;
    feed->ignores = loss_attributes(loss)->ignores;
    feed->ignored = loss_attributes(loss)->ignored;
    feed->lists = loss->operation->takes_lists;
    feed->blank = loss_attributes(loss)->blank;
}

/* Returns the share of excluded labels, where they are a constant. */
static double constant_excluded(const struct loss_attributes *loss)
{
    return loss->labels ? (double)loss->excluded / (double)loss->labels : 0;
}

/* Finds the targets that a loss reads as class numbers. */
static void find_classes(
    struct feed_list *list, const struct graph *graph, const int *inputs, const struct objective *objective)
{
    bool counted = false;
    for (int l = 0; l < objective->loss_count; l++) {
        const struct node *node = &graph->nodes[graph_at(graph, objective->losses[l])->producer];
        for (int i = 0; i < list->arrays.count && node->operation->takes_classes; i++) {
            if (inputs[i] != node->inputs[1]) continue;
            note_classes(&list->feeds[i], node, graph_at(graph, node->inputs[0]));
            if (!node->operation->takes_lists) list->compared[l] = i;
        }
        list->excluded[l] = node->operation->takes_classes ? constant_excluded(loss_attributes(node)) : 0;
        if (!counted && node->operation->counts_correct) {
            list->accuracy = list->compared[l];
            list->accuracy_excluded = list->excluded[l];
        }
        counted |= node->operation->counts_correct;
    }
}

static tutti_status add(struct feed_list *list, const char *name, const struct value *value)
{
    struct feed *feed = &list->feeds[list->arrays.count];
    feed->name = memory_copy_text(name);
    feed->type = value->type;
    feed->shape = value->shape;
    arrays_add(&list->arrays, value);
    return feed->name ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status add_targets(struct feed_list *list, const struct graph *graph, const struct objective *objective)
{
    const struct value *predictions = graph_at(graph, objective->outputs[0]);
    const struct value targets = loss_targets(objective->loss, predictions);
    for (int i = 0; i < list->arrays.count; i++)
        if (!strcmp(list->feeds[i].name, "targets"))
            return fail(TUTTI_INVALID,
                "the network has an input \"targets\", as those of tutti_training.loss are called: rename it, or use "
                "tutti_training.losses");
    const tutti_status status = add(list, "targets", &targets);
    struct feed *feed = &list->feeds[list->arrays.count - 1];
    feed->trains = true;
    if (objective->loss->takes_classes) list->accuracy = list->arrays.count - 1;
    if (objective->loss->takes_classes) feed->classes = predictions->shape.sizes[predictions->shape.rank - 1];
    if (feed->classes == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE, "the number of classes is TUTTI_SEQUENCE, the length of sequences: it must be known");
    return status;
}

static tutti_status read_longest(struct feed_list *list, const struct graph *graph, int64_t longest)
{
    if (!graph_has_sequences(graph)) return TUTTI_OK;
    if (longest < 1 || longest > INT32_MAX)
        return fail(TUTTI_INVALID,
            "tutti_training.sequence is %" PRId64
            ", but the network has inputs with TUTTI_SEQUENCE in their shapes: set it to the length of the longest "
            "sequence",
            longest);
    list->longest = longest;
    return TUTTI_OK;
}

tutti_status feeds_init(
    struct feed_list *list, const tutti_network *network, const struct objective *objective, int64_t longest)
{
    tutti_status status = TUTTI_OK;
    const struct graph *graph = &network->graph;
    int inputs[PLAN_MAX_FEEDS], count;
    memset(list, 0, sizeof(*list));
    list->accuracy = -1;
    for (int i = 0; i < PLAN_MAX_LOSSES; i++) list->compared[i] = -1;
    TRY(read_longest(list, graph, longest));
    TRY(plan_find_inputs(graph, inputs, &count));
    for (int i = 0; i < count; i++) TRY(add(list, graph_at(graph, inputs[i])->name, graph_at(graph, inputs[i])));
    TRY(mark_needed(list, network, inputs, objective->outputs, objective->output_count, false));
    TRY(mark_needed(list, network, inputs, objective->losses, objective->loss_count, true));
    if (objective->loss || objective->keeps_outputs)
        TRY(mark_needed(
            list, network, inputs, objective->outputs, objective->keeps_outputs ? objective->output_count : 1, true));
    find_classes(list, graph, inputs, objective);
    if (objective->loss) TRY(add_targets(list, graph, objective));
done:
    return status;
}

void feeds_free(struct feed_list *list)
{
    for (int i = 0; i < PLAN_MAX_FEEDS; i++) {
        free(list->feeds[i].name);
        free(list->narrowed[i]);
    }
}

/* ------------------------------------------------------------------------------------------------- reading ---- */

static tutti_status find(const struct feed_list *list, const tutti_feed *feed, int position, int *number)
{
    *number = position;
    if (!feed->name && position < list->arrays.count) return TUTTI_OK;
    for (*number = 0; feed->name && *number < list->arrays.count; ++*number)
        if (!strcmp(list->feeds[*number].name, feed->name)) return TUTTI_OK;
    if (!feed->name)
        return fail(TUTTI_INVALID,
            "feed %d has no name, so it is for the input at its position, but the network has only %d inputs, the "
            "first "
            "of them \"%s\"",
            position, list->arrays.count, list->feeds[0].name);
    return fail(TUTTI_INVALID, "feed %d is for input \"%s\", but the network has %d inputs, the first of them \"%s\"",
        position, feed->name, list->arrays.count, list->feeds[0].name);
}

tutti_status feeds_length(const struct feed_list *list, int64_t *length)
{
    if (*length != 0 && list->longest == 0)
        return fail(TUTTI_INVALID,
            "the length of sequences is %" PRId64 ", but no input has TUTTI_SEQUENCE in its shape", *length);
    if (*length < 0 || *length > list->longest)
        return fail(TUTTI_INVALID,
            "the length of sequences is %" PRId64 ": it must be from 1 to tutti_training.sequence, %" PRId64, *length,
            list->longest);
    if (*length == 0) *length = list->longest;
    return TUTTI_OK;
}

/* Reads the length of sequences, which must be equal in all feeds that give one. */
static tutti_status read_length(const struct feed_list *list, const tutti_feed *feeds, int count, int64_t *length)
{
    *length = 0;
    for (int i = 0; i < count; i++) {
        if (feeds[i].length == 0) continue;
        if (*length && feeds[i].length != *length)
            return fail(TUTTI_INVALID,
                "feed %d has sequences of length %" PRId64 ", but one before it of length %" PRId64
                ": all feeds of a call have the same",
                i, feeds[i].length, *length);
        *length = feeds[i].length;
    }
    return feeds_length(list, length);
}

/* Returns the number of elements of a sample. */
static int64_t elements_of(const struct feed_list *list, int number, int64_t length)
{
    return (int64_t)(arrays_sample_bytes(&list->arrays, number, length) / value_type_bytes(list->feeds[number].type));
}

/* Makes room for `samples` samples as int32. */
static tutti_status make_room(struct feed_list *list, int number, int64_t samples, int64_t elements)
{
    size_t needed;
    if (!size_multiply((size_t)samples, (size_t)elements, &needed))
        return fail(
            TUTTI_NO_MEMORY, "%" PRId64 " samples of \"%s\" do not fit into memory", samples, list->feeds[number].name);
    void *array = list->narrowed[number];
    const tutti_status status = memory_grow(&array, &list->room[number], needed, sizeof(int32_t));
    list->narrowed[number] = array;
    return status;
}

static tutti_status narrow(
    struct feed_list *list, int number, const int64_t *from, int64_t samples, struct arrays *arrays)
{
    const struct feed *feed = &list->feeds[number];
    const int64_t elements = elements_of(list, number, arrays->length);
    const tutti_status status = make_room(list, number, samples, elements);
    if (status != TUTTI_OK) return status;
    int32_t *to = list->narrowed[number];
    for (int64_t i = 0; i < samples * elements; i++) {
        if (from[i] < INT32_MIN || from[i] > INT32_MAX)
            return fail(TUTTI_INVALID, "sample %" PRId64 " of \"%s\" has the number %" PRId64 ": devices take int32",
                i / elements, feed->name, from[i]);
        to[i] = (int32_t)from[i];
    }
    arrays->at[number] = to;
    return TUTTI_OK;
}

static bool is_needed(const struct feed *feed, bool trains)
{
    return trains ? feed->trains : feed->infers;
}

static tutti_status take(struct feed_list *list, const tutti_feed *given, int position, bool trains, int64_t samples,
    struct arrays *arrays, bool *borrowed)
{
    tutti_status status = TUTTI_OK;
    int number;
    TRY(find(list, given, position, &number));
    const struct feed *feed = &list->feeds[number];
    const tutti_dtype wanted = input_dtype(feed->type);
    const bool wide = given->dtype == TUTTI_DTYPE_I64 && wanted == TUTTI_DTYPE_I32;
    if (feed->carried)
        FAIL(TUTTI_INVALID, "input \"%s\" is in tutti_training.carries: tutti_set_carried() sets it, and no feed does",
            feed->name);
    if (!given->data) FAIL(TUTTI_INVALID, "the data of feed \"%s\" are NULL", feed->name);
    if (arrays->at[number]) FAIL(TUTTI_INVALID, "input \"%s\" is fed twice", feed->name);
    if (given->dtype != wanted && !wide)
        FAIL(TUTTI_INVALID, "feed \"%s\" has type %s, but the input has type %s", feed->name, dtype_name(given->dtype),
            dtype_name(wanted));
    arrays->at[number] = (void *)(uintptr_t)given->data;
    if (!wide || !is_needed(feed, trains)) goto done;
    *borrowed = false;
    TRY(narrow(list, number, given->data, samples, arrays));
done:
    return status;
}

tutti_status feeds_read(struct feed_list *list, const tutti_feed *feeds, int count, bool trains, int64_t samples,
    struct arrays *arrays, bool *borrowed)
{
    tutti_status status = TUTTI_OK;
    *arrays = (struct arrays) { 0 };
    *borrowed = true;
    int first = 0; /* that is not carried */
    while (first < list->arrays.count && list->feeds[first].carried) first++;
    if (count < 0 || (count > 0 && !feeds) || (first < list->arrays.count && count < 1))
        FAIL(TUTTI_INVALID, "no array is fed: pass one for each input, the first of them \"%s\"",
            list->feeds[first < list->arrays.count ? first : 0].name);
    TRY(read_length(list, feeds, count, &arrays->length));
    for (int i = 0; i < count; i++) TRY(take(list, &feeds[i], i, trains, samples, arrays, borrowed));
    for (int i = 0; i < list->arrays.count; i++) {
        const bool needed = is_needed(&list->feeds[i], trains);
        if (needed && !arrays->at[i] && !list->feeds[i].carried)
            FAIL(TUTTI_INVALID, "input \"%s\" is not fed: %s needs it", list->feeds[i].name,
                trains ? "training" : "inference");
        if (!needed) arrays->at[i] = NULL;
    }
done:
    return status;
}

void feeds_take_copies(struct feed_list *list, int32_t **copies)
{
    memcpy(copies, list->narrowed, sizeof(list->narrowed));
    memset(list->narrowed, 0, sizeof(list->narrowed));
    memset(list->room, 0, sizeof(list->room));
}

/* Checks lists of labels, which end at the first one below 0. */
static tutti_status check_lists(const struct feed *feed, const int32_t *labels, int64_t samples, int64_t elements)
{
    for (int64_t n = 0; n < samples; n++)
        for (int64_t j = 0; j < elements && labels[n * elements + j] >= 0; j++)
            if (labels[n * elements + j] >= feed->classes || labels[n * elements + j] == feed->blank)
                return fail(TUTTI_INVALID,
                    "label %" PRId64 " of sample %" PRId64 " of the batch is class %d: the network has %" PRId64
                    " classes, counted from 0, and %d is the blank, which no target has: a list of labels ends with -1",
                    j, n, labels[n * elements + j], feed->classes, feed->blank);
    return TUTTI_OK;
}

tutti_status feeds_check_and_count(
    const struct feed_list *list, const struct arrays *arrays, int64_t samples, struct metric_sums *sums)
{
    sums->excluded += list->accuracy_excluded * (double)samples;
    for (int l = 0; l < PLAN_MAX_LOSSES; l++) sums->each_excluded[l] += list->excluded[l] * (double)samples;
    for (int i = 0; i < list->arrays.count; i++) {
        const struct feed *feed = &list->feeds[i];
        const int32_t *labels = arrays->at[i];
        const int64_t elements = elements_of(list, i, arrays->length), count = samples * elements;
        const int32_t ignored = feed->ignores ? feed->ignored : -1; /* negative labels are always ignored */
        int64_t excluded = 0;
        if (feed->classes == 0 || !labels) continue;
        if (feed->lists) {
            const tutti_status status = check_lists(feed, labels, samples, elements);
            if (status != TUTTI_OK) return status;
            continue;
        }
        for (int64_t j = 0; j < count; j++) excluded += labels[j] < 0 || labels[j] == ignored;
        const double excluded_samples = (double)excluded / (double)elements;
        if (list->accuracy == i) sums->excluded += excluded_samples;
        for (int l = 0; l < PLAN_MAX_LOSSES; l++)
            if (list->compared[l] == i) sums->each_excluded[l] += excluded_samples;
        for (int64_t j = 0; j < count; j++)
            if (labels[j] >= feed->classes && labels[j] != ignored)
                return fail(TUTTI_INVALID,
                    "the target of sample %lld of the batch is class %d, but the network has %lld classes, counted "
                    "from 0",
                    (long long)(j / elements), labels[j], (long long)feed->classes);
    }
    return TUTTI_OK;
}

int feeds_buffers(const struct feed_list *list, const struct arrays *arrays, tutti_buffer *buffers)
{
    int count = 0;
    for (int i = 0; i < list->arrays.count; i++)
        if (list->feeds[i].trains)
            buffers[count++] = (tutti_buffer) { .name = list->feeds[i].name,
                .dtype = input_dtype(list->feeds[i].type),
                .data = arrays->at[i],
                .bytes = arrays_sample_bytes(&list->arrays, i, arrays->length),
                .length = arrays->length };
    return count;
}
