/* Types of elements on the host: their names and sizes, float16; option and result structs of other sizes than the
 * library's. */
#include <check.h>
#undef fail

#include "base/dtype.h"
#include "base/half.h"
#include "base/options.h"

#include <string.h>

START_TEST(dtypes_have_names_and_sizes)
{
    static const struct {
        tutti_dtype dtype;
        const char *name;
        size_t bytes;
    } known[] = { { TUTTI_DTYPE_F32, "f32", 4 }, { TUTTI_DTYPE_F16, "f16", 2 }, { TUTTI_DTYPE_BF16, "bf16", 2 },
        { TUTTI_DTYPE_I32, "i32", 4 }, { TUTTI_DTYPE_I64, "i64", 8 }, { TUTTI_DTYPE_U8, "u8", 1 },
        { TUTTI_DTYPE_BOOL, "bool", 1 }, { (tutti_dtype)99, "that does not exist", 0 },
        { (tutti_dtype)-1, "that does not exist", 0 } };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        ck_assert_str_eq(dtype_name(known[i].dtype), known[i].name);
        ck_assert_uint_eq(tutti_dtype_bytes(known[i].dtype), known[i].bytes);
    }
}
END_TEST

/* Every number of float16, and what lies between two of them. */
START_TEST(halves_round_to_the_nearest)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const uint16_t half = (uint16_t)bits, next = (uint16_t)(bits + 1), even = bits % 2 ? next : half;
        const float value = half_to_float(half), above = bits == 0x7bff ? 65536 : half_to_float(next);
        const float middle = value + (above - value) / 2;
        ck_assert(value < above);
        ck_assert_uint_eq(half_from_float(value), half);
        ck_assert_uint_eq(half_from_float(-value), half | 0x8000);
        ck_assert_uint_eq(half_from_float(middle), even);
        ck_assert_uint_eq(half_from_float(nextafterf(middle, 0)), half);
        ck_assert_uint_eq(half_from_float(nextafterf(middle, INFINITY)), next);
        ck_assert(half_to_float(half | 0x8000) == -value);
    }
}
END_TEST

START_TEST(halves_know_their_limits)
{
    ck_assert_float_eq(half_to_float(0x3c00), 1);
    ck_assert_float_eq(half_to_float(0x7bff), 65504);
    ck_assert_float_eq(half_to_float(0x0001), 0x1p-24f);
    ck_assert_uint_eq(half_from_float(1e30f), 0x7c00);
    ck_assert_uint_eq(half_from_float(-INFINITY), 0xfc00);
    ck_assert(isnan(half_to_float(half_from_float(NAN))));
    ck_assert(isinf(half_to_float(0xfc00)));
    ck_assert_uint_eq(half_from_float(-1e-30f), 0x8000);
}
END_TEST

struct older {
    size_t size;
    int64_t first;
};
struct known {
    size_t size;
    int64_t first, second;
};
struct newer {
    size_t size;
    int64_t first, second, third, fourth;
};

START_TEST(options_of_other_sizes)
{
    struct known read;
    const struct older older = { .size = sizeof(older), .first = 1 };
    struct newer newer = { .size = sizeof(newer), .first = 1, .second = 2 };
    memset(&read, 0xff, sizeof(read));
    ck_assert_int_eq(OPTIONS_READ(&read, NULL, struct known), TUTTI_OK);
    ck_assert(read.size == sizeof(read) && read.first == 0 && read.second == 0);
    memset(&read, 0xff, sizeof(read));
    ck_assert_int_eq(OPTIONS_READ(&read, &older, struct known), TUTTI_OK);
    ck_assert(read.size == sizeof(read) && read.first == 1 && read.second == 0);
    ck_assert_int_eq(OPTIONS_READ(&read, &newer, struct known), TUTTI_OK);
    ck_assert(read.size == sizeof(read) && read.first == 1 && read.second == 2);
    newer.fourth = 1;
    ck_assert_int_eq(OPTIONS_READ(&read, &newer, struct known), TUTTI_INVALID);
    ck_assert_msg(strstr(status_message(), "use a newer library"), "%s", status_message());
    newer.size = 0;
    ck_assert_int_eq(OPTIONS_READ(&read, &newer, struct known), TUTTI_OK);
    ck_assert(read.size == sizeof(read) && read.first == 1 && read.second == 2);
    ck_assert_int_eq(options_read(&read, sizeof(read), sizeof(older), &newer, "struct known"), TUTTI_OK);
    ck_assert(read.size == sizeof(read) && read.first == 1 && read.second == 0);
    newer.size = 4;
    ck_assert_int_eq(OPTIONS_READ(&read, &newer, struct known), TUTTI_INVALID);
    ck_assert_msg(strstr(status_message(), "sizeof(struct known)"), "%s", status_message());
}
END_TEST

/* Nothing beyond the caller's size or the library's is written, and the size stays. */
START_TEST(results_of_other_sizes)
{
    const struct known known = { .first = 1, .second = 2 };
    struct newer newer = { .size = sizeof(struct older), .second = 7, .third = 8 };
    ck_assert_int_eq(RESULT_WRITE(&newer, &known, struct known), TUTTI_OK);
    ck_assert(newer.size == sizeof(struct older) && newer.first == 1 && newer.second == 7);
    newer = (struct newer) { .size = sizeof(newer), .third = 8, .fourth = 9 };
    ck_assert_int_eq(RESULT_WRITE(&newer, &known, struct known), TUTTI_OK);
    ck_assert(newer.size == sizeof(newer) && newer.first == 1 && newer.second == 2);
    ck_assert(newer.third == 8 && newer.fourth == 9);
    newer = (struct newer) { .second = 7 };
    ck_assert_int_eq(result_write(&newer, sizeof(known), sizeof(struct older), &known, "struct known"), TUTTI_OK);
    ck_assert(newer.size == 0 && newer.first == 1 && newer.second == 7);
    newer = (struct newer) { .size = 4 };
    ck_assert_int_eq(RESULT_WRITE(&newer, &known, struct known), TUTTI_INVALID);
    ck_assert_msg(strstr(status_message(), "sizeof(struct known)"), "%s", status_message());
    ck_assert(newer.size == 4 && newer.first == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types");
    TCase *tests = tcase_create("types");
    tcase_add_test(tests, dtypes_have_names_and_sizes);
    tcase_add_test(tests, halves_round_to_the_nearest);
    tcase_add_test(tests, halves_know_their_limits);
    tcase_add_test(tests, options_of_other_sizes);
    tcase_add_test(tests, results_of_other_sizes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
