/* Einstein's summation: the inputs are joined one after another by one product of matrices each. Transposes bring the
 * axes of a pair into the order [of both and kept, of one alone, of both and summed]. */
#include "layers/decompose.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Letters, then the axes of an ellipsis, counted from the last one. */
enum { LETTERS = 52, LABELS = LETTERS + TUTTI_MAX_RANK };

/* An input or a result, and the label of each axis of a sample. */
struct term {
    int value, count, labels[TUTTI_MAX_RANK];
};

struct summation {
    const struct append_context *c;
    const char *equation;
    struct term terms[8], output;
    int count, ellipsis; /* axes of the longest ellipsis */
};

static int wrong(const struct summation *s, const char *what)
{
    return append_fail(s->c, fail(TUTTI_INVALID, "einsum: '%s' %s", s->equation, what));
}

static int label_of(char letter)
{
    return letter >= 'a' && letter <= 'z' ? letter - 'a' : letter - 'A' + 26;
}

static bool has_label(const struct term *term, int label)
{
    for (int i = 0; i < term->count; i++)
        if (term->labels[i] == label) return true;
    return false;
}

/* ----------------------------------------------------------------------------------------------------- reading ---- */

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " ");
}

/* Reads letters and one ellipsis of `hidden` axes up to another character. NULL: the text is invalid. */
static const char *read_labels(const char *at, int hidden, struct term *term)
{
    bool seen = false;
    for (at = skip_spaces(at); isalpha((unsigned char)*at) || *at == '.'; at = skip_spaces(at)) {
        const bool dots = !strncmp(at, "...", 3);
        if ((*at == '.' && (!dots || seen)) || term->count + (dots ? hidden : 1) > TUTTI_MAX_RANK) return NULL;
        for (int i = hidden - 1; dots && i >= 0; i--) term->labels[term->count++] = LETTERS + i;
        if (!dots) term->labels[term->count++] = label_of(*at);
        seen |= dots;
        at += dots ? 3 : 1;
    }
    return at;
}

/* The axes that an ellipsis stands for, in the text of an input. */
static int hidden_axes(const char *at, int rank)
{
    int letters = 0;
    for (; *at && *at != ',' && *at != '-'; at++) letters += isalpha((unsigned char)*at) != 0;
    return rank > letters ? rank - letters : 0;
}

/* Sets the default output: the ellipsis, then the letters that occur exactly once in all inputs, in their order. */
static int default_output(struct summation *s)
{
    for (int i = s->ellipsis - 1; i >= 0; i--) s->output.labels[s->output.count++] = LETTERS + i;
    for (int label = 0; label < LETTERS; label++) {
        int times = 0;
        const int order = label < 26 ? label + 26 : label - 26; /* capitals first */
        for (int i = 0; i < s->count; i++)
            for (int k = 0; k < s->terms[i].count; k++) times += s->terms[i].labels[k] == order;
        if (times != 1) continue;
        if (s->output.count == TUTTI_MAX_RANK) return wrong(s, "gives a result with too many axes");
        s->output.labels[s->output.count++] = order;
    }
    return 0;
}

static int read_output(struct summation *s, const char *at)
{
    if (*at == '\0') return default_output(s);
    if (strncmp(at, "->", 2)) return wrong(s, "has another number of inputs");
    at = read_labels(at + 2, s->ellipsis, &s->output);
    if (!at || *at) return wrong(s, "has an output that cannot be read");
    for (int i = 0; i < s->output.count; i++) {
        bool found = false;
        for (int k = 0; k < s->count; k++) found |= has_label(&s->terms[k], s->output.labels[i]);
        for (int k = 0; k < i; k++) found &= s->output.labels[k] != s->output.labels[i];
        if (!found) return wrong(s, "has an axis in the output that is in no input, or twice");
    }
    return 0;
}

