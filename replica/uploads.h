/* Copies from the host to a device in the present work, with their events, which tell how long they took. */
#ifndef REPLICA_UPLOADS_H
#define REPLICA_UPLOADS_H

#include "runtime/memory.h"

struct uploads {
    struct staging staging; /* page-locked: samples that a device must not read from the caller (run_inputs.c) */
    cl_event *events;
    size_t count, capacity, bytes;
};

/* Enqueues a copy. *event, if `event` is not NULL: that of the copy; the caller must not release it. */
tutti_status uploads_write(struct uploads *uploads, const struct device *device, cl_command_queue queue, cl_mem buffer,
    size_t offset, const void *data, size_t bytes, cl_event *event);
size_t uploads_count(const struct uploads *uploads);
const cl_event *uploads_event(const struct uploads *uploads, size_t number);
size_t uploads_bytes(const struct uploads *uploads);
double uploads_seconds(const struct uploads *uploads, size_t count); /* of the first `count` */
void uploads_reset(struct uploads *uploads);                         /* the work has ended */

/* Makes staging memory of at least so many bytes, unless the present one is large enough. */
tutti_status uploads_stage(struct uploads *uploads, struct device *device, size_t bytes);
void *uploads_staging(const struct uploads *uploads);
/* Free what needs calls of the driver, and then the host's memory. */
void uploads_free_staging(struct uploads *uploads);
void uploads_free(struct uploads *uploads);

/* Seconds of a copy; 0 if the driver does not tell. */
double event_seconds(cl_event event);

#endif
