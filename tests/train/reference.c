#include "tests/train/reference.h"

#include <math.h>

/* Settings of a step, with the defaults in place of 0; g: the gradient. */
struct step {
    double g, rate, decay, momentum, beta1, beta2, epsilon;
    bool nesterov, centered, amsgrad;
    int number;
};

static void sgd(struct reference *r, struct step *s)
{
    const double g = s->g + s->decay * r->p;
    r->a = s->momentum * r->a + g;
    r->p -= s->rate * (s->nesterov ? g + s->momentum * r->a : r->a);
}

/* a, b: the moments; c: the largest b. */
static void adam_from(struct reference *r, const struct step *s, double g)
{
    r->a = s->beta1 * r->a + (1 - s->beta1) * g;
    r->b = s->beta2 * r->b + (1 - s->beta2) * g * g;
    r->c = fmax(r->c, r->b);
    const double mean = r->a / (1 - pow(s->beta1, s->number));
    const double square = (s->amsgrad ? r->c : r->b) / (1 - pow(s->beta2, s->number));
    r->p -= s->rate * mean / (sqrt(square) + s->epsilon);
}

static void adam(struct reference *r, struct step *s)
{
    adam_from(r, s, s->g + s->decay * r->p);
}

static void adamw(struct reference *r, struct step *s)
{
    r->p -= s->rate * s->decay * r->p;
    adam_from(r, s, s->g);
}

/* a: mean of squares; b: mean; c: velocity. */
static void rmsprop(struct reference *r, struct step *s)
{
    const double g = s->g + s->decay * r->p;
    r->a = s->beta2 * r->a + (1 - s->beta2) * g * g;
    r->b = s->beta2 * r->b + (1 - s->beta2) * g;
    const double root = s->centered ? sqrt(r->a - r->b * r->b) : sqrt(r->a);
    r->c = s->momentum * r->c + g / (root + s->epsilon);
    r->p -= s->rate * r->c;
}

static void adagrad(struct reference *r, struct step *s)
{
    const double g = s->g + s->decay * r->p;
    r->a += g * g;
    r->p -= s->rate * g / (sqrt(r->a) + s->epsilon);
}

static void nadam(struct reference *r, struct step *s)
{
    const double g = s->g + s->decay * r->p;
    double product = 1, mean = 0;
    for (int t = 1; t <= s->number + 1; t++) {
        const double beta1 = s->beta1 * (1 - 0.5 * pow(0.96, 0.004 * t));
        if (t == s->number) mean += (1 - beta1) * g / (1 - product * beta1);
        product *= beta1;
        if (t > s->number) mean += beta1 * (s->beta1 * r->a + (1 - s->beta1) * g) / (1 - product);
    }
    r->a = s->beta1 * r->a + (1 - s->beta1) * g;
    r->b = s->beta2 * r->b + (1 - s->beta2) * g * g;
    r->p -= s->rate * mean / (sqrt(r->b / (1 - pow(s->beta2, s->number))) + s->epsilon);
}

static void lion(struct reference *r, struct step *s)
{
    const double mean = s->beta1 * r->a + (1 - s->beta1) * s->g, sign = mean > 0 ? 1 : mean < 0 ? -1 : 0;
    r->p -= s->rate * (sign + s->decay * r->p);
    r->a = s->beta2 * r->a + (1 - s->beta2) * s->g;
}

void reference_update(
    struct reference *r, const tutti_training *training, double gradient, double rate, double decay, int step)
{
    static const struct {
        void (*update)(struct reference *r, struct step *step);
        float beta2, epsilon;
    } rules[] = { [TUTTI_SGD] = { sgd },
        [TUTTI_ADAM] = { adam, 0.999f, 1e-8f },
        [TUTTI_ADAMW] = { adamw, 0.999f, 1e-8f },
        [TUTTI_RMSPROP] = { rmsprop, 0.99f, 1e-8f },
        [TUTTI_ADAGRAD] = { adagrad, 0, 1e-10f },
        [TUTTI_NADAM] = { nadam, 0.999f, 1e-8f },
        [TUTTI_LION] = { lion, 0.99f } };
    struct step s = { .g = gradient,
        .rate = rate,
        .decay = decay,
        .momentum = training->momentum,
        .beta1 = training->beta1 != 0 ? training->beta1 : 0.9f,
        .beta2 = training->beta2 != 0 ? training->beta2 : rules[training->optimizer].beta2,
        .epsilon = training->epsilon != 0 ? training->epsilon : rules[training->optimizer].epsilon,
        .nesterov = training->nesterov,
        .centered = training->centered,
        .amsgrad = training->amsgrad,
        .number = step };
    rules[training->optimizer].update(r, &s);
}

const tutti_training reference_trainings[REFERENCE_TRAININGS] = {
    { .optimizer = TUTTI_SGD, .learning_rate = 0.05f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.05f, .momentum = 0.9f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.05f, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 1e-2f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 1e-2f, .weight_decay = 0.05f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .epsilon = 1e-2f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .epsilon = 1e-2f, .weight_decay = 0.1f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .epsilon = 1e-2f, .centered = true, .momentum = 0.5f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .epsilon = 1e-2f, .centered = true },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .epsilon = 1e-2f, .momentum = 0.5f, .weight_decay = 0.1f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .epsilon = 1e-2f },
    { .optimizer = TUTTI_ADAGRAD, .learning_rate = 0.02f, .epsilon = 1e-2f, .weight_decay = 0.05f },
    { .optimizer = TUTTI_NADAM, .learning_rate = 0.01f, .epsilon = 1e-2f, .weight_decay = 0.05f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 1e-2f, .amsgrad = true },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .epsilon = 1e-2f, .amsgrad = true, .weight_decay = 0.1f },
    { .optimizer = TUTTI_LION, .learning_rate = 0.00005f, .weight_decay = 1 },
};