/* NO_VALUE after a failure. */
static int read_equation(struct summation *s, const int *inputs)
{
    const char *at = s->equation;
    for (int i = 0; i < s->count; i++) {
        const struct value *x = graph_at(s->c->graph, inputs[i]);
        const int rank = x->shape.rank - x->batched;
        struct term *term = &s->terms[i];
        const int hidden = hidden_axes(at, rank);
        term->value = inputs[i];
        at = read_labels(at, hidden, term);
        if (!at || (*at != ',' && *at != '-' && *at)) return wrong(s, "cannot be read: it is as 'bij,bjk->bik'");
        if (term->count != rank) {
            /* one number can be [1] */
            if (term->count || rank != 1 || value_size(x, 0) != 1) return wrong(s, "does not fit an input's axes");
            if (x->batched) term->value = append_reshape(s->c, inputs[i], TUTTI_SHAPE(x->shape.sizes[0]));
        }
        for (int k = 0; k < term->count; k++)
            if (term->labels[k] >= LETTERS && term->labels[k] - LETTERS >= s->ellipsis)
                s->ellipsis = term->labels[k] - LETTERS + 1;
        if (i + 1 == s->count) return read_output(s, at);
        if (*at != ',') return wrong(s, "has another number of inputs");
        at++;
    }
    return NO_VALUE;
}

/* -------------------------------------------------------------------------------------------------------- axes ---- */

static int64_t size_of(const struct summation *s, const struct term *term, int axis)
{
    const struct value *x = graph_at(s->c->graph, term->value);
    return x ? x->shape.sizes[x->batched + axis] : 1;
}

/* Sums over an axis, which is then gone. */
static void sum_axis(const struct summation *s, struct term *term, int axis)
{
    const struct value *x = graph_at(s->c->graph, term->value);
    if (!x) return;
    const int from = x->batched + axis;
    tutti_shape shape = x->shape;
    for (int i = from; i + 1 < shape.rank; i++) shape.sizes[i] = shape.sizes[i + 1];
    if (--shape.rank == 0) shape = TUTTI_SHAPE(1);
    const int sum = append_reduce(s->c, &operation_reduce_sum, term->value, 1u << from);
    term->value = append_reshape(s->c, sum, shape);
    term->count--;
    for (int i = axis; i < term->count; i++) term->labels[i] = term->labels[i + 1];
}

/* Keeps the elements whose indices along both axes are equal, and the first axis. */
static void take_diagonal(const struct summation *s, struct term *term, int first, int second)
{
    const struct value *x = graph_at(s->c->graph, term->value);
    const int64_t size = size_of(s, term, first);
    if (!x) return;
    if (size != size_of(s, term, second) || size < 1 || size > 1 << 12) {
        term->value = wrong(s, "takes a diagonal of axes that are not equal, or too large");
        return;
    }
    tutti_shape shape = { .rank = term->count };
    float *ones = memory_new((size_t)(size * size), sizeof *ones);
    if (!ones) {
        term->value = append_fail(s->c, TUTTI_NO_MEMORY);
        return;
    }
    for (int i = 0; i < shape.rank; i++) shape.sizes[i] = i == first || i == second ? size : 1;
    for (int64_t i = 0; i < size; i++) ones[i * size + i] = 1;
    const float zero = 0;
    const int on = network_constant(s->c->network, NULL, TYPE_F32, shape, ones);
    const int nothing = network_constant(s->c->network, NULL, TYPE_F32, TUTTI_SHAPE(1), &zero);
    free(ones);
    term->value =
        graph_append(s->c->graph, &operation_where, NULL, (int[]) { on, term->value, nothing }, 3, s->c->layer);
    sum_axis(s, term, second);
}

/* Reduces the term to one axis for each label, and to wanted labels. */
static void simplify(const struct summation *s, struct term *term, const bool *wanted)
{
    for (int i = 0; i < term->count; i++)
        for (int k = term->count - 1; k > i; k--)
            if (term->labels[k] == term->labels[i]) take_diagonal(s, term, i, k);
    for (int i = term->count - 1; i >= 0; i--)
        if (!wanted[term->labels[i]]) sum_axis(s, term, i);
}

