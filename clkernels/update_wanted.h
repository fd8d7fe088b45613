/* Whether the losses of all micro-batches and the gradients are finite: else nothing is updated. losses: for each of
 * constants->micro_batches the sum of its losses, loss_floats apart. gradients_check has read all gradients before. By
 * bits: a build with finite-math options would fold isfinite() away. */
#ifndef UPDATE_WANTED_H
#define UPDATE_WANTED_H

static bool update_wanted(global const step_constants *constants, global const float *losses)
{
    bool finite = constants->not_finite == 0;
    const uint stride = max(constants->loss_floats, 2u);
    for (uint run = 0; run < constants->micro_batches; run++)
        finite = finite && (as_uint(losses[stride * run]) & 0x7f800000u) != 0x7f800000u;
    return finite;
}

#endif
