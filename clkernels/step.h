/* What the trainer tells the kernels of a step: graph/operation.h has the same struct. */
typedef struct {
    uint seed_low, seed_high;
    uint step_low, step_high;
    uint first_sample;
    float gradient_weight;
    float learning_rate;
    float bias_correction1, bias_correction2;
    uint micro_batches;
    float unscale;
    uint not_finite;
    uint loss_floats;
    uint reserved[3];
} step_constants;
