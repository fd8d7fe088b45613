/* A plan: the launches of one network on one device for one number of samples. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "graph/network.h"
#include "graph/operation.h"
#include "runtime/memory.h"

enum plan_mode { PLAN_TRAIN, PLAN_EVALUATE, PLAN_INFER };

struct plan_options {
    enum plan_mode mode;
    int64_t samples;
    tutti_tensor output;
    tutti_loss loss;
    bool exact;
    bool meets; /* training: other devices have the rest of the batch, whose statistics count too (launch_meeting) */
    bool bf16;  /* temporary values are stored as bfloat16 where every kernel that touches them can */
    /* Tests: gradients start from an input value "seed" of the output's shape instead of a loss; input gradients too.
     */
    bool seeded;
    /* Tests: value to force, "conv2d=winograd,dense=clblast", or NULL. Also TUTTI_IMPLEMENTATION. */
    const char *force;
    /* Tests: every value has memory of its own, followed by PLAN_GUARD_BYTES of poison that plan_check_guards() looks
     * at. */
    bool guards;
    /* Device buffers that the plan's launches use; the replica owns them. gradients is NULL unless training. */
    cl_mem parameters, gradients;
    struct arena *arena; /* shared with other plans if it is large enough; NULL: an own one is made */
    bool explain;        /* keep texts for plan_explain */
    bool cold;           /* leave the warm-up, which writes to all buffers, to plan_warm_up() */
    void (*progress)(void *user, int built, int total);
    void *user;
};

/* A range of the gradient arena that is complete after the launch `after`, in the order in which backward makes them.
 */
struct plan_bucket {
    int64_t first, count; /* floats */
    size_t after;         /* index of a launch */
};

/* A range of the parameters' arena that no launch before `before` reads, in the order of the arena. */
struct plan_need {
    int64_t first, count; /* floats */
    size_t before;        /* index of a launch */
};

struct plan {
    struct device *device;
    const tutti_network *network;
    struct plan_options options;
    struct graph graph;
    struct launch_list prepare; /* inference: once after each change of the parameters; training: empty */
    struct launch_list step;
    struct arena *arena;
    cl_mem *buffers; /* per value; NULL where it has none */
    size_t buffer_count;
    cl_mem *prepared; /* per node; NULL where it has none */
    size_t prepared_count;
    cl_mem workspace;
    size_t arena_bytes; /* needed, also when the arena is larger */
    /* Values of interest, NO_VALUE where absent. metrics: float[2], the sum of the losses of the plan's samples and the
     * number of correct ones. seed, input gradients: tests. */
    int input, targets, constants, output, metrics, seed, input_gradient;
    struct plan_bucket *buckets;
    size_t bucket_count;
    struct plan_need *needs; /* training, as are the buckets */
    size_t need_count;
    double build_seconds;
    char *explanation, *passes;
};

/* Bytes of arena that a plan would take, without making it. */
tutti_status plan_measure(
    struct device *device, const tutti_network *network, const struct plan_options *options, size_t *bytes);
tutti_status plan_new(
    struct device *device, const tutti_network *network, const struct plan_options *options, struct plan **plan);
void plan_free(struct plan *plan);
/* Runs the plan's kernels once, so that nothing is compiled later. plan_new() does it, unless told not to. */
tutti_status plan_warm_up(struct plan *plan);
/* Whether what a sample gives in training depends on the batch that it is in. */
bool plan_wants_whole_batch(const tutti_network *network);

/* Called by plan_enqueue(); either may be NULL. */
struct plan_stops {
    /* After the launch that completes a bucket was enqueued, so that the caller can enqueue its download. */
    tutti_status (*bucket)(void *user, int bucket);
    /* After the launches before a meeting were: what is enqueued next finds the numbers of all devices. */
    tutti_status (*meeting)(void *user, const struct meeting *meeting);
    /* Before the first launch that reads a range of the parameters, so that it can be made to wait for them. */
    tutti_status (*need)(void *user, int need);
};
/* Enqueues the step (not the uploads); does not wait. stops: NULL, or what is done on the way. */
tutti_status plan_enqueue(struct plan *plan, const struct plan_stops *stops, void *user);
/* The launches that read the input read `buffer` from now on, NULL: the plan's own buffer again. False where one is not
 * to be told. What was enqueued before stays as it is. */
bool plan_read_input_from(struct plan *plan, cl_mem buffer);
/* Where a value lies (those of interest have memory of their own); NULL for NO_VALUE. */
cl_mem plan_buffer(const struct plan *plan, int value);
/* Tests: fills the arena with NaN; before the uploads. And whether the guards still hold it. */
#define PLAN_GUARD_BYTES 256
tutti_status plan_poison(struct plan *plan);
tutti_status plan_check_guards(struct plan *plan);
/* Inference: runs the launches that depend on parameters only. */
tutti_status plan_prepare(struct plan *plan);

#endif
