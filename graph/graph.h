/* Values and nodes. A graph is in execution order: a node's inputs are computed before it. In a network's own graph
 * two sizes are symbols. The first size of a value with `batched` is a multiple of the number of samples, BATCH. Any
 * other size can be TUTTI_SEQUENCE. graph_bind() makes a copy with numbers instead, on which plan/ works. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "graph/attributes.h"
#include "graph/axes.h"
#include "graph/fusion.h"

#define GRAPH_MAX_INPUTS 10
#define GRAPH_MAX_OUTPUTS 6
/* Stands for `rows` times the number of samples until graph_bind(). Odd: TUTTI_SEQUENCE is even. */
#define BATCH_ROWS(rows) (1 - 2 * (int64_t)(rows))
#define BATCH BATCH_ROWS(1)
#define NO_VALUE (-1)

/* The numbers that replace the symbols. */
struct bound_sizes {
    int64_t samples;
    int64_t length; /* of sequences; 0: the network has none */
};

/* BF16: an F32 that the plan stores as the upper half of a float (plan/storage.c), or a parameter that is stored so
 * (graph/stored.h). INT8: an F32 parameter that is stored as bytes with scales. Only inputs are F16, BF16_INPUT or
 * BOOL, and only `convert` reads them. */
enum value_type { TYPE_F32, TYPE_I32, TYPE_U8, TYPE_BF16, TYPE_F16, TYPE_BF16_INPUT, TYPE_BOOL, TYPE_INT8 };

/* PLAIN: row-major as the shape says (N, C, H, W). The other layouts need channels followed by space
 * (value_has_layouts). BLOCKED: [N][C/V][H][W][V], with V the device's vector width; channels past C exist and are
 * zero in every value, forward and backward. CHANNELS_LAST: [N][H][W][C] with C a multiple of CHANNELS_LAST_MULTIPLE,
 * so that there is no padding and each four channels lie in 16 bytes. A device has one layout besides the plain one:
 * BLOCKED in the CPU class, CHANNELS_LAST in the GPU class. */
enum value_layout { LAYOUT_PLAIN, LAYOUT_BLOCKED, LAYOUT_CHANNELS_LAST };
enum { CHANNELS_LAST_MULTIPLE = 4 };

enum value_role {
    ROLE_TEMPORARY, /* made and used inside the plan */
    ROLE_INPUT,     /* uploaded before the step: inputs, targets */
    ROLE_PARAMETER, /* in the parameter arena; plain */
    ROLE_CONSTANTS, /* struct step_constants, uploaded before the step */
};

struct value {
    enum value_role role;
    enum value_type type;
    enum value_layout layout;
    tutti_shape shape; /* the batch dimension included: sizes[0] where batched */
    bool batched;
    int64_t rows;     /* where batched: sizes[0] is this times the number of samples. 1, unless an axis was folded */
    struct axes axes; /* what they are of, besides the batch */
    int producer;     /* node, or -1 */
    int parameter;    /* ROLE_PARAMETER: its number in the network; else -1 */
    /* Number of the parameter whose final gradient this is, in the gradient arena; else -1. */
    int gradient_of;
    bool output; /* read by the host after the plan ran */
    char *name;  /* NULL: none */
};

struct operation;

struct node {
    const struct operation *operation;
    struct attribute_values attributes; /* read by node_attributes() */
    int input_count, output_count;
    int inputs[GRAPH_MAX_INPUTS];        /* values; NO_VALUE for an optional input that is absent */
    int outputs[GRAPH_MAX_OUTPUTS];      /* values; NO_VALUE for one that nobody wants */
    struct fusion fusions[FUSION_KINDS]; /* in the order in which they are done (fusion.h) */
    int fusion_count;
    int layer;          /* of the network, for names and the profile; -1: none */
    int implementation; /* chosen by plan/choose.c; -1 before */
    const void *design; /* of that implementation, the plan's, set when all passes have run; NULL: none */
};

struct graph {
    struct value *values;
    struct node *nodes;
    size_t value_count, value_capacity, node_count, node_capacity;
    void **owned; /* memory that attributes point to */
    size_t owned_count, owned_capacity;
    int constants;       /* the value with ROLE_CONSTANTS, or NO_VALUE until graph_constants() */
    tutti_status status; /* the first failure while appending; later appends give NO_VALUE */
};

