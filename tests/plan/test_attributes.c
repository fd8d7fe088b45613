/* The descriptions of all operations' attributes, and what graphs do by them. */
#include "tests/plan/made.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "layers/conv2d/conv2d.h"
#include "layers/layers.h"

static size_t count_operations(void)
{
    size_t count = 0;
    while (operations[count]) count++;
    return count;
}

static size_t bytes_of(const struct attribute *member)
{
    switch (member->kind) {
    case ATTRIBUTE_NUMBER: return sizeof(float);
    case ATTRIBUTE_FLAG: return sizeof(bool);
    case ATTRIBUTE_AXIS: return sizeof(int);
    case ATTRIBUTE_AXES: return sizeof(unsigned);
    case ATTRIBUTE_ORDER: return TUTTI_MAX_RANK * sizeof(int);
    case ATTRIBUTE_SHAPE: return sizeof(tutti_shape);
    case ATTRIBUTE_ACTIVATION: return sizeof(enum activation);
    case ATTRIBUTE_LONG: return sizeof(int64_t);
    case ATTRIBUTE_PLACES: return TUTTI_MAX_RANK * sizeof(int64_t);
    case ATTRIBUTE_POINTER: return sizeof(void *);
    case ATTRIBUTE_INT:
    case ATTRIBUTE_SIZES:
    case ATTRIBUTE_NUMBERS:
    case ATTRIBUTE_OTHER: break;
    }
    return member->bytes;
}

/* Only padding lies between two described members. */
START_TEST(every_member_is_described)
{
    for (size_t i = 0; i < count_operations(); i++) {
        const struct attribute_type *type = operations[i]->attributes;
        const char *name = operations[i]->name;
        size_t end = 0;
        if (!type) continue;
        ck_assert_msg(type->bytes <= ATTRIBUTE_BYTES, "%s: %zu bytes", name, type->bytes);
        for (const struct attribute *a = type->members; a->name; a++) {
            ck_assert_msg(a->offset >= end && a->offset - end < sizeof(int64_t), "%s: before %s", name, a->name);
            ck_assert_msg(a->bytes == bytes_of(a), "%s: %s has %zu bytes", name, a->name, a->bytes);
            end = a->offset + a->bytes;
            for (const struct attribute *b = type->members; b < a; b++)
                ck_assert_msg(strcmp(a->name, b->name) != 0, "%s: %s twice", name, a->name);
        }
        ck_assert_msg(end > 0 && end <= type->bytes && type->bytes - end < sizeof(int64_t), "%s: at the end", name);
    }
}
END_TEST

/* Sets the shapes of a node's attributes; all else stays 0. Returns how many there are. */
static int set_shapes(struct node *node, const struct operation *operation, tutti_shape shape)
{
    int count = 0;
    node_set_operation(node, operation, NULL);
    for (const struct attribute *a = attribute_members(operation->attributes); a->name; a++) {
        if (a->kind != ATTRIBUTE_SHAPE) continue;
        memcpy(node->attributes.bytes + a->offset, &shape, sizeof shape);
        count++;
    }
    return count;
}

START_TEST(shapes_of_every_operation_are_bound)
{
    const size_t count = count_operations();
    struct node *nodes = memory_new(count, sizeof *nodes);
    struct graph graph, bound;
    int shapes = 0;
    ck_assert_ptr_nonnull(nodes);
    graph_init(&graph);
    graph.nodes = nodes;
    graph.node_count = count;
    for (size_t i = 0; i < count; i++)
        shapes += set_shapes(&nodes[i], operations[i], TUTTI_SHAPE(BATCH, 3, TUTTI_SEQUENCE));
    ck_assert_int_gt(shapes, 8);
    ck_assert_int_eq(graph_bind(&graph, (struct bound_sizes) { 5, 7 }, &bound), TUTTI_OK);
    for (size_t i = 0; i < count; i++) {
        struct node expected = { 0 };
        set_shapes(&expected, operations[i], TUTTI_SHAPE(5, 3, 7));
        ck_assert_msg(!memcmp(&bound.nodes[i].attributes, &expected.attributes, sizeof expected.attributes), "%s",
            operations[i]->name);
    }
    graph_free(&bound);
    graph_free(&graph);
}
END_TEST

static bool equal(const struct conv2d_attributes *a, const struct conv2d_attributes *b)
{
    struct node nodes[2];
    node_set_operation(&nodes[0], &operation_conv2d, a);
    node_set_operation(&nodes[1], &operation_conv2d, b);
    return attributes_equal(&conv2d_attributes_type, &nodes[0].attributes, &nodes[1].attributes);
}

START_TEST(members_are_compared_and_padding_is_not)
{
    struct conv2d_attributes a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0xff, sizeof b);
    a.window = (struct window) { { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 };
    a.shape = TUTTI_SHAPE(5, 3);
    b.window = a.window;
    b.shape.rank = 2, b.shape.sizes[0] = 5, b.shape.sizes[1] = 3; /* others are not sizes of this shape */
    ck_assert(equal(&a, &b));
    b.shape.sizes[1] = 4;
    ck_assert(!equal(&a, &b));
    b = a;
    b.window.dilation[1] = 2;
    ck_assert(!equal(&a, &b));
    ck_assert(attributes_equal(NULL, &(struct attribute_values) { { 1 } }, &(struct attribute_values) { { 2 } }));
}
END_TEST

/* An operation without attributes gets none, and without values all are 0. */
START_TEST(nodes_have_the_attributes_of_their_operation)
{
    const struct conv2d_attributes given = { .window.groups = 4, .shape = TUTTI_SHAPE(1) };
    const struct attribute_values none = { 0 };
    struct node node, copy;
    memset(&node, 0xff, sizeof node);
    node_set_operation(&node, &operation_conv2d, &given);
    copy = node;
    ck_assert_int_eq(conv2d_attributes(&copy)->window.groups, 4);
    ck_assert_int_eq(conv2d_attributes(&copy)->shape.rank, 1);
    node_set_operation(&node, &operation_softmax, &given);
    ck_assert_mem_eq(&node.attributes, &none, sizeof none);
    node_set_operation(&copy, &operation_conv2d, NULL);
    ck_assert_mem_eq(&copy.attributes, &none, sizeof none);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attributes");
    TCase *cases = tcase_create("attributes");
    tcase_add_test(cases, every_member_is_described);
    tcase_add_test(cases, shapes_of_every_operation_are_bound);
    tcase_add_test(cases, members_are_compared_and_padding_is_not);
    tcase_add_test(cases, nodes_have_the_attributes_of_their_operation);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
