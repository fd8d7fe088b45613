/* Finding platforms and devices, dropping duplicates, choosing by TUTTI_DEVICES. */
#ifndef RUNTIME_DISCOVER_H
#define RUNTIME_DISCOVER_H

#include "runtime/device.h"

struct found_device {
    int index;
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type; /* what the driver says, whatever TUTTI_DEVICE_CLASS says */
    struct capabilities can;
    bool aside;  /* used only when named: the same hardware is offered twice, or its driver has no compiler */
    bool faulty; /* one of its queries failed: it cannot be opened, and what `can` holds is incomplete */
    bool chosen;
    char note[400]; /* why it is not chosen by default; else empty */
};

/* Drivers initialise themselves at their first calls, and not all of them let two threads do so at a time: these calls
 * (listing, opening and closing devices) are made with this lock held. No other lock is taken before it. */
void drivers_lock(void);
void drivers_unlock(void);

/* Lists all devices of all platforms. A platform without devices is not an error; without any device the status is
 * TUTTI_NO_PLATFORM, with advice. A platform that fails is left out with a warning; a device that fails is in the
 * list, marked as faulty. TUTTI_SUB_DEVICES=N splits each CPU into N equal sub-devices. Freed by discover_free(). */
tutti_status discover(const struct log *log, struct found_device **found, int *count);
void discover_free(struct found_device *found, int count); /* takes NULL */
/* Marks the chosen devices. choice NULL: TUTTI_DEVICES, else the default. TUTTI_NO_DEVICE if a part of the choice
 * names no device. */
tutti_status discover_choose(struct found_device *found, int count, const char *choice);
/* memory_limit 0: none. */
tutti_status capabilities_read(cl_platform_id platform, cl_device_id id, size_t memory_limit, struct capabilities *can);
/* A string of a platform, cut to fit. */
tutti_status platform_text(cl_platform_id platform, cl_platform_info what, char *text, size_t size);

#endif
