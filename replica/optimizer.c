/* The rules of optimizers, their options and states, and the constants of a step. The updates by them:
 * optimizer_host.c, optimizer_emit.c; the groups' rates and decays: optimizer_groups.c. */
#include "replica/optimizer.h"

#include "base/status.h"
#include "base/text.h"
#include "clkernels/optimizer_rules.h"
#include "replica/optimizer_rule.h"

#include <float.h>
#include <math.h>

/* ------------------------------------------------------------------------------------------------- rules ---- */

static void uncorrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    (void)optimizer, (void)step;
    constants->bias_correction1 = constants->bias_correction2 = 1;
}

static void bias_corrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    constants->bias_correction1 = (float)(1 - pow(optimizer->beta1, step));
    constants->bias_correction2 = (float)(1 - pow(optimizer->beta2, step));
}

/* NAdam's beta1 of a step, with PyTorch's default of momentum_decay. */
static double nadam_beta1(const struct optimizer *optimizer, double step)
{
    return optimizer->beta1 * (1 - 0.5 * pow(0.96, 0.004 * step));
}

/* The learning rate gets the factor of the gradient; divided by the first correction, it has that of the mean. The
 * product of all beta1 is soon too small to change 1 - product. */
static void nesterov_corrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    const double next = nadam_beta1(optimizer, step + 1);
    double product = 1;
    for (double t = 1; t <= step && product > DBL_EPSILON / 4; t++) product *= nadam_beta1(optimizer, t);
    const double factor = (1 - nadam_beta1(optimizer, step)) / (1 - product);
    constants->learning_rate = (float)(constants->learning_rate * factor);
    constants->bias_correction1 = (float)(factor * (1 - product * next) / next);
    constants->bias_correction2 = (float)(1 - pow(optimizer->beta2, step));
}

/* Numbers of the rules, by their names. */
#define NUMBER(rule, ...) NUMBER_##rule,
enum { OPTIMIZER_RULES(NUMBER) RULES };

#define NAMES(...)  \
    {               \
        __VA_ARGS__ \
    }
#define ROW(rule, KIND, title, options, states, names, rate, beta2, epsilon, decay, corrections, update) \
    { NUMBER_##rule, #rule, title, TUTTI_##KIND, options, states, NAMES names, rate, beta2, epsilon,     \
        decay == RULE_DECOUPLED, corrections },
static const struct optimizer_rule rules[] = { OPTIMIZER_RULES(ROW) };

static unsigned options_of(const struct optimizer *optimizer)
{
    unsigned given = (optimizer->centered ? RULE_CENTERED : 0) | (optimizer->amsgrad ? RULE_AMSGRAD : 0);
    if (optimizer->momentum != 0) given |= RULE_MOMENTUM | (optimizer->nesterov ? RULE_NESTEROV : 0);
    return given;
}

const struct optimizer_rule *optimizer_rule_of(const struct optimizer *optimizer)
{
    const unsigned given = options_of(optimizer);
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == optimizer->kind && (rules[i].options & ~given) == 0) return &rules[i];
    return NULL;
}

/* ----------------------------------------------------------------------------------------------- options ---- */

static bool in_range(float value, float low, float high)
{
    return value >= low && value < high; /* false for NaN */
}

/* Options that any rule of the optimizer is for. */
static unsigned options_known(tutti_optimizer kind)
{
    unsigned known = 0;
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == kind) known |= rules[i].options;
    return known;
}

/* Refuses an option that no rule of the optimizer has, and lists those that have it. */
static tutti_status no_option(const struct optimizer *optimizer, const char *name, unsigned option)
{
    struct text others = { 0 };
    tutti_optimizer last = optimizer->kind;
    for (int i = 0; i < RULES; i++) {
        if (!(rules[i].options & option) || rules[i].kind == last) continue; /* rules of one kind are neighbours */
        text_append(&others, "%s%s", others.size ? ", " : "", rules[i].name);
        last = rules[i].kind;
    }
    const tutti_status status = fail(TUTTI_INVALID, "%s is set, but the optimizer is %s: those with this option are %s",
        name, tutti_optimizer_name(optimizer->kind), others.data ? others.data : "others");
    text_free(&others);
    return status;
}

