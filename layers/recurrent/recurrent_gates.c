/* Numbers and order of the gates, for the operations, their builder and the reference. */
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
