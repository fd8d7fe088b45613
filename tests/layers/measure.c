/* Inspects the plan of a case: every choice of implementations, times, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "runtime/profile.h"
#include "tests/layers/expect.h"

static tutti_status open_plan(const struct expectation *e, struct device *device, const char *force, bool explain,
    cl_mem *parameters, cl_mem *gradients, cl_mem *frozen, struct plan **plan)
{
    tutti_status status = TUTTI_OK;
    size_t bytes = ((size_t)e->network->total_floats + 1) * sizeof(float);
    TRY(buffer_new(device, bytes, parameters));
    TRY(buffer_new(device, bytes, gradients));
    TRY(buffer_new(device, ((size_t)e->network->frozen_floats + 1) * sizeof(float), frozen));
    struct plan_options options = { .mode = PLAN_TRAIN,
        .sizes.samples = e->samples,
        .objective = e->objective,
        .seeded = !e->has_loss,
        .force = force,
        .precision = e->precision,
        .explain = explain,
        .parameters = *parameters,
        .frozen = *frozen,
        .gradients = *gradients };
    TRY(plan_new(device, e->network, &options, plan));
done:
    return status;
}

static void close_plan(cl_mem *parameters, cl_mem *gradients, cl_mem *frozen, struct plan *plan)
{
    plan_free(plan);
    buffer_free(parameters);
    buffer_free(gradients);
    buffer_free(frozen);
}

/* The n-th implementation that that takes the node, besides the plan's choice, counted from 0; NULL if there are not so
 * many.
 */
static const struct implementation *nth_other(const struct plan *plan, const struct node *node, int n)
{
    struct problem problem;
    problem_of(plan, node, &problem);
    const struct implementation *chosen = node->operation->implementations[node->implementation];
    for (const struct implementation *const *i = node->operation->implementations; i && *i; i++)
        if (*i != chosen && (!(*i)->fits || !(*i)->fits(&problem)) && n-- == 0) return *i;
    return NULL;
}

static bool all_take(
    const struct plan *plan, const struct operation *operation, const struct implementation *implementation)
{
    struct problem problem;
    for (size_t i = 0; i < plan->graph.node_count; i++) {
        if (plan->graph.nodes[i].operation != operation) continue;
        problem_of(plan, &plan->graph.nodes[i], &problem);
        if (implementation->fits && implementation->fits(&problem)) return false;
    }
    return true;
}

/* "operation=implementation", once for each operation; "|last" of its list after, if not all of its nodes take it. */
static void append_choice(const struct plan *plan, struct text *to, const struct operation *operation,
    const struct implementation *implementation)
{
    const char *name = operation->name;
    const struct implementation *const *last = operation->implementations;
    size_t length = strlen(name);
    for (const char *at = to->data; at && (at = strstr(at, name)); at += length)
        if ((at == to->data || at[-1] == ',') && at[length] == '=') return;
    text_append(to, "%s%s=%s", to->size ? "," : "", name, implementation->name);
    if (all_take(plan, operation, implementation)) return;
    while (last[1]) last++;
    text_append(to, "|%s", (*last)->name);
}

void describe_choices(const struct plan *plan, struct text *chosen, struct text *others)
{
    for (size_t i = 0; i < plan->graph.node_count; i++) {
        const struct node *node = &plan->graph.nodes[i];
        if (node->operation->alias) continue;
        append_choice(plan, chosen, node->operation, node->operation->implementations[node->implementation]);
        for (int n = 0; others && n < CHOICES; n++) {
            const struct implementation *other = nth_other(plan, node, n);
            if (other) append_choice(plan, &others[n], node->operation, other);
        }
    }
}

static void print_node(const struct plan *plan, size_t n)
{
    const struct node *node = &plan->graph.nodes[n];
    double best = 0, flops = 0, bytes = 0;
    for (size_t i = 0; i < plan->launches.count; i++) {
        const struct launch *launch = &plan->launches.launches[i];
        if (launch->node != (int)n) continue;
        best += launch->seconds;
        flops += launch->flops;
        bytes += launch->bytes;
    }
    if (best <= 0) return;
    printf("  %-26s %-16s %9.3f ms %8.1f GFLOP/s %7.1f GB/s\n", node->operation->name,
        node->operation->implementations[node->implementation]->name, best * 1e3, flops / best * 1e-9,
        bytes / best * 1e-9);
}

/* The best of several runs, launch by launch. */
static tutti_status fastest_run(struct plan *plan)
{
    double *best = memory_new(plan->launches.count + 1, sizeof *best);
    tutti_status status = best ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (int run = 0; status == TUTTI_OK && run < 5; run++) {
        status = profile_run(&plan->launches);
        for (size_t i = 0; i < plan->launches.count; i++) {
            double seconds = plan->launches.launches[i].seconds;
            if (run == 0 || seconds < best[i]) best[i] = seconds;
        }
    }
    for (size_t i = 0; status == TUTTI_OK && i < plan->launches.count; i++)
        plan->launches.launches[i].seconds = best[i];
    free(best);
    return status;
}

bool measure_speed(const struct expectation *e, struct device *device, const char *force)
{
    cl_mem parameters = NULL, gradients = NULL, frozen = NULL;
    struct plan *plan = NULL;
    tutti_status status = open_plan(e, device, force, false, &parameters, &gradients, &frozen, &plan);
    if (status == TUTTI_OK) status = fastest_run(plan);
    if (status == TUTTI_OK) {
        printf("%s  (%s)\n", e->c.line, device->can.name);
        for (size_t n = 0; n < plan->graph.node_count; n++)
            if (!plan->graph.nodes[n].operation->alias) print_node(plan, n);
    } else {
        fprintf(stderr, "%s: %s\n", e->c.line, tutti_message(NULL));
    }
    close_plan(&parameters, &gradients, &frozen, plan);
    return status == TUTTI_OK;
}

bool print_support(const struct expectation *e, struct device *device)
{
    cl_mem parameters = NULL, gradients = NULL, frozen = NULL;
    struct plan *plan = NULL;
    tutti_status status = open_plan(e, device, NULL, true, &parameters, &gradients, &frozen, &plan);
    if (status == TUTTI_OK)
        printf("%s  (%s)\n%s", e->c.line, device->can.name, plan->explanation.choices ? plan->explanation.choices : "");
    else
        fprintf(stderr, "%s: %s\n", e->c.line, tutti_message(NULL));
    close_plan(&parameters, &gradients, &frozen, plan);
    return status == TUTTI_OK;
}
