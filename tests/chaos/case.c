#include "tests/chaos/case.h"

#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(name, text) text,
static const char *const networks[] = { CHAOS_NETWORKS(TEXT_OF) };
static const char *const modes[] = { CHAOS_MODES(TEXT_OF) };
static const char *const runtimes[] = { CHAOS_MEMORY(TEXT_OF) };
static const char *const kinds[] = { LAYER_KINDS(TEXT_OF) "any" };
static const char *const actions[] = { LAYER_ACTIONS(TEXT_OF) };
#undef TEXT_OF

/* ------------------------------------------------------------------------------------------------- choosing ---- */

struct dice {
    uint64_t seed, index;
};

static int below(struct dice *dice, int bound)
{
    return (int)random_below(dice->seed, 1, dice->index++, (uint64_t)bound);
}

static bool chance(struct dice *dice, int percent)
{
    return below(dice, 100) < percent;
}

static enum layer_kind between(struct dice *dice, enum layer_kind first, enum layer_kind last)
{
    return (enum layer_kind)((int)first + below(dice, (int)last - (int)first + 1));
}

static void choose_error(struct dice *dice, struct layer_order *order)
{
    static const cl_int codes[] = { CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE, CL_MEM_OBJECT_ALLOCATION_FAILURE,
        CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_HOST_MEMORY, CL_MAP_FAILURE };
    const int count = (int)(sizeof(codes) / sizeof(*codes));
    order->code = codes[below(dice, count)];
    order->kind = chance(dice, 40) ? LAYER_ANY : between(dice, LAYER_OPEN, LAYER_WAIT);
}

static void choose_nan(struct dice *dice, struct layer_order *order)
{
    static const enum layer_kind writers[] = { LAYER_COPY, LAYER_WRITE, LAYER_READ, LAYER_MAP, LAYER_LAUNCH };
    const int count = (int)(sizeof(writers) / sizeof(*writers));
    order->action = LAYER_NAN;
    order->kind = writers[below(dice, count)];
}

static void choose_order(struct dice *dice, struct layer_order *order)
{
    const int action = below(dice, 100);
    if (action < 32) {
        order->action = LAYER_FAIL;
        choose_error(dice, order);
    } else if (action < 48) {
        order->action = LAYER_LOSE;
        choose_error(dice, order);
    } else if (action < 53) {
        order->action = LAYER_REFUSE;
        choose_error(dice, order);
        order->kind = between(dice, LAYER_PROGRAM, LAYER_WAIT);
    } else if (action < 75) {
        choose_nan(dice, order);
    } else if (action < 83) {
        order->action = LAYER_HANG_CALL;
        order->kind = chance(dice, 40) ? LAYER_ANY : between(dice, LAYER_PROGRAM, LAYER_WAIT);
    } else if (action < 90) {
        order->action = LAYER_HANG_DEVICE;
        order->kind = between(dice, LAYER_FILL, LAYER_MARKER);
    } else {
        order->action = LAYER_SLOW;
        order->kind = LAYER_ANY;
        order->factor = 2 + below(dice, 9);
    }
    order->at = 1 + below(dice, order->kind == LAYER_ANY ? 150 : order->kind == LAYER_LAUNCH ? 30 : 10);
}

static struct fault choose_fault(struct dice *dice)
{
    struct fault fault = { .step = chance(dice, 6) ? BUILDING : below(dice, STEPS), .victim = below(dice, DEVICES) };
    choose_order(dice, &fault.order);
    if (!chance(dice, 8)) return fault;
    fault.victim = ALL_DEVICES;
    fault.order = (struct layer_order) { .kind = LAYER_ANY, .at = 1 + below(dice, 150), .action = LAYER_LOSE };
    choose_error(dice, &fault.order);
    return fault;
}

static struct change choose_change(struct dice *dice, bool single)
{
    static const int waits[] = { 0, 0, 3, 500 };
    struct change change = { .step = below(dice, STEPS - 1), .wait_ms = waits[below(dice, 4)] };
    const int device = below(dice, DEVICES);
    for (int i = 0; i < DEVICES; i++) change.weights[i] = single ? i == device : below(dice, 5);
    return change;
}

static void choose_changes(struct dice *dice, struct chaos_case *it)
{
    const bool single = it->mode == SINGLE || it->mode == PROBED;
    if (it->mode == EQUAL || it->mode == GIVEN) return;
    it->change_count = 1 + below(dice, it->mode == PROBED ? 1 : MOST_CHANGES);
    for (int i = 0; i < it->change_count; i++)
        it->changes[i] = choose_change(dice, single && (i == 0 || chance(dice, 40)));
    if (!single) return;
    it->changes[0].step = below(dice, 3);
    it->changes[0].wait_ms = 500;
}

