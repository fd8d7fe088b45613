/* What the trainer tells the kernels of a step: graph/operation.h has the same struct, with gradient_weight for
 * loss_scale, and micro_batches for runs. These two names stay here, because what compilers make of each kernel's text
 * is recorded in tests/offline. */
typedef struct {
    uint seed_low, seed_high;
    uint step_low, step_high;
    uint first_sample;
    float loss_scale;
    float learning_rate;
    float bias_correction1, bias_correction2;
    uint runs;
    float unscale;
    uint not_finite;
    uint loss_floats;
    uint reserved[3];
} step_constants;
