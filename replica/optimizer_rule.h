/* The rules of optimizers, for the files optimizer*.c: a table of what clkernels/optimizer_rules.h has. */
#ifndef REPLICA_OPTIMIZER_RULE_H
#define REPLICA_OPTIMIZER_RULE_H

#include "replica/optimizer.h"

/* Sets the bias corrections of step `step` = 1, 2, ..., and may multiply the learning rate. */
typedef void optimizer_corrections(const struct optimizer *optimizer, double step, struct step_constants *constants);

struct optimizer_rule {
    int number; /* of its line in the table */
    const char *kernel, *name;
    tutti_optimizer kind;
    unsigned options;
    int states;
    const char *names[OPTIMIZER_STATES - 1];
    float learning_rate, beta2, epsilon;
    bool decoupled;
    optimizer_corrections *correct;
};

/* Returns the first rule of the optimizer whose options are all set; NULL if the optimizer does not exist. */
const struct optimizer_rule *optimizer_rule_of(const struct optimizer *optimizer);

/* Returns whether updates change this parameter as a running statistic; returns the momentum of such a one. */
bool optimizer_updates_statistic(const struct optimizer *optimizer, const tutti_network *network, size_t parameter);
float optimizer_statistic_momentum(const struct optimizer *optimizer, const tutti_network *network, size_t parameter);

#endif
