#include "formats.h"

#include "formats/json_lines.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *written;
static size_t written_bytes;
static FILE *stream;
static struct json_line line;

static void begin(void)
{
    stream = open_memstream(&written, &written_bytes);
    json_line_begin(&line, stream);
}

/* Ends the line and reads it as jansson does. */
static json_t *end(void)
{
    json_error_t error;
    ck_assert_int_eq(json_line_end(&line), TUTTI_OK);
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_ptr_eq(strchr(written, '\n'), written + written_bytes - 1);
    json_t *read = json_loads(written, 0, &error);
    ck_assert_msg(read != NULL, "%s: %s", error.text, written);
    free(written);
    return read;
}

START_TEST(values)
{
    begin();
    json_line_integer(&line, "least", INT64_MIN);
    json_line_integer(&line, "most", INT64_MAX);
    json_line_number(&line, "number", 0.1);
    json_line_number(&line, "nan", NAN);
    json_line_number(&line, "infinite", -INFINITY);
    json_line_print(&line, "true %hhd", true);
    json_line_text(&line, "null", NULL);
    json_t *read = end();
    ck_assert_int_eq(json_integer_value(json_object_get(read, "least")), INT64_MIN);
    ck_assert_int_eq(json_integer_value(json_object_get(read, "most")), INT64_MAX);
    ck_assert_double_eq_tol(json_real_value(json_object_get(read, "number")), 0.1, 1e-9);
    ck_assert(json_is_null(json_object_get(read, "nan")));
    ck_assert(json_is_null(json_object_get(read, "infinite")));
    ck_assert(json_is_true(json_object_get(read, "true")));
    ck_assert(json_is_null(json_object_get(read, "null")));
    json_decref(read);
}
END_TEST

START_TEST(several_at_once)
{
    const char *volatile none = NULL; /* the compiler would warn of one that it knows */
    begin();
    json_line_print(&line, "name %s sizes [ %d %lld ] more { part %g none %g } list [ { good %hhd no %s } ]", "a\"<", 3,
        (long long)INT64_MAX, 0.5, NAN, true, none);
    json_t *read = end();
    char *text = json_dumps(read, JSON_COMPACT);
    ck_assert_str_eq(text,
        "{\"name\":\"a\\\"<\",\"sizes\":[3,9223372036854775807],\"more\":{\"part\":0.5,\"none\":null},"
        "\"list\":[{\"good\":true,\"no\":null}]}");
    free(text);
    json_decref(read);
}
END_TEST

START_TEST(exact_text)
{
    begin();
    json_line_integer(&line, "epoch", 3);
    json_line_print(&line, "devices [");
    json_line_object(&line, NULL);
    json_line_text(&line, "name", "a");
    json_line_close(&line);
    json_line_object(&line, NULL);
    json_line_close(&line);
    json_line_integer(&line, NULL, 5);
    json_line_close(&line);
    json_line_print(&line, "bytes %llu", (unsigned long long)UINT64_MAX);
    json_line_number(&line, "loss", 2);
    ck_assert_int_eq(json_line_end(&line), TUTTI_OK);
    fclose(stream);
    ck_assert_str_eq(written,
        "{\"epoch\": 3, \"devices\": [{\"name\": \"a\"}, {}, 5], \"bytes\": 18446744073709551615, "
        "\"loss\": 2}\n");
    free(written);
}
END_TEST

static const struct {
    const char *given, *read;
} texts[] = {
    { "plain", "plain" },
    { "\"\\/ \b\f\n\r\t \x01 \x7f", "\"\\/ \b\f\n\r\t \x01 \x7f" },
    { "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
    { "\xff\xc0\x80x", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx" },
    { "surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
};

START_TEST(texts_are_escaped)
{
    begin();
    json_line_text(&line, texts[_i].given, texts[_i].given);
    json_t *read = end();
    ck_assert_str_eq(json_string_value(json_object_get(read, texts[_i].read)), texts[_i].read);
    json_decref(read);
}
END_TEST

START_TEST(misuse_is_reported)
{
    begin();
    for (int i = 0; i < JSON_LINE_DEPTH; i++) json_line_print(&line, i ? "[" : "deep [");
    ck_assert_int_eq(json_line_end(&line), TUTTI_INTERNAL);
    fclose(stream);
    free(written);
    begin();
    json_line_close(&line);
    json_line_close(&line);
    ck_assert_int_eq(json_line_end(&line), TUTTI_INTERNAL);
    fclose(stream);
    ck_assert_uint_eq(written_bytes, 0);
    free(written);
}
END_TEST

START_TEST(full_disk_is_reported)
{
    FILE *full = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(full);
    json_line_begin(&line, full);
    json_line_integer(&line, "x", 1);
    ck_assert_int_eq(json_line_end(&line), TUTTI_FILE);
    fclose(full);
}
END_TEST

Suite *json_lines_suite(void)
{
    Suite *suite = suite_create("json_lines");
    TCase *group = tcase_create("json_lines");
    tcase_add_test(group, values);
    tcase_add_test(group, exact_text);
    tcase_add_test(group, several_at_once);
    tcase_add_loop_test(group, texts_are_escaped, 0, (int)(sizeof(texts) / sizeof(texts[0])));
    tcase_add_test(group, misuse_is_reported);
    tcase_add_test(group, full_disk_is_reported);
    suite_add_tcase(suite, group);
    return suite;
}
