/* Views of a trainer's numbers that are open, and outputs that they can show: train/views.c. */
#ifndef PARALLEL_VIEWS_H
#define PARALLEL_VIEWS_H

#include "replica/arrays.h"

struct open_view {
    uint64_t number; /* tutti_view.number */
    cl_mem buffer;   /* of an output that is mapped at `mapped`; else NULL */
    void *mapped;
    bool of_parameters; /* or of the optimizer's states: other trainers that read them (parameters_of) wait */
};

struct open_views {
    struct open_view *items;
    size_t count, capacity;
    size_t parameters; /* how many are of those; changed under the lock of the parameters, as readers count them */
    uint64_t last;     /* number of the view that was opened last */
};

/* Outputs that tutti_infer_keep() keeps. */
struct kept_outputs {
    bool valid;               /* nothing was computed since */
    bool wanted[ARRAYS_MAX];  /* which ones */
    struct arrays arrays;     /* where they are on the host, unless `plan` has them; the trainer's memory */
    size_t bytes[ARRAYS_MAX]; /* of that memory */
    int64_t samples;
    /* The plan in whose buffers they are, because the only device shares the host's memory; NULL: they were copied. */
    const struct plan *plan;
};

#endif
