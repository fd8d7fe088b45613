/* What a device can do at most: measured, as no query tells it. */
#ifndef RUNTIME_PEAK_H
#define RUNTIME_PEAK_H

#include "runtime/device.h"

struct peak {
    double flops; /* fused multiply-adds in registers, two each, per second */
    double bytes; /* read and written per second, in memory larger than caches */
};

/* Takes a fraction of a second, and some hundred MiB of the device for that time. */
tutti_status peak_measure(struct device *device, struct peak *peak);
/* Bf16 dot products per second, a multiply-add counted as two, by the form of device->can.bf16:
 * operands in registers, of tiles in the first-level cache. 0 where the device has no form. Errors: TUTTI_WRONG_RESULT.
 */
tutti_status peak_measure_bf16(struct device *device, double *flops);

#endif
