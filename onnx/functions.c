/* Functions of a model. A call becomes copies of the function's nodes: their inputs and outputs get the names that
 * the call has for them, all other names are replaced by new ones, "#NUMBER/NAME". Branches of If become copies of
 * their nodes in the same way, and know which condition they need (struct guard). */
#include "onnx/functions.h"

#include "base/memory.h"
#include "onnx/operators.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A name that stands for an input or output of the call. */
struct port {
    const char *name;
    size_t position; /* among the inputs, then the outputs */
};

struct function {
    const Onnx__FunctionProto *proto;
    struct port *ports; /* by name; of two with one name, the earlier one comes first */
    size_t port_count;
    int64_t opset;
    bool active; /* its nodes are being written out */
};

struct expansion {
    struct function *functions; /* by domain, name and overload */
    size_t function_count;
    Onnx__NodeProto **nodes; /* the graph's, written out */
    struct expanded *made;
    Onnx__GraphProto *graph;
    int guard; /* of the branch that is being written out; -1: none */
    size_t count, capacity;
    size_t kept;  /* nodes of the graph that are not in `nodes` yet, which has room for them */
    size_t left;  /* bytes that copies may still take */
    char *mark;   /* no name of the graph begins with it */
    size_t calls; /* so far */
    int depth;
};

enum { DEEPEST = 64 };

/* ----------------------------------------------------------------------------------------------- the functions ---- */

static const char *domain_of(const char *domain)
{
    return strcmp(proto_text(domain), "ai.onnx") ? proto_text(domain) : "";
}

static int compare_keys(const char *const a[3], const char *const b[3])
{
    int order = 0;
    for (int i = 0; i < 3 && order == 0; i++) order = strcmp(a[i], b[i]);
    return order;
}

static int compare_functions(const void *a, const void *b)
{
    const Onnx__FunctionProto *x = ((const struct function *)a)->proto, *y = ((const struct function *)b)->proto;
    const char *const of_x[] = { domain_of(x->domain), proto_text(x->name), proto_text(x->overload) };
    const char *const of_y[] = { domain_of(y->domain), proto_text(y->name), proto_text(y->overload) };
    return compare_keys(of_x, of_y);
}

static int compare_call(const void *call, const void *function)
{
    const Onnx__NodeProto *node = call;
    const Onnx__FunctionProto *proto = ((const struct function *)function)->proto;
    const char *const of_node[] = { domain_of(node->domain), proto_text(node->op_type), proto_text(node->overload) };
    const char *const of_proto[] = { domain_of(proto->domain), proto_text(proto->name), proto_text(proto->overload) };
    return compare_keys(of_node, of_proto);
}

/* NULL: the node calls none. */
static struct function *called(const struct expansion *expansion, const Onnx__NodeProto *node)
{
    struct onnx_operator row;
    if (!*domain_of(node->domain) && operator_find(proto_text(node->op_type), &row) && !row.domain) return NULL;
    return bsearch(node, expansion->functions, expansion->function_count, sizeof *expansion->functions, compare_call);
}

static int compare_ports(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->position > y->position) - (x->position < y->position);
}

