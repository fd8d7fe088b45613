/* Fits and divisions by made-up times, with noise, outliers, and devices that change. */
#include "tests/train/test_train.h"

#include "base/random.h"
#include "parallel/balance.h"
#include "parallel/shares.h"
#include "parallel/speed.h"

#include <math.h>

/* ---------------------------------------------------------------------------------------------------- speed ---- */

/* 1 with a spread of `noise` both ways; one in `rarity` steps takes three times as long. */
static double jitter(uint64_t *draws, double noise, uint64_t rarity)
{
    const double factor = 1 + noise * (2 * (double)random_uniform(5, 1, ++*draws) - 1);
    return rarity && random_below(5, 2, *draws, rarity) == 0 ? 3 * factor : factor;
}

START_TEST(line_through_exact_times)
{
    struct speed speed = { 0 };
    ck_assert(!speed_known(&speed, SPEED_TOGETHER));
    const int64_t sizes[] = { 8, 16, 32 };
    for (int i = 0; i < 3; i++)
        for (int step = 0; step < 4; step++)
            speed_add(&speed, SPEED_TOGETHER, sizes[i], 0.010 + 0.002 * (double)sizes[i]);
    ck_assert(speed_known(&speed, SPEED_TOGETHER));
    ck_assert(!speed_known(&speed, SPEED_SOLE));
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 32), 0.074, 0.0005);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 12), 0.034, 0.001);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 64), 0.138, 0.004);
    speed_add(&speed, SPEED_TOGETHER, 32, NAN);
    speed_add(&speed, SPEED_TOGETHER, 32, -1);
    speed_add(&speed, SPEED_TOGETHER, 0, 1);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 32), 0.074, 0.0005);
}
END_TEST

START_TEST(one_size_goes_through_the_origin)
{
    struct speed speed = { 0 };
    speed_add(&speed, SPEED_TOGETHER, 10, 1);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 20), 2, 1e-6);
    for (int step = 0; step < 9; step++) speed_add(&speed, SPEED_TOGETHER, 20, 0.5); /* no time falls with n */
    ck_assert_double_ge(speed_time(&speed, SPEED_TOGETHER, 40), speed_time(&speed, SPEED_TOGETHER, 20));
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 20), 0.5, 0.01);
}
END_TEST

START_TEST(noise_and_outliers)
{
    uint64_t draws = 1000 * (uint64_t)_i;
    struct speed speed = { 0 };
    const int64_t sizes[] = { 16, 24, 10, 24 };
    for (int i = 0; i < 4; i++)
        for (int step = 0; step < 15; step++)
            speed_add(&speed, SPEED_TOGETHER, sizes[i], (0.02 + 0.001 * (double)sizes[i]) * jitter(&draws, 0.05, 12));
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 24), 0.044, 0.05 * 0.044);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 12), 0.032, 0.15 * 0.032);
    ck_assert_double_lt(speed_noise(&speed), 0.05);
}
END_TEST

/* Another program takes half of the device: the whole line follows in a few steps, and back. */
START_TEST(drift)
{
    uint64_t draws = 0;
    struct speed speed = { 0 };
    double load = 1;
    for (int step = 0; step < 60; step++) {
        const int64_t samples = step < 20 ? 12 : 20;
        if (step == 40) load = 2;
        speed_add(&speed, SPEED_TOGETHER, samples, load * (0.01 + 0.001 * (double)samples) * jitter(&draws, 0.03, 0));
        if (step < 44) continue;
        ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 20), 0.06, 0.003);
        ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 12), 0.044, 0.005);
        ck_assert_double_eq_tol(speed_time(&speed, SPEED_SOLE, 12), 0.044, 0.005); /* never seen: as together */
    }
}
END_TEST

/* Sizes taken up again forget what was true long ago. */
START_TEST(forgetting)
{
    struct speed speed = { 0 };
    for (int round = 0; round < 12; round++)
        for (int step = 0; step < 6; step++) {
            const double samples = round % 2 ? 20 : 10;
            const double fixed = round < 2 ? 0.001 : 0.02;
            speed_add(&speed, SPEED_TOGETHER, (int64_t)samples, fixed + 0.001 * samples);
        }
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 20), 0.04, 0.001);
    ck_assert_double_eq_tol(speed_time(&speed, SPEED_TOGETHER, 10), 0.03, 0.0015);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- level ---- */