static tutti_status check(const struct optimizer *optimizer)
{
    if (!in_range(optimizer->learning_rate, 0, INFINITY))
        return fail(TUTTI_INVALID, "the learning rate is %g: it must be positive and finite", optimizer->learning_rate);
    if (!in_range(optimizer->momentum, 0, 1))
        return fail(TUTTI_INVALID, "momentum is %g: it must be at least 0 and below 1", optimizer->momentum);
    if (optimizer->kind == TUTTI_SGD && optimizer->nesterov && optimizer->momentum == 0)
        return fail(TUTTI_INVALID, "nesterov is set, but momentum is 0: it must be above 0");
    const unsigned missing = options_of(optimizer) & ~options_known(optimizer->kind);
    if (missing & RULE_CENTERED) return no_option(optimizer, "centered", RULE_CENTERED);
    if (missing & RULE_AMSGRAD) return no_option(optimizer, "amsgrad", RULE_AMSGRAD);
    if (!in_range(optimizer->weight_decay, 0, INFINITY))
        return fail(TUTTI_INVALID, "weight decay is %g: it must be at least 0 and finite", optimizer->weight_decay);
    if (!in_range(optimizer->beta1, 0, 1) || !in_range(optimizer->beta2, 0, 1))
        return fail(TUTTI_INVALID, "beta1 and beta2 are %g and %g: they must be at least 0 and below 1",
            optimizer->beta1, optimizer->beta2);
    if (!in_range(optimizer->epsilon, 0, INFINITY))
        return fail(TUTTI_INVALID, "epsilon is %g: it must be positive and finite", optimizer->epsilon);
    if (!(optimizer->clip_norm >= 0))
        return fail(TUTTI_INVALID, "clip_norm is %g: it must be positive, or 0 not to clip", optimizer->clip_norm);
    if (!in_range(optimizer->ema_decay, 0, 1))
        return fail(TUTTI_INVALID, "ema_decay is %g: it must be at least 0 and below 1", optimizer->ema_decay);
    return TUTTI_OK;
}

tutti_status optimizer_init(struct optimizer *optimizer, const tutti_training *training)
{
    *optimizer = (struct optimizer) {
        .kind = training->optimizer,
        .momentum = training->momentum,
        .nesterov = training->nesterov,
        .centered = training->centered,
        .amsgrad = training->amsgrad,
        .weight_decay = training->weight_decay,
        .clip_norm = training->clip_norm,
        .ema_decay = training->ema_decay,
    };
    const struct optimizer_rule *rule = optimizer_rule_of(optimizer);
    if (!rule)
        return fail(TUTTI_INVALID, "optimizer %d does not exist: pass one of tutti_optimizer", (int)optimizer->kind);
    optimizer->learning_rate = training->learning_rate != 0 ? training->learning_rate : rule->learning_rate;
    optimizer->beta1 = training->beta1 != 0 ? training->beta1 : 0.9f;
    optimizer->beta2 = training->beta2 != 0 ? training->beta2 : rule->beta2;
    optimizer->epsilon = training->epsilon != 0 ? training->epsilon : rule->epsilon;
    return check(optimizer);
}

const char *tutti_optimizer_name(tutti_optimizer kind)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == kind) return rules[i].name;
    return NULL;
}

int optimizer_states(const struct optimizer *optimizer)
{
    return optimizer_rule_of(optimizer)->states + (optimizer->ema_decay > 0);
}

int optimizer_ema_state(const struct optimizer *optimizer)
{
    return optimizer->ema_decay > 0 ? optimizer_rule_of(optimizer)->states : -1;
}

const char *optimizer_state_name(const struct optimizer *optimizer, int state)
{
    if (state == optimizer_ema_state(optimizer)) return "parameter"; /* files have the EMA as the weights: swapped */
    return optimizer_rule_of(optimizer)->names[state];
}

bool optimizer_counts_steps(const struct optimizer *optimizer)
{
    return optimizer_rule_of(optimizer)->correct != uncorrected;
}

void optimizer_constants(
    const struct optimizer *optimizer, float learning_rate, int64_t step, struct step_constants *constants)
{
    constants->learning_rate = learning_rate;
    optimizer_rule_of(optimizer)->correct(optimizer, (double)step + 1, constants);
    constants->unscale = 1;
}

bool optimizer_updates_statistic(const struct optimizer *optimizer, const tutti_network *network, size_t parameter)
{
    return network->parameters[parameter].kind == PARAMETER_STATISTIC &&
        (!optimizer->uses || optimizer->uses[parameter] > 0);
}

float optimizer_statistic_momentum(const struct optimizer *optimizer, const tutti_network *network, size_t parameter)
{
    const int uses = optimizer->uses ? optimizer->uses[parameter] : 1;
    return parameter_momentum(network->parameters[parameter].momentum, uses);
}