static const struct port *find_port(const struct function *function, const char *name)
{
    size_t low = 0, high = function->port_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(function->ports[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < function->port_count && !strcmp(function->ports[low].name, name) ? &function->ports[low] : NULL;
}

static tutti_status read_function(const Onnx__FunctionProto *proto, int64_t opset, struct function *function)
{
    const size_t count = proto->n_input + proto->n_output;
    tutti_status status = proto_check_text(proto_text(proto->name), "the name of a function");
    if (status == TUTTI_OK) status = proto_check_text(proto_text(proto->domain), "the domain of a function");
    if (status != TUTTI_OK) return status;
    *function = (struct function) { .proto = proto, .opset = opset, .port_count = count };
    function->ports = memory_new(count + 1, sizeof *function->ports);
    if (!function->ports) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        function->ports[i] =
            (struct port) { i < proto->n_input ? proto->input[i] : proto->output[i - proto->n_input], i };
    qsort(function->ports, count, sizeof *function->ports, compare_ports);
    for (size_t i = 0; i < proto->n_opset_import; i++)
        if (!*domain_of(proto->opset_import[i]->domain)) function->opset = proto->opset_import[i]->version;
    return TUTTI_OK;
}

static tutti_status read_functions(struct expansion *expansion, const Onnx__ModelProto *model, int64_t opset)
{
    tutti_status status = TUTTI_OK;
    expansion->functions = memory_new(model->n_functions, sizeof *expansion->functions);
    if (!expansion->functions) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < model->n_functions; i++) {
        TRY(read_function(model->functions[i], opset, &expansion->functions[i]));
        expansion->function_count++;
    }
    qsort(expansion->functions, expansion->function_count, sizeof *expansion->functions, compare_functions);
    for (size_t i = 1; i < expansion->function_count; i++)
        if (!compare_functions(&expansion->functions[i - 1], &expansion->functions[i]))
            FAIL(TUTTI_FORMAT, "two of its functions are named '%s::%s'",
                proto_text(expansion->functions[i].proto->domain), proto_text(expansion->functions[i].proto->name));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------- names ---- */

static size_t marks_at_start(const char *name)
{
    return strspn(proto_text(name), "#");
}

/* One "#" more than any name of the graph begins with. */
static tutti_status make_mark(struct expansion *expansion, const Onnx__GraphProto *graph)
{
    size_t most = 0;
    for (size_t i = 0; i < graph->n_initializer + graph->n_input; i++) {
        const char *name =
            i < graph->n_initializer ? graph->initializer[i]->name : graph->input[i - graph->n_initializer]->name;
        if (marks_at_start(name) > most) most = marks_at_start(name);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (marks_at_start(graph->node[i]->output[k]) > most) most = marks_at_start(graph->node[i]->output[k]);
    expansion->mark = memory_new(most + 2, 1);
    if (expansion->mark) memset(expansion->mark, '#', most + 1);
    return expansion->mark ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Counts bytes that proto_copy_node() does not count, and work. */
static tutti_status charge(struct expansion *expansion, size_t bytes)
{
    if (bytes > expansion->left)
        return fail(TUTTI_UNSUPPORTED, "its functions, written out, need more memory than a file may take");
    expansion->left -= bytes;
    return TUTTI_OK;
}

/* A function that a node calls, or a branch, while it is inlined. A branch defines the names of its nodes' outputs and
 * initialisers; all other names are those of the graph around it. */
struct scope {
    struct function *function; /* NULL: a branch */
    const Onnx__NodeProto *node;
    size_t number;
    int64_t opset;
    void *own; /* names of the branch: a tree of tsearch() */
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Translates a name in the scope to its name in the graph; the caller frees *made. */
static tutti_status translate(struct expansion *expansion, const struct scope *scope, const char *name, char **made)
{
    const struct port *port = scope->function ? find_port(scope->function, name) : NULL;
    const size_t inputs = scope->function ? scope->function->proto->n_input : 0;
    const char *given = NULL;
    *made = NULL;
    if (!*name)
        given = "";
    else if (!scope->function)
        given = tfind(name, &scope->own, compare_texts) ? NULL : name;
    else if (port && port->position < inputs)
        given = port->position < scope->node->n_input ? scope->node->input[port->position] : "";
    else if (port && port->position - inputs < scope->node->n_output)
        given = scope->node->output[port->position - inputs];
    if (given && (*given || !port || port->position < inputs))
        *made = memory_copy_text(given);
    else
        *made = memory_format("%s%zu/%s", expansion->mark, scope->number, name);
    return *made ? charge(expansion, strlen(*made)) : TUTTI_NO_MEMORY;
}

static tutti_status translate_all(struct expansion *expansion, const struct scope *scope, char **names, size_t count)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        char *made = NULL;
        status = translate(expansion, scope, names[i], &made);
        if (!made) break;
        free(names[i]);
        names[i] = made;
    }
    return status;
}

/* Names a node: the call's name, then its own. */
static tutti_status name_node(struct expansion *expansion, const struct scope *scope, Onnx__NodeProto *node)
{
    enum { LONGEST = 1024 };
    const char *outer = proto_text(scope->node->name), *inner = proto_text(node->name);
    if (!*outer || strlen(outer) + strlen(inner) > LONGEST) return TUTTI_OK;
    char *name = *inner ? memory_format("%s/%s", outer, inner) : memory_copy_text(outer);
    if (!name) return TUTTI_NO_MEMORY;
    free(node->name);
    node->name = name;
    return charge(expansion, strlen(name));
}

/* -------------------------------------------------------------------------------------------------- attributes ---- */

/* The call's attribute of this name, or the function's; NULL: there is none. */
static const Onnx__AttributeProto *referred(const struct scope *scope, const char *name)
{
    const Onnx__AttributeProto *found = proto_attribute(scope->node->attribute, scope->node->n_attribute, name);
    const Onnx__FunctionProto *proto = scope->function->proto;
    return found ? found : proto_attribute(proto->attribute_proto, proto->n_attribute_proto, name);
}

/* Replaces attributes that refer to an attribute of the call by it. If the call does not have it, they are
 * removed. */
static tutti_status resolve_attributes(struct expansion *expansion, const struct scope *scope, Onnx__NodeProto *node)
{
    tutti_status status = TUTTI_OK;
    size_t kept = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *own = node->attribute[i], *copy = own;
        if (status == TUTTI_OK && *proto_text(own->ref_attr_name)) {
            const Onnx__AttributeProto *from = referred(scope, own->ref_attr_name);
            copy = NULL;
            status = charge(expansion, scope->node->n_attribute + scope->function->proto->n_attribute_proto);
            if (status == TUTTI_OK && from) status = proto_copy_attribute(from, &expansion->left, &copy);
            if (copy) {
                char *name = copy->name;
                copy->name = own->name;
                own->name = name;
            }
            proto_free_attribute(own);
        }
        if (copy) node->attribute[kept++] = copy;
    }
    node->n_attribute = kept;
    return status;
}

/* Translates the names in a graph within the scope. In a function, its attributes are resolved, too; in a branch, names
 * that the graph defines itself follow later, when it is inlined. proto_read() has limited the depth of branches. */
static tutti_status translate_graph(struct expansion *expansion, const struct scope *scope, Onnx__GraphProto *graph)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < graph->n_initializer && scope->function && status == TUTTI_OK; i++)
        if (graph->initializer[i]->name) status = translate_all(expansion, scope, &graph->initializer[i]->name, 1);
    for (size_t i = 0; i < graph->n_output && status == TUTTI_OK; i++)
        if (graph->output[i]->name) status = translate_all(expansion, scope, &graph->output[i]->name, 1);
    for (size_t i = 0; i < graph->n_node && status == TUTTI_OK; i++) {
        Onnx__NodeProto *node = graph->node[i];
        status = translate_all(expansion, scope, node->input, node->n_input);
        if (status == TUTTI_OK && scope->function)
            status = translate_all(expansion, scope, node->output, node->n_output);
        if (status == TUTTI_OK && scope->function) status = resolve_attributes(expansion, scope, node);
        for (size_t k = 0; k < node->n_attribute && status == TUTTI_OK; k++)
            if (node->attribute[k]->g) status = translate_graph(expansion, scope, node->attribute[k]->g);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------------- calls ---- */

/* Takes the node. There is room for the graph's own nodes. */
static void push(struct expansion *expansion, Onnx__NodeProto *node, int64_t opset)
{
    expansion->nodes[expansion->count] = node;
    expansion->made->guard_of[expansion->count] = expansion->guard;
    expansion->made->opsets[expansion->count++] = opset;
}

static tutti_status make_room(struct expansion *expansion)
{
    if (expansion->count + expansion->kept < expansion->capacity) return TUTTI_OK;
    const size_t capacity = 2 * expansion->capacity + 16;
    void *nodes = realloc(expansion->nodes, capacity * sizeof *expansion->nodes);
    if (nodes) expansion->nodes = nodes;
    struct expanded *made = expansion->made;
    void *opsets = realloc(made->opsets, capacity * sizeof *made->opsets);
    if (opsets) made->opsets = opsets;
    void *guards = realloc(made->guard_of, capacity * sizeof *made->guard_of);
    if (guards) made->guard_of = guards;
    if (!nodes || !opsets || !guards) return fail(TUTTI_NO_MEMORY, "there is no memory for %zu nodes", capacity);
    expansion->capacity = capacity;
    return TUTTI_OK;
}

static tutti_status expand_call(struct expansion *expansion, struct function *function, const Onnx__NodeProto *node);
static tutti_status expand_if(struct expansion *expansion, const Onnx__NodeProto *node, int64_t opset);

static bool is_if(const Onnx__NodeProto *node)
{
    return !*domain_of(node->domain) && !strcmp(proto_text(node->op_type), "If") && node->n_attribute > 0;
}

/* Takes the node: inlines what it calls, or keeps it. */
static tutti_status add_made(struct expansion *expansion, Onnx__NodeProto *node, int64_t opset)
{
    struct function *function = called(expansion, node);
    const bool branches = is_if(node);
    tutti_status status = function ? expand_call(expansion, function, node)
        : branches                 ? expand_if(expansion, node, opset)
                                   : make_room(expansion);
    if (function || branches || status != TUTTI_OK)
        proto_free_node(node);
    else
        push(expansion, node, opset);
    return status;
}

static tutti_status add_copy(struct expansion *expansion, const struct scope *scope, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = NULL;
    tutti_status status = proto_copy_node(node, &expansion->left, &copy);
    if (status == TUTTI_OK) status = translate_all(expansion, scope, copy->input, copy->n_input);
    if (status == TUTTI_OK) status = translate_all(expansion, scope, copy->output, copy->n_output);
    if (status == TUTTI_OK && scope->function) status = name_node(expansion, scope, copy);
    if (status == TUTTI_OK && scope->function) status = resolve_attributes(expansion, scope, copy);
    for (size_t i = 0; status == TUTTI_OK && i < copy->n_attribute; i++)
        if (copy->attribute[i]->g) status = translate_graph(expansion, scope, copy->attribute[i]->g);
    if (status == TUTTI_OK) return add_made(expansion, copy, scope->opset);
    proto_free_node(copy);
    return status;
}

/* Adds an Identity for an output of the function that is also one of its inputs, or another output. */
static tutti_status add_same(struct expansion *expansion, const struct scope *scope, size_t output)
{
    Onnx__NodeProto *copy = NULL, same = ONNX__NODE_PROTO__INIT;
    char *from = NULL, *to = scope->node->output[output];
    tutti_status status = translate(expansion, scope, scope->function->proto->output[output], &from);
    if (status == TUTTI_OK && *to && strcmp(from, to)) {
        same.op_type = (char[]) { "Identity" };
        same.n_input = same.n_output = 1;
        same.input = &from;
        same.output = &to;
        status = proto_copy_node(&same, &expansion->left, &copy);
        if (status == TUTTI_OK) status = add_made(expansion, copy, scope->opset);
    }
    free(from);
    return status;
}

static tutti_status expand_call(struct expansion *expansion, struct function *function, const Onnx__NodeProto *node)
{
    tutti_status status = TUTTI_OK;
    const Onnx__FunctionProto *proto = function->proto;
    const struct scope scope = { function, node, expansion->calls++, function->opset };
    if (function->active) return fail(TUTTI_FORMAT, "it calls itself");
    if (expansion->depth == DEEPEST)
        return fail(TUTTI_UNSUPPORTED, "functions call each other more than %d deep", DEEPEST);
    if (node->n_input > proto->n_input || node->n_output > proto->n_output)
        return fail(TUTTI_FORMAT, "it has %zu inputs and %zu outputs, and is called with %zu and %zu", proto->n_input,
            proto->n_output, node->n_input, node->n_output);
    function->active = true;
    expansion->depth++;
    TRY(charge(expansion, sizeof scope));
    for (size_t i = 0; i < proto->n_node; i++) TRY(add_copy(expansion, &scope, proto->node[i]));
    for (size_t i = 0; i < node->n_output; i++) TRY(add_same(expansion, &scope, i));
done:
    function->active = false;
    expansion->depth--;
    return status;
}

/* ---------------------------------------------------------------------------------------------------- branches ---- */

static void *add_own(void **own, char *name)
{
    return *name ? tsearch(name, own, compare_texts) : own;
}

static tutti_status find_own(const Onnx__GraphProto *branch, void **own)
{
    bool good = true;
    for (size_t i = 0; i < branch->n_initializer; i++)
        if (branch->initializer[i]->name) good &= add_own(own, branch->initializer[i]->name) != NULL;
    for (size_t i = 0; i < branch->n_node; i++)
        for (size_t k = 0; k < branch->node[i]->n_output; k++) good &= add_own(own, branch->node[i]->output[k]) != NULL;
    return good ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static void keep_own(void *name)
{
    (void)name; /* it is the branch's */
}

/* An initialiser of the branch becomes one of the graph. */
static tutti_status add_tensor(struct expansion *expansion, const struct scope *scope, const Onnx__TensorProto *tensor)
{
    Onnx__GraphProto *graph = expansion->graph;
    Onnx__TensorProto *copy = NULL;
    void *list = realloc(graph->initializer, (graph->n_initializer + 1) * sizeof *graph->initializer);
    if (!list) return TUTTI_NO_MEMORY;
    graph->initializer = list;
    tutti_status status = proto_copy_tensor(tensor, &expansion->left, &copy);
    if (status == TUTTI_OK && copy->name) status = translate_all(expansion, scope, &copy->name, 1);
    if (status == TUTTI_OK)
        graph->initializer[graph->n_initializer++] = copy;
    else
        proto_free_tensor(copy);
    return status;
}

static tutti_status add_guard(struct expansion *expansion, const char *condition, bool wanted)
{
    struct expanded *made = expansion->made;
    void *guards = realloc(made->guards, (size_t)(made->guard_count + 1) * sizeof *made->guards);
    if (!guards) return TUTTI_NO_MEMORY;
    made->guards = guards;
    char *copy = memory_copy_text(condition);
    if (!copy) return TUTTI_NO_MEMORY;
    made->guards[made->guard_count] = (struct guard) { copy, wanted, expansion->guard };
    expansion->guard = made->guard_count++;
    return charge(expansion, strlen(copy) + sizeof *made->guards);
}

/* Inlines a branch. results[i]: the name of its output i, which the caller frees. */
static tutti_status expand_branch(
    struct expansion *expansion, const Onnx__NodeProto *node, bool wanted, int64_t opset, char **results)
{
    const Onnx__AttributeProto *attribute =
        proto_attribute(node->attribute, node->n_attribute, wanted ? "then_branch" : "else_branch");
    const int around = expansion->guard;
    struct scope scope = { .number = expansion->calls++, .opset = opset };
    const Onnx__GraphProto *graph = attribute ? attribute->g : NULL;
    if (!graph || graph->n_output != node->n_output || node->n_input != 1)
        return fail(TUTTI_FORMAT, "it needs a condition and two branches with %zu outputs", node->n_output);
    tutti_status status = find_own(graph, &scope.own);
    if (status == TUTTI_OK) status = add_guard(expansion, node->input[0], wanted);
    for (size_t i = 0; i < graph->n_initializer && status == TUTTI_OK; i++)
        status = add_tensor(expansion, &scope, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_node && status == TUTTI_OK; i++)
        status = add_copy(expansion, &scope, graph->node[i]);
    for (size_t i = 0; i < node->n_output && status == TUTTI_OK; i++)
        status = translate(expansion, &scope, proto_text(graph->output[i]->name), &results[i]);
    tdestroy(scope.own, keep_own);
    expansion->guard = around;
    return status;
}

/* Inlines both branches, then adds for each output an If with the condition and the results of the branches. */
static tutti_status expand_if(struct expansion *expansion, const Onnx__NodeProto *node, int64_t opset)
{
    const size_t count = node->n_output;
    tutti_status status = TUTTI_OK;
    char **results = memory_new(2 * count + 1, sizeof *results);
    if (!results) return TUTTI_NO_MEMORY;
    if (++expansion->depth > DEEPEST) status = fail(TUTTI_UNSUPPORTED, "branches lie more than %d deep", DEEPEST);
    if (status == TUTTI_OK) status = expand_branch(expansion, node, true, opset, results);
    if (status == TUTTI_OK) status = expand_branch(expansion, node, false, opset, results + count);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        Onnx__NodeProto *copy = NULL, one = ONNX__NODE_PROTO__INIT;
        one.op_type = node->op_type;
        one.name = node->name;
        one.n_input = 3;
        one.n_output = 1;
        one.input = (char *[]) { node->input[0], results[i], results[count + i] };
        one.output = &node->output[i];
        status = make_room(expansion);
        if (status == TUTTI_OK) status = proto_copy_node(&one, &expansion->left, &copy);
        if (status == TUTTI_OK) push(expansion, copy, opset);
    }
    expansion->depth--;
    for (size_t i = 0; i < 2 * count; i++) free(results[i]);
    free(results);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- graph ---- */

/* Afterwards every node of the graph is in the list or was inlined, also after a failure. */
static tutti_status expand_graph(struct expansion *expansion, Onnx__GraphProto *graph, int64_t opset)
{
    tutti_status status = TUTTI_OK;
    expansion->kept = graph->n_node;
    status = make_room(expansion);
    while (status == TUTTI_OK && expansion->capacity < graph->n_node) status = make_room(expansion);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        struct function *function = status == TUTTI_OK ? called(expansion, node) : NULL;
        const bool branches = status == TUTTI_OK && is_if(node);
        expansion->kept--;
        if (!function && !branches) {
            push(expansion, node, opset);
            continue;
        }
        status = proto_check_text(proto_text(node->name), "the name of a node");
        if (status == TUTTI_OK)
            status = branches ? expand_if(expansion, node, opset) : expand_call(expansion, function, node);
        if (status != TUTTI_OK && branches)
            status_context(status, "If '%s'", proto_text(node->name));
        else if (status != TUTTI_OK)
            status_context(status, "function %s::%s, called by '%s'", proto_text(node->domain),
                proto_text(node->op_type), proto_text(node->name));
        proto_free_node(node);
    }
    free(graph->node);
    graph->node = expansion->nodes;
    graph->n_node = expansion->count;
    expansion->nodes = NULL;
    return status;
}

static bool has_branches(const Onnx__GraphProto *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->n_node; i++) any |= is_if(graph->node[i]);
    return any;
}

tutti_status functions_expand(Onnx__ModelProto *model, int64_t opset, struct expanded *made)
{
    tutti_status status = TUTTI_OK;
    struct expansion expansion = { .left = proto_copies(model), .made = made, .graph = model->graph, .guard = -1 };
    if (model->n_functions == 0 && !has_branches(model->graph)) return TUTTI_OK;
    TRY(make_mark(&expansion, model->graph));
    TRY(read_functions(&expansion, model, opset));
    TRY(expand_graph(&expansion, model->graph, opset));
done:
    for (size_t i = 0; i < expansion.function_count; i++) free(expansion.functions[i].ports);
    free(expansion.functions);
    free(expansion.nodes);
    free(expansion.mark);
    return status;
}

void expanded_free(struct expanded *made)
{
    for (int i = 0; i < made->guard_count; i++) free(made->guards[i].condition);
    free(made->guards);
    free(made->guard_of);
    free(made->opsets);
}
