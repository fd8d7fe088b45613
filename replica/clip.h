/* Clips gradients by their total norm, as torch.nn.utils.clip_grad_norm_: if the norm of all trained parameters'
 * gradients exceeds clip_norm, all are multiplied by clip_norm / (norm + 1e-6). Sums are in a fixed order, on the
 * host and on the device. */
#ifndef REPLICA_CLIP_H
#define REPLICA_CLIP_H

#include "replica/optimizer.h"

/* On a device: the norm, and after it partial sums, three numbers each (clip.cl). */
enum { CLIP_SUMS = 256, CLIP_NORMS = 1 + 3 * CLIP_SUMS };

/* On the host: the norm of summed gradients times `unscale`. */
tutti_status clip_norm_of(const float *gradients, int64_t count, float unscale, struct thread_pool *pool, float *norm);
float clip_factor(const struct optimizer *optimizer, float norm);
/* On a device, before the update rule: the first computes the norm, and sets constants->not_finite if it is not
 * finite; the second computes the factor of the gradients. */
void clip_emit_norm(const tutti_network *network, const struct optimizer_buffers *buffers, struct launch_list *list);
void clip_emit(const struct optimizer *optimizer, const struct optimizer_buffers *buffers, struct launch_list *list);

#endif