/* Arranges the term's axes in the order of `labels`. */
static void arrange(const struct summation *s, struct term *term, const int *labels)
{
    const struct value *x = graph_at(s->c->graph, term->value);
    int order[TUTTI_MAX_RANK] = { 0 };
    if (!x) return;
    const bool batched = x->batched;
    for (int i = 0; i < term->count; i++)
        for (int k = 0; k < term->count; k++)
            if (term->labels[k] == labels[i]) order[batched + i] = batched + k;
    if (term->count > 1) term->value = append_transpose(s->c, term->value, order);
    memcpy(term->labels, labels, (size_t)term->count * sizeof *labels);
}

/* --------------------------------------------------------------------------------------------------- products ---- */

/* Labels of a pair: of both and kept, of one alone, of the other alone, of both and summed. */
struct parts {
    int both[TUTTI_MAX_RANK], one[TUTTI_MAX_RANK], other[TUTTI_MAX_RANK], summed[TUTTI_MAX_RANK];
    int both_count, one_count, other_count, summed_count;
};

static struct parts divide(const struct term *a, const struct term *b, const bool *later)
{
    struct parts p = { .both_count = 0 };
    for (int i = 0; i < a->count; i++) {
        const int label = a->labels[i];
        if (!has_label(b, label))
            p.one[p.one_count++] = label;
        else if (later[label])
            p.both[p.both_count++] = label;
        else
            p.summed[p.summed_count++] = label;
    }
    for (int i = 0; i < b->count; i++)
        if (!has_label(a, b->labels[i])) p.other[p.other_count++] = b->labels[i];
    return p;
}

/* Returns a term as [both..., alone, summed], each of the last two as one axis. */
static int as_matrices(
    const struct summation *s, struct term *term, const struct parts *p, const int *alone, int alone_count)
{
    int labels[3 * TUTTI_MAX_RANK];
    memcpy(labels, p->both, (size_t)p->both_count * sizeof *labels);
    memcpy(labels + p->both_count, alone, (size_t)alone_count * sizeof *labels);
    memcpy(labels + p->both_count + alone_count, p->summed, (size_t)p->summed_count * sizeof *labels);
    arrange(s, term, labels);
    const struct value *x = graph_at(s->c->graph, term->value);
    if (!x) return NO_VALUE;
    tutti_shape shape = { .rank = x->batched + p->both_count + 2 };
    if (shape.rank > TUTTI_MAX_RANK) return wrong(s, "has a product with too many axes");
    const int first = x->batched + p->both_count;
    for (int i = 0; i < first; i++) shape.sizes[i] = x->shape.sizes[i];
    shape.sizes[first] = shape.sizes[first + 1] = 1;
    for (int i = 0; i < alone_count + p->summed_count && first + i < x->shape.rank; i++) {
        int64_t *size = &shape.sizes[first + (i >= alone_count)];
        *size = *size == 1 ? x->shape.sizes[first + i] : *size * x->shape.sizes[first + i];
    }
    return append_reshape(s->c, term->value, shape);
}

static bool same_sizes(const struct summation *s, const struct term *a, const struct term *b, const struct parts *p)
{
    bool same = true;
    for (int i = 0; i < p->summed_count; i++)
        for (int k = 0; k < a->count; k++)
            for (int m = 0; m < b->count; m++)
                if (a->labels[k] == p->summed[i] && b->labels[m] == p->summed[i])
                    same &= size_of(s, a, k) == size_of(s, b, m);
    return same;
}

