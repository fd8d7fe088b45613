/* Numbers and order of the gates, for the operations, their builder, their kernels and the reference. */
#include "base/numbers.h"
#include "layers/recurrent/recurrent.h"

int recurrent_gates(enum recurrent_kind kind)
{
    return kind == RECURRENT_LSTM ? 4 : kind == RECURRENT_GRU ? 3 : 1;
}

int recurrent_saved(enum recurrent_kind kind)
{
    return kind == RECURRENT_LSTM ? 5 : kind == RECURRENT_GRU ? 4 : 0;
}

int recurrent_others(enum recurrent_kind kind)
{
    return kind == RECURRENT_LSTM ? 1 : kind == RECURRENT_GRU ? 3 : 0;
}

int recurrent_place(const struct recurrent_attributes *attributes, int gate)
{
    static const int lstm[2][4] = { { 0, 1, 2, 3 }, { 0, 3, 1, 2 } }, gru[2][3] = { { 0, 1, 2 }, { 1, 0, 2 } };
    return attributes->kind == RECURRENT_LSTM ? lstm[attributes->torch][gate]
        : attributes->kind == RECURRENT_GRU   ? gru[attributes->torch][gate]
                                              : 0;
}

void recurrent_options(const struct recurrent_attributes *attributes, char *options, size_t size)
{
    static const char *const names[3][4] = { { "I", "O", "FORGET", "C" }, { "Z", "RESET", "NEW", "NONE" },
        { "ONLY", "NONE", "NONE", "NONE" } };
    static const int codes[] = { [ACTIVATION_RELU] = 1, [ACTIVATION_SIGMOID] = 4, [ACTIVATION_TANH] = 5 };
    const struct recurrent_attributes *a = attributes;
    const int gates = recurrent_gates(a->kind);
    number_append(options, size,
        "-DKIND=%d -DGATES=%d -DSAVED=%d -DOTHER=%d -DF=%d -DG=%d -DH=%d -DREVERSE=%d -DAFTER=%d -DCOUPLED=%d "
        "-DCLIP=%d",
        (int)a->kind, gates, recurrent_saved(a->kind), recurrent_others(a->kind), codes[a->functions[0]],
        codes[a->functions[1]], codes[a->functions[2]], a->reverse, a->after, a->coupled, a->clip > 0);
    for (int g = 0; g < gates; g++)
        number_append(options, size, " -D%s=%d", names[a->kind - 1][g], recurrent_place(a, g));
}
