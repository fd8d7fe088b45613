/* What the kernels of attention have in common: where elements lie, and which probabilities are dropped.
 *   Q_JOINED, K_JOINED, V_JOINED, Y_JOINED   1: [sample][position][head][width], 0: [sample][head][position][width]
 *   BIAS      a bias is added to the scores: the strides bias_sample, bias_head, bias_row are 0 where it is repeated
 *   DROP      probabilities are dropped, as by dropout.cl from [sample][head][query][key]
 *   OPEN      rows that see no key give 0; else NaN */
#define ROW_OF(joined, heads, width) ((joined) ? (heads) * (width) : (width))
/* The first element of a head of a sample. */
#define HEAD_OF(x, joined, heads, length, width) \
    ((x) + (sample * heads + ((joined) ? 0 : head)) * (long)(length) * (width) + ((joined) ? head * (long)(width) : 0))
/* The position of a query's first key in the whole batch, for its random numbers. */
#define FIRST_POSITION(query)                                     \
    ((ulong)constants->first_sample * (ulong)elements_of_sample + \
        ((ulong)(sample * heads + head) * (ulong)length + (ulong)(query)) * (ulong)keys)
