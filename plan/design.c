/* Designs (graph/operation.h), one for each implementation and problem of a plan. Rewriting asks for those of
 * implementations with statistics() before the nodes have their final form. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/node.h"

/* A node's own inputs come first. Designs read at most this many of them. */
enum { OWN_INPUTS = 3, OWN_VALUES = OWN_INPUTS + 1, VALUE_KEY = 3 + TUTTI_MAX_RANK };

/* What a design may depend on, besides the device and the plan's options: shapes and attributes of the node's own
 * operation; for implementations without statistics(), also layouts, types and fusions. A rank of -1: the value is
 * absent. */
struct own {
    struct value values[OWN_VALUES];
    struct node node;
    struct problem problem;
};

struct plan_design {
    const struct operation *operation;
    const struct implementation *implementation;
    int64_t key[OWN_VALUES * VALUE_KEY + 1];
    struct attribute_values attributes;
    void *made;
};

static void set_own(struct own *own, const struct problem *problem, const struct implementation *implementation)
{
    const struct node *node = problem->node;
    const bool final = !implementation->statistics;
    memset(own, 0, sizeof *own);
    own->node = (struct node) { .operation = node->operation, .attributes = node->attributes };
    if (final) {
        memcpy(own->node.fusions, node->fusions, sizeof node->fusions);
        own->node.fusion_count = node->fusion_count;
    }
    own->problem = (struct problem) {
        .node = &own->node, .device = problem->device, .exact = problem->exact, .compute = problem->compute
    };
    for (int i = 0; i < OWN_VALUES; i++) {
        const struct value *value = i < OWN_INPUTS ? problem->inputs[i] : problem->outputs[0];
        const bool is_own = value && (i == OWN_INPUTS || operation_input(node->operation, i));
        own->values[i].shape.rank = -1;
        if (!is_own) continue;
        own->values[i] = (struct value) {
            .shape = value->shape, .axes = value->axes, .batched = value->batched, .rows = value->rows
        };
        if (final) own->values[i].type = value->type, own->values[i].layout = value->layout;
        const struct value **place = i < OWN_INPUTS ? &own->problem.inputs[i] : &own->problem.outputs[0];
        *place = &own->values[i];
    }
}

static void set_key(const struct own *own, int64_t *key)
{
    for (int i = 0; i < OWN_VALUES; i++) {
        const tutti_shape *shape = &own->values[i].shape;
        *key++ = own->values[i].type;
        *key++ = own->values[i].layout;
        *key++ = shape->rank;
        for (int j = 0; j < TUTTI_MAX_RANK; j++) *key++ = j < shape->rank ? shape->sizes[j] : 0;
    }
    *key = node_fusions(&own->node);
}

static void *make(const struct own *own, const struct implementation *implementation)
{
    void *made = memory_new(1, implementation->design_bytes);
    if (made) implementation->design(&own->problem, made);
    return made;
}

void *design_new(const struct problem *problem, const struct implementation *implementation)
{
    struct own own;
    set_own(&own, problem, implementation);
    return make(&own, implementation);
}

const void *plan_design(struct plan *plan, const struct problem *problem, const struct implementation *implementation)
{
    struct own own;
    struct plan_design design = { problem->node->operation, implementation, .attributes = problem->node->attributes };
    set_own(&own, problem, implementation);
    set_key(&own, design.key);
    for (size_t i = 0; i < plan->designs.count; i++) {
        const struct plan_design *known = &plan->designs.items[i];
        if (known->operation == design.operation && known->implementation == implementation &&
            !memcmp(known->key, design.key, sizeof design.key) &&
            attributes_equal(design.operation->attributes, &known->attributes, &design.attributes))
            return known->made;
    }
    if (memory_grow((void **)&plan->designs.items, &plan->designs.capacity, plan->designs.count + 1, sizeof design) !=
        TUTTI_OK)
        return NULL;
    design.made = make(&own, implementation);
    if (design.made) plan->designs.items[plan->designs.count++] = design;
    return design.made;
}

void plan_designs_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->designs.count; i++) free(plan->designs.items[i].made);
    free(plan->designs.items);
}

tutti_status pass_design(struct plan *plan)
{
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) continue;
        const struct implementation *implementation = node->operation->implementations[node->implementation];
        if (!implementation->design) continue;
        struct problem problem;
        problem_of(plan, node, &problem);
        node->design = plan_design(plan, &problem, implementation);
        if (!node->design) return TUTTI_NO_MEMORY;
    }
    return TUTTI_OK;
}
