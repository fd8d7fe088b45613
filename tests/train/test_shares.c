#include "tests/train/test_train.h"

#include "base/random.h"
#include "parallel/shares.h"

#include <math.h>
#include <string.h>

static struct share part(double weight)
{
    return (struct share) { .weight = weight, .limit = INT64_MAX };
}

START_TEST(equal_weights)
{
    const struct share shares[3] = { part(1), part(1), part(1) };
    int64_t samples[3];
    ck_assert_int_eq(shares_divide(shares, 3, 32, samples), TUTTI_OK);
    ck_assert_int_eq(samples[0], 11);
    ck_assert_int_eq(samples[1], 11);
    ck_assert_int_eq(samples[2], 10);
    ck_assert_int_eq(shares_divide(shares, 3, 2, samples), TUTTI_OK);
    ck_assert_int_eq(samples[0] + samples[1], 2);
    ck_assert_int_eq(samples[2], 0);
}
END_TEST

START_TEST(unequal_weights)
{
    const struct share shares[3] = { part(3), part(0), part(1) };
    int64_t samples[3];
    ck_assert_int_eq(shares_divide(shares, 3, 10, samples), TUTTI_OK);
    ck_assert_int_eq(samples[0], 8); /* 7.5 and 2.5: the earlier device takes the odd one */
    ck_assert_int_eq(samples[1], 0);
    ck_assert_int_eq(samples[2], 2);
}
END_TEST

START_TEST(limits)
{
    struct share shares[3] = { part(10), part(1), part(1) };
    int64_t samples[3];
    shares[0].limit = 4;
    ck_assert_int_eq(shares_divide(shares, 3, 10, samples), TUTTI_OK);
    ck_assert_int_eq(samples[0], 4);
    ck_assert_int_eq(samples[1], 3);
    ck_assert_int_eq(samples[2], 3);
    shares[1].limit = 1;
    shares[2].limit = 5;
    ck_assert_int_eq(shares_divide(shares, 3, 10, samples), TUTTI_OK);
    ck_assert_int_eq(samples[0], 4);
    ck_assert_int_eq(samples[1], 1);
    ck_assert_int_eq(samples[2], 5);
    ck_assert_int_eq(shares_divide(shares, 3, 11, samples), TUTTI_DEVICE_MEMORY);
}
END_TEST

START_TEST(bad_weights)
{
    int64_t samples[2];
    const struct share none[2] = { part(0), part(0) }, negative[2] = { part(1), part(-1) },
                       nan[2] = { part(1), part(NAN) };
    ck_assert_int_eq(shares_divide(none, 2, 8, samples), TUTTI_INVALID);
    ck_assert_int_eq(shares_divide(negative, 2, 8, samples), TUTTI_INVALID);
    ck_assert_int_eq(shares_divide(nan, 2, 8, samples), TUTTI_INVALID);
}
END_TEST

/* Every sample is given once, nobody is more than one sample from the exact part, and the same again gives the same. */
START_TEST(any_weights)
{
    for (uint64_t round = 0; round < 2000; round++) {
        struct share shares[7];
        int64_t samples[7], again[7], given = 0;
        double sum = 0;
        const int count = 1 + (int)random_below(1, 1, round, 7);
        const int64_t batch = (int64_t)random_below(1, 2, round, 300);
        for (int i = 0; i < count; i++) {
            shares[i] = part(i == 0 ? 0.1 : random_uniform(1, 3, round * 8 + (uint64_t)i));
            sum += shares[i].weight;
        }
        ck_assert_int_eq(shares_divide(shares, count, batch, samples), TUTTI_OK);
        for (int i = 0; i < count; i++) {
            given += samples[i];
            ck_assert(fabs((double)samples[i] - (double)batch * shares[i].weight / sum) < 1);
        }
        ck_assert_int_eq(given, batch);
        ck_assert_int_eq(shares_divide(shares, count, batch, again), TUTTI_OK);
        ck_assert(memcmp(samples, again, (size_t)count * sizeof(*samples)) == 0);
    }
}
END_TEST

Suite *suite_shares(void)
{
    Suite *suite = suite_create("shares");
    TCase *cases = tcase_create("shares");
    tcase_add_test(cases, equal_weights);
    tcase_add_test(cases, unequal_weights);
    tcase_add_test(cases, limits);
    tcase_add_test(cases, bad_weights);
    tcase_add_test(cases, any_weights);
    suite_add_tcase(suite, cases);
    return suite;
}