void graph_init(struct graph *graph);
void graph_free(struct graph *graph);
/* A copy with these sizes. */
tutti_status graph_bind(const struct graph *from, struct bound_sizes sizes, struct graph *to);

/* Appends a value without producer. name may be NULL. */
int graph_value(
    struct graph *graph, enum value_role role, enum value_type type, tutti_shape shape, bool batched, const char *name);
/* Appends a node and its outputs, whose shapes its operation's infer() sets. attributes: the operation's own struct,
 * which is copied; NULL: all are 0. Fails if the inputs do not fit the operation's ports; absent inputs at the end
 * may be left out. Returns the first output's value, or NO_VALUE after a failure. Further outputs follow it:
 * node_of(...)->outputs[i]. */
int graph_append(struct graph *graph, const struct operation *operation, const void *attributes, const int *inputs,
    int input_count, int layer);
/* Returns zeroed memory that lives as long as the graph, or NULL if there is none. Attributes may point to it. Graphs
 * of plans with such memory are not copied; a plan's graph points to the memory of its network's. */
void *graph_new(struct graph *graph, size_t bytes);
/* The last appended node; valid until the next append. */
struct node *graph_last(struct graph *graph);
int graph_constants(struct graph *graph);
/* NULL: there is no such value. */
static inline struct value *graph_at(const struct graph *graph, int value)
{
    return value < 0 || (size_t)value >= graph->value_count ? NULL : &graph->values[value];
}
int64_t value_size(const struct value *value, int from_last); /* of an axis, counted from the last one */
int64_t value_samples(const struct value *value);             /* after graph_bind(); 1 where it has no batch */
int64_t value_elements(const struct value *value);            /* of the shape, padding of the layout not counted */
size_t value_type_bytes(enum value_type type);                /* of an element */
/* Whether kernels get floats of it, however it is stored. */
static inline bool value_is_float(const struct value *value)
{
    return value->type == TYPE_F32 || value->type == TYPE_BF16 || value->type == TYPE_INT8;
}
/* Bytes of one sample of a batched value in the host's format; in a network's own graph, sequences have length 1. */
size_t value_sample_bytes(const struct value *value);
/* Bytes of the value in its layout with this vector width. */
size_t value_bytes(const struct value *value, int vector_width);
static inline bool shape_equal(tutti_shape a, tutti_shape b)
{
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.sizes[i] != b.sizes[i]) return false;
    return true;
}
int64_t shape_elements(const tutti_shape *shape); /* of one sample, and a sequence of length 1, where symbols stand */
int shape_sequences(const tutti_shape *shape);    /* how many sizes are TUTTI_SEQUENCE */
/* Fails if a size is TUTTI_SEQUENCE, for operations that calculate with all sizes of a sample. */
tutti_status shape_check_numbers(const tutti_shape *shape, const char *operation);
bool graph_has_sequences(const struct graph *graph);
enum { SIZE_TEXT = 24 };
bool size_is_batch(int64_t size); /* a multiple of BATCH */
/* Writes a size as text and returns `text`: N for the batch, 3N for three rows of each sample, T for sequences. */
const char *size_print(int64_t size, char text[SIZE_TEXT]);
/* Reads a shape; false if `sizes` is NULL or empty, or has more sizes than a shape. */
bool shape_read(const int64_t *sizes, int rank, tutti_shape *shape);
/* Returns, for each value, whether any of the `count` values depends on it or is it; the caller frees it with free().
 * NULL without memory. */
bool *graph_reaches(const struct graph *graph, const int *values, int count);
/* Whether any output of the node is reached. */
bool node_is_reached(const struct node *node, const bool *reached);
/* Checks every contract of this file: ports, order, roles, shapes as infer() says, layouts of parameters. Tests call
 * it after each pass. */
tutti_status graph_validate(const struct graph *graph);
/* Hash of the values and nodes that graph_reaches() found: of what they compute, not of their layers' names. Only of a
 * network's own graph. */
uint64_t graph_hash(const struct graph *graph, const bool *reached, uint64_t seed);
struct text;
/* Prints a line for each node: "operation + fusion ... port=%value:name[shape] ... -> port=%value[shape] ...". */
void graph_print(const struct graph *graph, struct text *text);

#endif
