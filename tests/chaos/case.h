/* A run of the chaos test: the network, how the devices share its training, and the faults. All of it follows from the
 * seed alone. */
#ifndef TESTS_CHAOS_CASE_H
#define TESTS_CHAOS_CASE_H

#include "runtime/opencl.h"

#include "tests/faults/layer.h" /* after the headers that choose OpenCL's version */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DEVICES = 3,
    SAMPLES = 30, /* of the data: the last batch of an epoch is smaller */
    STEP_SAMPLES = 8,
    EPOCHS = 3,
    STEPS = EPOCHS * ((SAMPLES + STEP_SAMPLES - 1) / STEP_SAMPLES),
    RANKS = 2, /* each with these devices, where there are several */
    ALL_DEVICES = -1,
    BUILDING = -1, /* the step of a fault that is there before the trainer is compiled */
    MOST_FAULTS = 3,
    MOST_CHANGES = 4
};

/* X(name, text) */
#define CHAOS_NETWORKS(X)                    \
    X(DENSE, "two dense layers")             \
    X(CONV, "a convolution")                 \
    X(DROPOUT, "a convolution with dropout") \
    X(NORM, "batch normalisation over the whole batch")

#define CHAOS_MODES(X)                           \
    X(EQUAL, "equal shares")                     \
    X(GIVEN, "given shares")                     \
    X(AUTO, "automatic shares")                  \
    X(SINGLE, "a single device, with a journal") \
    X(PROBED, "a single device, the others left out and probed")

#define CHAOS_MEMORY(X)                      \
    X(SHARED, "memory shared with the host") \
    X(OWN, "memory of their own")            \
    X(MIXED, "memory of its own on the second device")

#define CHAOS_ENUM(name, text) name,
enum network { CHAOS_NETWORKS(CHAOS_ENUM) NETWORKS };
enum mode { CHAOS_MODES(CHAOS_ENUM) MODES };
enum memory_kind { CHAOS_MEMORY(CHAOS_ENUM) MEMORY_KINDS };
#undef CHAOS_ENUM

struct fault {
    int step;   /* after how many steps the order is given; or BUILDING */
    int rank;   /* of the victim */
    int victim; /* or ALL_DEVICES */
    struct layer_order order;
};

/* After a step, plans for other shares are begun. */
struct change {
    int step;
    int64_t weights[DEVICES];
    int wait_ms; /* how long the training waits for these plans, so that they are taken into use soon; or not at all */
};

struct chaos_case {
    uint64_t seed;
    int ranks; /* 1 or RANKS */
    enum network network;
    enum mode mode;
    enum memory_kind memory;
    bool adam, bf16, check_replicas, evaluates, closes_first;
    int micro_batch;
    double shares[DEVICES]; /* where they are given */
    int change_count, fault_count;
    struct change changes[MOST_CHANGES];
    struct fault faults[MOST_FAULTS];
};

struct chaos_case case_of(uint64_t seed, int ranks);
/* One line, for people. */
void case_describe(const struct chaos_case *it, char *text, size_t size);
/* The devices of a rank that a fault makes fail or compute wrong numbers, as bits. A slow device is not among them. */
unsigned case_victims(const struct chaos_case *it, int rank);
/* Whether a rank may be left without a device. */
bool case_may_fail(const struct chaos_case *it);
int case_count(const struct chaos_case *it, enum layer_action action);

#endif
