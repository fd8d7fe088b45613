/* Copies from the host to a device in the work at hand: their events, which tell how long they took. */
#ifndef TRAIN_UPLOADS_H
#define TRAIN_UPLOADS_H

#include "runtime/memory.h"

struct uploads {
    struct staging staging; /* page-locked, of devices that do not share the host's memory */
    cl_event *events;
    size_t count, capacity, bytes;
};

/* Enqueues one. *event, if not NULL: its own, which is not the caller's to release. */
tutti_status uploads_write(struct uploads *uploads, const struct device *device, cl_command_queue queue, cl_mem buffer,
    size_t offset, const void *data, size_t bytes, cl_event *event);
size_t uploads_count(const struct uploads *uploads);
const cl_event *uploads_event(const struct uploads *uploads, size_t number);
size_t uploads_bytes(const struct uploads *uploads);
double uploads_seconds(const struct uploads *uploads, size_t count); /* of the first `count` */
void uploads_forget(struct uploads *uploads);                        /* the work has ended */

/* Staging memory of at least so many bytes, or the present one. */
tutti_status uploads_stage(struct uploads *uploads, struct device *device, size_t bytes);
void *uploads_staging(const struct uploads *uploads);
/* What is freed by calls of the driver, and then the host's memory. */
void uploads_free_staging(struct uploads *uploads);
void uploads_free(struct uploads *uploads);

/* Of a copy; 0 where the driver does not tell. */
double event_seconds(cl_event event);

#endif