START_TEST(level_is_the_best)
{
    for (uint64_t round = 0; round < 400; round++) {
        struct share_line lines[2];
        int64_t samples[2];
        const int64_t batch = 1 + (int64_t)random_below(6, 1, round, 60);
        for (int i = 0; i < 2; i++)
            lines[i] = (struct share_line) { .fixed = random_uniform(6, 2, 2 * round + (uint64_t)i),
                .each = 0.01 + random_uniform(6, 3, 2 * round + (uint64_t)i),
                .limit = (int64_t)random_below(6, 4, 2 * round + (uint64_t)i, 80) };
        double best = INFINITY;
        for (int64_t first = 0; first <= batch; first++) {
            const double left = lines[0].fixed + lines[0].each * (double)first;
            const double right = lines[1].fixed + lines[1].each * (double)(batch - first);
            if (first > lines[0].limit || batch - first > lines[1].limit) continue;
            best = fmin(best, fmax(first ? left : 0, first < batch ? right : 0));
        }
        const double last = shares_level(lines, 2, batch, samples);
        if (!isfinite(best)) {
            ck_assert(isinf(last));
            continue;
        }
        ck_assert_int_eq(samples[0] + samples[1], batch);
        ck_assert_double_eq_tol(last, best, 1e-9);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------- balance ---- */

enum { DEVICES = 4 };

/* A machine on paper. */
struct machine {
    int count;
    double fixed[DEVICES], each[DEVICES], load[DEVICES];
    double exchange;   /* of a step together */
    double contention; /* factor on every device's time when several work: they share what they compute with */
    double noise;
    uint64_t rarity, draws;
    struct balance balance;
    int changes;
};

static void open_machine(struct machine *machine, int64_t batch)
{
    const int64_t limits[DEVICES] = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
    ck_assert_int_eq(balance_init(&machine->balance, machine->count, batch, limits), TUTTI_OK);
    if (machine->contention == 0) machine->contention = 1;
    for (int i = 0; i < machine->count; i++)
        if (machine->load[i] == 0) machine->load[i] = 1;
}

static double true_time(const struct machine *machine, const int64_t *parts)
{
    int used = 0;
    double slowest = 0;
    for (int i = 0; i < machine->count; i++) used += parts[i] > 0;
    for (int i = 0; i < machine->count; i++)
        if (parts[i] > 0)
            slowest = fmax(slowest,
                machine->load[i] * (used > 1 ? machine->contention : 1) *
                    (machine->fixed[i] + machine->each[i] * (double)parts[i]));
    return slowest + (used > 1 ? machine->exchange : 0);
}

static void one_step(struct machine *machine)
{
    struct balance *balance = &machine->balance;
    double seconds[DEVICES] = { 0 }, slowest = 0;
    const bool single = balance_sole_device(balance) >= 0;
    for (int i = 0; i < machine->count; i++) {
        if (balance->parts[i] == 0) continue;
        seconds[i] = machine->load[i] * (single ? 1 : machine->contention) *
            (machine->fixed[i] + machine->each[i] * (double)balance->parts[i]) *
            jitter(&machine->draws, machine->noise, machine->rarity);
        slowest = fmax(slowest, seconds[i]);
    }
    balance_add(balance, seconds, slowest + (single ? 0 : machine->exchange));
    if (!balance_decide(balance)) return;
    balance_adopt(balance);
    machine->changes++;
    int64_t given = 0;
    for (int i = 0; i < machine->count; i++) given += balance->parts[i];
    ck_assert_int_eq(given, balance->batch);
}

/* Probes a device that is left out, as the trainer does now and then. */
static void probe(struct machine *machine)
{
    for (int i = 0; i < machine->count; i++) {
        const struct balance_device *device = &machine->balance.devices[i];
        if (machine->balance.parts[i] > 0 || !(device->speed.scale > 0)) continue;
        const double samples = (double)device->speed.samples;
        balance_probed(&machine->balance, i, device->speed.samples,
            machine->load[i] * machine->contention * (machine->fixed[i] + machine->each[i] * samples) *
                jitter(&machine->draws, machine->noise, machine->rarity));
    }
}

static void many_steps(struct machine *machine, int steps)
{
    for (int step = 0; step < steps; step++) {
        one_step(machine);
        if (step % 40 == 39) probe(machine);
    }
}

/* How much longer than `best` the steps take now. */
static double above(const struct machine *machine, double best)
{
    return true_time(machine, machine->balance.parts) / best - 1;
}

static double best_of_two(const struct machine *machine)
{
    double best = INFINITY;
    for (int64_t first = 0; first <= machine->balance.batch; first++) {
        const int64_t parts[2] = { first, machine->balance.batch - first };
        best = fmin(best, true_time(machine, parts));
    }
    return best;
}

/* Three times as fast, with noise: the best division up to what the noise hides, soon, and then it stays. */
START_TEST(unequal_devices)
{
    struct machine machine = { .count = 2,
        .fixed = { 0.01, 0.02 },
        .each = { 0.01, 0.03 },
        .exchange = 0.01,
        .noise = _i % 2 ? 0.05 : 0.02,
        .rarity = _i % 3 ? 20 : 0,
        .draws = 10000 * (uint64_t)_i };
    open_machine(&machine, 64);
    many_steps(&machine, machine.rarity ? 500 : 40); /* outliers in a row cost a detour */
    ck_assert_double_lt(above(&machine, best_of_two(&machine)), 0.08);
    ck_assert(balance_sole_device(&machine.balance) < 0);
    machine.changes = 0;
    many_steps(&machine, 1000);
    ck_assert_int_le(machine.changes, 8);
    ck_assert_double_lt(above(&machine, best_of_two(&machine)), 0.08);
    balance_free(&machine.balance);
}
END_TEST

/* Another process takes half of a device: within twenty steps the shares follow, and when it ends they come back. */
START_TEST(loaded_device)
{
    struct machine machine = { .count = 2,
        .fixed = { 0.005, 0.005 },
        .each = { 0.01, 0.01 },
        .exchange = 0.01,
        .noise = 0.04,
        .rarity = 25,
        .draws = 7777 * (uint64_t)_i };
    open_machine(&machine, 32);
    many_steps(&machine, 60);
    ck_assert_int_ge(machine.balance.parts[0], 14);
    ck_assert_int_le(machine.balance.parts[0], 18);
    for (int round = 0; round < 3; round++) {
        machine.load[1] = 2;
        many_steps(&machine, 20);
        ck_assert_int_ge(machine.balance.parts[0], 19);
        ck_assert_int_le(machine.balance.parts[0], 24);
        many_steps(&machine, 30);
        ck_assert_double_lt(above(&machine, best_of_two(&machine)), 0.08);
        machine.load[1] = 1;
        many_steps(&machine, 20);
        ck_assert_int_ge(machine.balance.parts[0], 14);
        ck_assert_int_le(machine.balance.parts[0], 18);
        many_steps(&machine, 30);
    }
    balance_free(&machine.balance);
}
END_TEST

/* A small network: the exchange costs more than the help gives. When the one device gets busy, the other helps. */
START_TEST(help_that_costs_more)
{
    struct machine machine = { .count = 2,
        .fixed = { 0.001, 0.002 },
        .each = { 0.0001, 0.0002 },
        .exchange = 0.01,
        .noise = 0.05,
        .rarity = 20,
        .draws = 999 * (uint64_t)_i };
    open_machine(&machine, 64);
    many_steps(&machine, 40);
    ck_assert_int_eq(balance_sole_device(&machine.balance), 0);
    ck_assert_double_gt(machine.balance.devices[1].with, machine.balance.devices[1].without);
    ck_assert_double_gt(machine.balance.devices[1].without, 0);
    machine.changes = 0;
    many_steps(&machine, 1000);
    ck_assert_int_le(machine.changes, 4);
    ck_assert_int_eq(balance_sole_device(&machine.balance), 0);
    machine.load[0] = 6;
    many_steps(&machine, 60);
    ck_assert_int_eq(balance_sole_device(&machine.balance), 1);
    balance_free(&machine.balance);
}
END_TEST

/* Two devices on the same cores: their own times say that together they are fast, and alone they are no slower. */
START_TEST(contending_devices)
{
    struct machine machine = { .count = 2,
        .fixed = { 0.001, 0.001 },
        .each = { 0.001, 0.0012 },
        .contention = 2,
        .exchange = 0.006,
        .noise = 0.03,
        .draws = 31 * (uint64_t)_i };
    open_machine(&machine, 64);
    many_steps(&machine, 60);
    ck_assert_int_eq(balance_sole_device(&machine.balance), 0);
    balance_free(&machine.balance);
}
END_TEST

/* A device was loaded just while it was tried alone. */
START_TEST(misled_trial)
{
    struct machine machine = {
        .count = 2,
        .fixed = { 0.001, 0.001 },
        .each = { 0.001, 0.0012 },
        .contention = 1.9,
        .exchange = 0.003,
        .noise = 0.02,
        .draws = 77 * (uint64_t)_i,
    };
    open_machine(&machine, 64);
    for (int step = 0; step < 100; step++) {
        machine.load[0] = balance_sole_device(&machine.balance) == 0 ? 1.15 : 1;
        one_step(&machine);
    }
    machine.load[0] = 1;
    many_steps(&machine, 100);
    ck_assert_int_lt(balance_sole_device(&machine.balance), 0);
    ck_assert_double_gt(above(&machine, best_of_two(&machine)), 0.03);
    balance_try_again(&machine.balance);
    many_steps(&machine, 60);
    ck_assert_int_eq(balance_sole_device(&machine.balance), 0);
    machine.changes = 0;
    for (int again = 0; again < 10; again++) { /* costs the trial of the other one, at most */
        balance_try_again(&machine.balance);
        many_steps(&machine, 40);
        ck_assert_int_eq(balance_sole_device(&machine.balance), 0);
    }
    ck_assert_int_le(machine.changes, 20);
    balance_free(&machine.balance);
}
END_TEST

/* Other processes take much of both devices while the first divisions are tried: times of different sizes, and of the
 * exchange, are then of different moments. When devices are tried again, two equal ones get equal parts. */
START_TEST(disturbed_start)
{
    struct machine machine = { .count = 2,
        .fixed = { 0.0003, 0.0003 },
        .each = { 0.00002, 0.00002 },
        .noise = 0.03,
        .draws = 10000 * (uint64_t)_i };
    open_machine(&machine, 256);
    for (uint64_t step = 0; step < 60; step++) {
        for (uint64_t i = 0; i < 2; i++)
            machine.load[i] = 1 + 1.5 * random_uniform(8, (uint64_t)_i, 2 * (step / 9) + i);
        machine.exchange = 0.0004 + 0.002 * random_uniform(9, (uint64_t)_i, step / 9);
        one_step(&machine);
    }
    machine.load[0] = machine.load[1] = 1;
    machine.exchange = 0.0004;
    many_steps(&machine, 100);
    balance_try_again(&machine.balance);
    many_steps(&machine, 100);
    ck_assert_double_lt(above(&machine, best_of_two(&machine)), 0.08);
    balance_free(&machine.balance);
}
END_TEST

/* One of four is so slow that even a sample is too much; when it gets fast, a probe shows it. */
START_TEST(slow_device_is_left_out)
{
    struct machine machine = { .count = 4,
        .fixed = { 0.01, 0.01, 0.01, 0.9 },
        .each = { 0.01, 0.012, 0.02, 0.3 },
        .exchange = 0.01,
        .noise = 0.03 };
    open_machine(&machine, 64);
    many_steps(&machine, 60);
    ck_assert_int_eq(machine.balance.parts[3], 0);
    for (int i = 0; i < 3; i++) ck_assert_int_gt(machine.balance.parts[i], 0);
    ck_assert_double_gt(machine.balance.devices[3].with, machine.balance.devices[3].without);
    machine.load[3] = 0.02;
    many_steps(&machine, 600);
    ck_assert_int_gt(machine.balance.parts[3], 0);
    balance_free(&machine.balance);
}
END_TEST

START_TEST(limits_losses_and_sizes)
{
    const int64_t limits[3] = { 10, 40, 40 };
    const double seconds[3] = { 0.1, 0.4, 0.4 };
    struct balance balance;
    ck_assert_int_eq(balance_init(&balance, 3, 60, limits), TUTTI_OK);
    ck_assert_int_eq(balance.parts[0], 10);
    for (int step = 0; step < 20; step++) {
        balance_add(&balance, seconds, 0.41);
        if (balance_decide(&balance)) balance_adopt(&balance);
        ck_assert_int_le(balance.parts[0], 10);
    }
    ck_assert_int_eq(balance_resize(&balance, 30), TUTTI_OK);
    ck_assert_int_eq(balance.parts[0] + balance.parts[1] + balance.parts[2], 30);
    ck_assert_int_eq(balance_limit(&balance, 1, 0), TUTTI_OK);
    ck_assert_int_eq(balance.parts[1], 0);
    ck_assert_int_eq(balance.parts[0] + balance.parts[2], 30);
    ck_assert_int_eq(balance_limit(&balance, 2, 0), TUTTI_OK); /* micro-batches lift the first one's limit */
    ck_assert_int_eq(balance.parts[0], 30);
    ck_assert_int_eq(balance_sole_device(&balance), 0);
    balance_free(&balance);
}
END_TEST

Suite *suite_speed(void)
{
    Suite *suite = suite_create("speed");
    TCase *cases = tcase_create("speed");
    tcase_add_test(cases, line_through_exact_times);
    tcase_add_test(cases, one_size_goes_through_the_origin);
    tcase_add_loop_test(cases, noise_and_outliers, 0, 20);
    tcase_add_test(cases, drift);
    tcase_add_test(cases, forgetting);
    tcase_add_test(cases, level_is_the_best);
    tcase_add_loop_test(cases, unequal_devices, 0, 20);
    tcase_add_loop_test(cases, loaded_device, 0, 20);
    tcase_add_loop_test(cases, help_that_costs_more, 0, 100);
    tcase_add_loop_test(cases, contending_devices, 0, 10);
    tcase_add_loop_test(cases, misled_trial, 0, 20);
    tcase_add_loop_test(cases, disturbed_start, 0, 100);
    tcase_add_test(cases, slow_device_is_left_out);
    tcase_add_test(cases, limits_losses_and_sizes);
    suite_add_tcase(suite, cases);
    return suite;
}
