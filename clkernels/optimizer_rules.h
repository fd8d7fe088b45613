/* The update rules of the optimizers. A line of the table below defines one, for the host and for devices. */
#ifndef OPTIMIZER_RULES_H
#define OPTIMIZER_RULES_H

/* X(rule, KIND, name, options, states, names of states, rate, beta2, epsilon, decay, corrections, update)
 *
 * rule: the name of its kernel. KIND, name: tutti_optimizer without its prefix, and the name in commands and files.
 * options: the settings that it is for. An optimizer takes the first of its rules whose options are all set.
 * states: number of arrays that are kept from step to step, 0 to 3, and their names in files, which are PyTorch's.
 * rate, beta2, epsilon: defaults. decay: RULE_COUPLED or RULE_DECOUPLED.
 * corrections: the function of replica/optimizer.c that sets the bias corrections of a step, which are 1 if
 * `uncorrected`, and may multiply its learning rate.
 *
 * update: assigns new values to the parameter p and to the states a, b and c, in the order of the names, all 0 before
 * the first step. It reads
 *   g                        gradient; with RULE_COUPLED plus weight_decay * p
 *   keep                     1; with RULE_DECOUPLED 1 - rate * weight_decay
 *   rate                     learning rate of the parameter, times the factor that `corrections` may have
 *   corrected, root          rate / bias_correction1 and sqrt(bias_correction2) of struct step_constants
 *   rest1, rest2             1 - beta1, 1 - beta2
 *   momentum, beta1, beta2, epsilon
 * The text is compiled as C with floats (replica/optimizer_host.c) and as OpenCL C with vectors (optimizer.cl).
 * Constants are whole numbers. positive(x) is x, or 0 if x is negative; sign(x) is 1, 0 or -1. */
/* clang-format off */
#define OPTIMIZER_RULES(X)                                                                                             \
    X(sgd_nesterov, SGD, "sgd", RULE_MOMENTUM | RULE_NESTEROV, 1, ("momentum_buffer"), 0.01f, 0.999f, 1e-8f,           \
        RULE_COUPLED, uncorrected, (a = momentum * a + g, p -= rate * (g + momentum * a)))                             \
    X(sgd_momentum, SGD, "sgd", RULE_MOMENTUM, 1, ("momentum_buffer"), 0.01f, 0.999f, 1e-8f,                           \
        RULE_COUPLED, uncorrected, (a = momentum * a + g, p -= rate * a))                                              \
    X(sgd, SGD, "sgd", 0, 0, (NULL), 0.01f, 0.999f, 1e-8f, RULE_COUPLED, uncorrected, (p -= rate * g))                 \
    X(adam_amsgrad, ADAM, "adam", RULE_AMSGRAD, 3, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),                        \
        0.001f, 0.999f, 1e-8f, RULE_COUPLED, bias_corrected,                                                           \
        (a += rest1 * (g - a), b = beta2 * b + rest2 * (g * g), c = c > b ? c : b,                                     \
            p = keep * p - corrected * (a / (sqrt(c) / root + epsilon))))                                              \
    X(adam, ADAM, "adam", 0, 2, ("exp_avg", "exp_avg_sq"), 0.001f, 0.999f, 1e-8f, RULE_COUPLED, bias_corrected,        \
        (a += rest1 * (g - a), b = beta2 * b + rest2 * (g * g),                                                        \
            p = keep * p - corrected * (a / (sqrt(b) / root + epsilon))))                                              \
    X(adamw_amsgrad, ADAMW, "adamw", RULE_AMSGRAD, 3, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),                     \
        0.001f, 0.999f, 1e-8f, RULE_DECOUPLED, bias_corrected,                                                         \
        (a += rest1 * (g - a), b = beta2 * b + rest2 * (g * g), c = c > b ? c : b,                                     \
            p = keep * p - corrected * (a / (sqrt(c) / root + epsilon))))                                              \
    X(adamw, ADAMW, "adamw", 0, 2, ("exp_avg", "exp_avg_sq"), 0.001f, 0.999f, 1e-8f, RULE_DECOUPLED, bias_corrected,   \
        (a += rest1 * (g - a), b = beta2 * b + rest2 * (g * g),                                                        \
            p = keep * p - corrected * (a / (sqrt(b) / root + epsilon))))                                              \
    X(rmsprop_centered_momentum, RMSPROP, "rmsprop", RULE_CENTERED | RULE_MOMENTUM, 3,                                 \
        ("square_avg", "grad_avg", "momentum_buffer"), 0.01f, 0.99f, 1e-8f, RULE_COUPLED, uncorrected,                 \
        (a = beta2 * a + rest2 * (g * g), b += rest2 * (g - b),                                                        \
            c = momentum * c + g / (sqrt(positive(a - b * b)) + epsilon), p -= rate * c))                              \
    X(rmsprop_centered, RMSPROP, "rmsprop", RULE_CENTERED, 2, ("square_avg", "grad_avg"), 0.01f, 0.99f, 1e-8f,         \
        RULE_COUPLED, uncorrected,                                                                                     \
        (a = beta2 * a + rest2 * (g * g), b += rest2 * (g - b),                                                        \
            p -= rate * (g / (sqrt(positive(a - b * b)) + epsilon))))                                                  \
    X(rmsprop_momentum, RMSPROP, "rmsprop", RULE_MOMENTUM, 2, ("square_avg", "momentum_buffer"), 0.01f, 0.99f, 1e-8f,  \
        RULE_COUPLED, uncorrected,                                                                                     \
        (a = beta2 * a + rest2 * (g * g), b = momentum * b + g / (sqrt(a) + epsilon), p -= rate * b))                  \
    X(rmsprop, RMSPROP, "rmsprop", 0, 1, ("square_avg"), 0.01f, 0.99f, 1e-8f, RULE_COUPLED, uncorrected,               \
        (a = beta2 * a + rest2 * (g * g), p -= rate * (g / (sqrt(a) + epsilon))))                                      \
    X(adagrad, ADAGRAD, "adagrad", 0, 1, ("sum"), 0.01f, 0.999f, 1e-10f, RULE_COUPLED, uncorrected,                    \
        (a += g * g, p -= rate * (g / (sqrt(a) + epsilon))))                                                           \
    X(nadam, NADAM, "nadam", 0, 2, ("exp_avg", "exp_avg_sq"), 0.002f, 0.999f, 1e-8f, RULE_COUPLED, nesterov_corrected, \
        (a += rest1 * (g - a), b = beta2 * b + rest2 * (g * g),                                                        \
            p -= (rate * g + corrected * a) / (sqrt(b) / root + epsilon)))                                             \
    X(lion, LION, "lion", 0, 1, ("exp_avg"), 0.0001f, 0.99f, 1e-8f, RULE_DECOUPLED, uncorrected,                       \
        (p = keep * p - rate * sign(beta1 * a + rest1 * g), a = beta2 * a + rest2 * g))
/* clang-format on */

/* Bits of `options`. */
enum { RULE_MOMENTUM = 1, RULE_NESTEROV = 2, RULE_CENTERED = 4, RULE_AMSGRAD = 8 };
enum { RULE_COUPLED, RULE_DECOUPLED };

/* RULE_STATES_n(X): X for each of n states. */
#define RULE_STATES_0(X)
#define RULE_STATES_1(X) X(a)
#define RULE_STATES_2(X) X(a) X(b)
#define RULE_STATES_3(X) X(a) X(b) X(c)

#endif
