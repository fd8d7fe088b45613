/* einsum n eq: equation number `eq` of the table below; the letter a has size 2, b 3, c 4, d 5, e 2 and so on. The
 * first input is the sample, the others are parameters. An ellipsis has the axes of the last letters, y and z. */
#include <ctype.h>
#include <string.h>

#include "tests/layers/cases.h"

static const struct {
    const char *text, *plain; /* plain: without ellipsis, if the text has one */
} equations[] = { { "ab->ba", NULL }, { "abc->b", NULL }, { "aa->a", NULL }, { "ab,bc->ac", NULL },
    { "abc,acd->abd", NULL }, { "bac,dac->abd", NULL }, { "ab,cd->cadb", NULL }, { "ab,ab->", NULL },
    { "ab,bc,cd->ad", NULL }, { "a,a,a->a", NULL }, { "abc,b,dc", NULL }, { "...a,ab->...b", "yza,ab->yzb" },
    { "...ab,...b->...a", "yzab,yzb->yza" }, { "abc,eebc->ae", NULL } };

static const char *plain(const struct test_case *c)
{
    const int64_t number = case_get(c, "eq", 0);
    return equations[number].plain ? equations[number].plain : equations[number].text;
}

static int64_t size_of(char letter)
{
    return 2 + (letter - 'a') % 4;
}

/* The shape of the input that begins here; 1 without letters. */
static tutti_shape shape_at(const char *at)
{
    tutti_shape shape = { 0 };
    for (; isalpha((unsigned char)*at); at++) shape.sizes[shape.rank++] = size_of(*at);
    return shape;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    tutti_tensor inputs[8];
    int count = 0;
    for (const char *at = plain(c); at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char name[] = { (char)('p' + count), '\0' };
        inputs[count] =
            count ? tutti_parameter(network, name, shape_at(at), NULL) : tutti_input(network, "x", shape_at(at));
        count++;
    }
    return tutti_einsum(network, equations[case_get(c, "eq", 0)].text, inputs, count);
}

/* The position of an element with these indices of the letters. */
static int64_t place(const char *at, const int64_t *index)
{
    int64_t sum = 0;
    for (; isalpha((unsigned char)*at); at++) sum = sum * size_of(*at) + index[*at - 'a'];
    return sum;
}

/* Without "->": the letters that stand once, in their order. */
static void output_of(const char *text, char output[27])
{
    const char *arrow = strstr(text, "->");
    if (arrow) {
        strcpy(output, arrow + 2);
        return;
    }
    for (char letter = 'a'; letter <= 'z'; letter++)
        if (strchr(text, letter) && strchr(text, letter) == strrchr(text, letter)) *output++ = letter;
    *output = '\0';
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const char *text = plain(c);
    char output[27];
    int64_t all = 1, results = 1, each = 1;
    output_of(text, output);
    for (char letter = 'a'; letter <= 'z'; letter++) all *= strchr(text, letter) ? size_of(letter) : 1;
    for (const char *at = output; *at; at++) results *= size_of(*at);
    for (const char *at = text; isalpha((unsigned char)*at); at++) each *= size_of(*at);
    memset(y, 0, (size_t)(case_get(c, "n", 1) * results) * sizeof *y);
    for (int64_t i = 0; i < case_get(c, "n", 1) * all; i++) {
        int64_t index[26] = { 0 }, rest = i % all;
        for (char letter = 'a'; letter <= 'z'; letter++)
            if (strchr(text, letter)) {
                index[letter - 'a'] = rest % size_of(letter);
                rest /= size_of(letter);
            }
        double product = inputs[0][i / all * each + place(text, index)];
        int number = 0;
        for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ','))
            product *= parameters[number++][place(at + 1, index)];
        y[i / all * results + place(output, index)] += product;
    }
}

static const char *const cases[] = {
    "einsum n2 eq0",
    "einsum n3 eq1",
    "einsum n2 eq2",
    "einsum n3 eq3",
    "einsum n2 eq4",
    "einsum n2 eq5",
    "einsum n2 eq6",
    "einsum n3 eq7",
    "einsum n2 eq8",
    "einsum n2 eq9",
    "einsum n2 eq10",
    "einsum n2 eq11",
    "einsum n2 eq12",
    "einsum n2 eq13",
    NULL,
};

static const struct operation_test test_einsum = {
    .name = "einsum",
    .build = build,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
};

OPERATION_TESTS(test_einsum, &test_einsum)