/* No rank has a device that trains alone: gradients are summed over all of them. */
static void spread_over_ranks(struct dice *dice, struct chaos_case *it)
{
    it->mode = it->mode > AUTO ? AUTO : it->mode;
    for (int i = 0; i < it->fault_count; i++) it->faults[i].rank = below(dice, RANKS);
}

struct chaos_case case_of(uint64_t seed, int ranks)
{
    struct dice dice = { .seed = seed };
    struct chaos_case it = { .seed = seed, .ranks = ranks };
    it.network = (enum network)below(&dice, NETWORKS);
    it.mode = (enum mode)below(&dice, MODES);
    it.memory = (enum memory_kind)below(&dice, MEMORY_KINDS);
    it.adam = chance(&dice, 30);
    it.bf16 = it.memory != SHARED && !it.adam && chance(&dice, 25);
    it.check_replicas = chance(&dice, 15);
    it.evaluates = chance(&dice, 30);
    it.closes_first = chance(&dice, 40);
    if (it.network != NORM && chance(&dice, 25)) it.micro_batch = 1 + below(&dice, 4);
    for (int i = 0; i < DEVICES; i++) it.shares[i] = below(&dice, 5);
    it.shares[below(&dice, DEVICES)] = 2;
    choose_changes(&dice, &it);
    const int faults = below(&dice, 100);
    it.fault_count = faults < 8 ? 0 : faults < 50 ? 1 : faults < 80 ? 2 : 3;
    for (int i = 0; i < it.fault_count; i++) it.faults[i] = choose_fault(&dice);
    if (ranks > 1) spread_over_ranks(&dice, &it);
    return it;
}

unsigned case_victims(const struct chaos_case *it, int rank)
{
    unsigned victims = 0;
    for (int i = 0; i < it->fault_count; i++) {
        if (it->faults[i].order.action == LAYER_SLOW || it->faults[i].rank != rank) continue;
        victims |= it->faults[i].victim == ALL_DEVICES ? (1u << DEVICES) - 1 : 1u << it->faults[i].victim;
    }
    return victims;
}

bool case_may_fail(const struct chaos_case *it)
{
    for (int rank = 0; rank < it->ranks; rank++)
        if (case_victims(it, rank) == (1u << DEVICES) - 1) return true;
    return false;
}

int case_count(const struct chaos_case *it, enum layer_action action)
{
    int count = 0;
    for (int i = 0; i < it->fault_count; i++) count += it->faults[i].order.action == action;
    return count;
}

/* --------------------------------------------------------------------------------------------------- telling ---- */

struct writer {
    char *text;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void say(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(writer->text + writer->length, writer->size - writer->length, format, arguments);
    va_end(arguments);
    if (length > 0) writer->length += (size_t)length;
    if (writer->length >= writer->size) writer->length = writer->size - 1;
}

static void say_fault(struct writer *writer, const struct fault *fault, bool ranks)
{
    const struct layer_order *order = &fault->order;
    say(writer, "; %s", actions[order->action]);
    if (order->code) say(writer, " %d", (int)order->code);
    if (order->action == LAYER_SLOW) say(writer, " x%.0f", order->factor);
    say(writer, " at %s %ld", kinds[order->kind], order->at);
    if (fault->victim == ALL_DEVICES)
        say(writer, " of all devices");
    else
        say(writer, " of device %d", fault->victim);
    if (ranks) say(writer, " of rank %d", fault->rank);
    if (fault->step == BUILDING)
        say(writer, " while building");
    else
        say(writer, " after step %d", fault->step);
}

void case_describe(const struct chaos_case *it, char *text, size_t size)
{
    struct writer writer = { text, size, 0 };
    if (it->ranks > 1) say(&writer, "%d ranks, ", it->ranks);
    say(&writer, "%s, %s, %s, %s", networks[it->network], it->adam ? "Adam" : "SGD", modes[it->mode],
        runtimes[it->memory]);
    if (it->mode == GIVEN) say(&writer, " (%.0f:%.0f:%.0f)", it->shares[0], it->shares[1], it->shares[2]);
    if (it->bf16) say(&writer, ", bfloat16 on the wire");
    if (it->check_replicas) say(&writer, ", replicas checked");
    if (it->micro_batch) say(&writer, ", micro-batches of %d", it->micro_batch);
    if (it->evaluates) say(&writer, ", with test data");
    if (it->closes_first) say(&writer, ", closed while devices hang");
    for (int i = 0; i < it->change_count; i++)
        say(&writer, "; shares %d:%d:%d after step %d (%d ms)", (int)it->changes[i].weights[0],
            (int)it->changes[i].weights[1], (int)it->changes[i].weights[2], it->changes[i].step,
            it->changes[i].wait_ms);
    for (int i = 0; i < it->fault_count; i++) say_fault(&writer, &it->faults[i], it->ranks > 1);
}