/* Multiplies a and b, and keeps the labels that occur later. */
static void multiply(const struct summation *s, struct term *a, struct term *b, const bool *later)
{
    const struct matmul_attributes attributes = { .transpose_b = true };
    const struct parts p = divide(a, b, later);
    struct term product = { NO_VALUE };
    int64_t alone[2 * TUTTI_MAX_RANK];
    int alone_count = 0;
    for (int i = 0; i < p.both_count; i++) product.labels[product.count++] = p.both[i];
    const bool same = same_sizes(s, a, b, &p);
    if (!same || p.both_count + p.one_count + p.other_count > TUTTI_MAX_RANK - 1) {
        a->value = wrong(s, same ? "has a product with too many axes" : "sums over an axis that has several sizes");
        return;
    }
    const int pair[] = { as_matrices(s, a, &p, p.one, p.one_count), as_matrices(s, b, &p, p.other, p.other_count) };
    for (int i = 0; i < p.one_count; i++) alone[alone_count++] = size_of(s, a, p.both_count + i);
    for (int i = 0; i < p.other_count; i++) alone[alone_count++] = size_of(s, b, p.both_count + i);
    for (int i = 0; i < p.one_count; i++) product.labels[product.count++] = p.one[i];
    for (int i = 0; i < p.other_count; i++) product.labels[product.count++] = p.other[i];
    const int y = decompose_matmul(s->c, &attributes, pair, 2);
    const struct value *made = graph_at(s->c->graph, y);
    if (!made) {
        a->value = NO_VALUE;
        return;
    }
    tutti_shape shape = { .rank = made->batched + product.count };
    const int first = made->batched + p.both_count;
    for (int i = 0; i < first; i++) shape.sizes[i] = made->shape.sizes[i];
    for (int i = 0; i < alone_count; i++) shape.sizes[first + i] = alone[i];
    if (shape.rank == 0) shape = TUTTI_SHAPE(1);
    product.value = append_reshape(s->c, y, shape);
    *a = product;
}

/* Sets `wanted` for the labels that are in the output or in an input from `first` on. */
static void labels_from(const struct summation *s, int first, bool *wanted)
{
    memset(wanted, 0, LABELS * sizeof *wanted);
    for (int i = 0; i < s->output.count; i++) wanted[s->output.labels[i]] = true;
    for (int k = first; k < s->count; k++)
        for (int i = 0; i < s->terms[k].count; i++) wanted[s->terms[k].labels[i]] = true;
}

static int sum_products(struct summation *s)
{
    bool wanted[LABELS];
    struct term *all = &s->terms[0];
    const int first = all->value;
    labels_from(s, 1, wanted);
    simplify(s, all, wanted);
    for (int i = 1; i < s->count && s->c->graph->status == TUTTI_OK; i++) {
        labels_from(s, i + 1, wanted);
        for (int k = 0; k < all->count; k++) wanted[all->labels[k]] = true;
        simplify(s, &s->terms[i], wanted);
        labels_from(s, i + 1, wanted);
        multiply(s, all, &s->terms[i], wanted);
    }
    if (s->c->graph->status != TUTTI_OK) return NO_VALUE;
    arrange(s, all, s->output.labels);
    return all->value == first ? append_one(s->c, &operation_copy, first) : all->value; /* a result of its own */
}

tutti_tensor tutti_einsum(tutti_network *network, const char *equation, const tutti_tensor *inputs, int count)
{
    struct summation s = { .equation = equation, .count = count };
    int values[sizeof s.terms / sizeof *s.terms];
    const int most = (int)(sizeof s.terms / sizeof *s.terms);
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (!equation || !inputs || count < 1 || count > most)
        return network_fail(network,
            fail(TUTTI_INVALID, "einsum: it got %d inputs%s: 1 to %d are possible, and an equation", count,
                equation ? "" : " and no equation", most));
    for (int i = 0; i < count; i++) {
        if (!network_operand(network, inputs[i])) return (tutti_tensor) { NO_VALUE };
        values[i] = inputs[i].id;
    }
    const struct append_context c = { network, &network->graph, network_layer_begin(network, NULL, "einsum") };
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    s.c = &c;
    if (read_equation(&s, values) == NO_VALUE) return network_fail(network, network->graph.status);
    return network_close(network, c.layer, sum_products(&s));
}
