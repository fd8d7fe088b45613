/* Shared by the tests of faults: a small training in which any call can be broken, the results of a run that never
 * had the broken device, and the table of what was tried. Needs two devices of OpenCL (POCL_DEVICES="pthread
 * pthread") and the layer (OPENCL_LAYERS). */
#ifndef TESTS_FAULTS_TRAINING_H
#define TESTS_FAULTS_TRAINING_H

#include "parallel/trainer.h"

#include "tests/faults/layer.h" /* after the headers that choose OpenCL's version */

#include <limits.h>

enum { STEPS = 4, BROKEN_STEP = 1, SAMPLES = 8, CLASSES = 5, PIXELS = 2 * 7 * 7 };

/* Limits of steps that take a few ms. If a device hangs, the limit is short, so that the test need not wait. If none
 * does, it is long, so that a busy machine is not taken for a device that hangs. */
#define HANG_LIMIT_S 0.3
#define STEP_LIMIT_S 30.0

extern const struct fault_layer *layer;
extern float images[STEPS * SAMPLES * PIXELS];
extern int32_t labels[STEPS * SAMPLES];

struct session {
    bool norm;            /* the network has batch normalisation, over the whole batch */
    bool clipping;        /* clipping, averages of the parameters, micro-batches, weights of classes */
    bool ahead;           /* each step's samples are announced before the step before it */
    tutti_precision wire; /* of gradients */
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
};

/* How a run ended. */
struct outcome {
    tutti_status status;
    long broken; /* calls */
    double losses[STEPS];
    float *parameters; /* and their averages */
    int64_t count;
};

/* What the log has reported since this was last set to 0. */
struct reports {
    int lost;        /* devices */
    int left_out;    /* devices that could not be opened */
    int set_aside;   /* kernels that failed their first check */
    int halved;      /* devices that take fewer samples at once */
    int warnings;    /* these and others */
    int lines;       /* more lines than warnings: some were of several */
    char last[1024]; /* warning */
};
extern struct reports reports;

tutti_status session_open(struct session *session, const char *devices, const char *cache_folder);
tutti_status session_step(struct session *session, int step, double *loss);
tutti_status session_parameters(struct session *session, struct outcome *outcome);
void session_close(struct session *session);
/* A device that hung was let go: its thread comes back, and ends because nobody waits for it any more. */
void revive(tutti_trainer *trainer, int device);
/* One device trains alone from the next step on, as if automatic shares had left the other out. */
void leave_single(struct session *session, int device);

/* What is broken: a step of two devices; of two that are taken for ones with memory of their own, with
 * gradients as floats and as bfloat16, and with the next step's samples under way; of two that synchronise at batch
 * normalisation; of two that clip gradients, average parameters, compute in micro-batches and weigh classes; the first
 * one; one of the device that trains alone, and the same with clipping and so on; making all that a training needs, the
 * programs being there, and the same with clipping and so on; the same and the first step with programs in the driver's
 * cache, and with programs that this library keeps; at a driver's first use, when kernels are checked; with nothing in
 * any cache; opening the devices. */
#define PHASES_OF(X)                                                                                   \
    X(STEP, "training", "One training step")                                                           \
    X(APART, "training with memory of its own", "A step of devices with memory of their own")          \
    X(WIRE, "training with bfloat16 on the wire", "The same, gradients travel as bfloat16")            \
    X(AHEAD, "training with samples sent ahead", "The same, the next step's samples travel")           \
    X(SYNC, "training with all-reduces", "A step with batch normalisation over all devices")           \
    X(CLIPPING, "training with clipping and averages", "A step with clipping and averages")            \
    X(TOUCH, "training first", "The first training step")                                              \
    X(SINGLE, "training on one device", "A step of a single device, the other left out")               \
    X(CLIPPING_SINGLE, "training on one device with clipping", "The same, with clipping and averages") \
    X(BUILD, "building", "Building")                                                                   \
    X(CLIPPING_BUILD, "building clipping", "Building, with clipping and averages")                     \
    X(WARM, "loading programs", "Building, programs in the driver's cache")                            \
    X(KEPT, "loading kept programs", "Building, programs kept by the library")                         \
    X(FIRST, "checking kernels", "Building at a driver's first use, kernels being checked")            \
    X(COLD, "compiling", "Building, nothing in any cache")                                             \
    X(OPEN, "opening", "Opening devices")
enum phase {
#define PHASE_ENUM(name, text, title) PHASE_##name,
    PHASES_OF(PHASE_ENUM)
#undef PHASE_ENUM
        PHASES
};

/* Columns of the table: actions, and a call that fails for want of memory or for CL_OUT_OF_RESOURCES. */
enum { NO_MEMORY = LAYER_ACTION_COUNT, NO_RESOURCES, COLUMNS };

struct fault {
    enum phase phase;
    int victim; /* which of the two devices */
    struct layer_order order;
};

bool is_hang(const struct fault *fault);
int column_of(const struct layer_order *order);
void give(const struct session *session, const struct fault *fault);

/* Calls of the victim by kind, in the last broken step or build. */
extern long counted[LAYER_KIND_COUNT + 1];
void take_counts(void);

/* Trains all steps; a fault of a step is active during the step that it breaks. */
tutti_status train(struct session *session, const struct fault *fault, struct outcome *outcome);
/* Compiles, with a fault on the way or without one. */
tutti_status build(struct session *session, const struct fault *fault, struct outcome *outcome);

extern struct outcome reference; /* of a run on the first device alone */
tutti_status reference_make(void);
/* The outcome of such a run on the first device alone; only members of `kind` that describe the training are read. */
tutti_status outcome_single(const struct session *kind, struct outcome *outcome);
/* NULL, or what is different. */
const char *difference(const struct outcome *found, const struct outcome *wanted);
/* Adds a result to the table. text: NULL if the fault was survived, else why it was not. */
void judge(const struct fault *fault, const struct outcome *outcome, const char *text);
/* A check besides the table's. */
void expect(const char *what, const char *text);
/* TUTTI_TESTS=few: chosen cases. */
bool tests_are_few(void);
/* Tries each call of each kind in turn; if a kind has more than `most` calls, that many of them, evenly spaced. */
void try_all(void (*try)(const struct fault *), struct fault fault, long most);
void print_table(enum phase phase);

/* Finds the layer and makes the samples. False: there is no layer; this has been reported. */
bool tests_begin(void);
/* Prints the result and returns the program's status. */
int tests_end(void);

#endif
