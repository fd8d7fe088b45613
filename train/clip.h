/* Clipping gradients by the norm of all of them together, torch.nn.utils.clip_grad_norm_: if that of all trained
 * parameters' gradients exceeds clip_norm, all are multiplied by clip_norm / (norm + 1e-6). Sums are in a fixed order,
 * on the host and on the device. */
#ifndef TRAIN_CLIP_H
#define TRAIN_CLIP_H

#include "train/optimizer.h"

/* On a device: the norm, and behind it partial sums, three numbers each (clip.cl). */
enum { CLIP_SUMS = 256, CLIP_NORMS = 1 + 3 * CLIP_SUMS };

/* On the host: of summed gradients, which are multiplied by `unscale`. */
tutti_status clip_norm_of(const float *gradients, int64_t count, float unscale, struct thread_pool *pool, float *norm);
float clip_factor(const struct optimizer *optimizer, float norm);
/* On a device, in front of the rule: the norm, which sets constants->not_finite where it is not finite; then what
 * gradients are multiplied by. */
void clip_emit_norm(const tutti_network *network, const struct optimizer_buffers *buffers, struct launch_list *list);
void clip_emit(const struct optimizer *optimizer, const struct optimizer_buffers *buffers, struct launch_list *list);

#endif
