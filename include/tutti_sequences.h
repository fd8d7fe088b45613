/* Layers for sequences and signals: embeddings, attention, recurrent layers, Fourier transforms. The conventions are
 * those of tutti.h. */
#ifndef TUTTI_SEQUENCES_H
#define TUTTI_SEQUENCES_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a table: ids [...] of int32 -> y [..., width], y[p] = weight[ids[p]]. A number below 0, or of `rows` or more,
 * gives a row of zeros and has no gradient; "embedding" of tutti_op() can count those below 0 from the end (from_end).
 * name: NULL or the layer's.
 * Parameter: weight [rows, width]; its initial values are normal with deviation 1, as PyTorch's. */
TUTTI_API tutti_tensor tutti_embedding(
    tutti_network *network, const char *name, tutti_tensor ids, int64_t rows, int64_t width);

/* The stage that tutti_attention_options.scores gets: the scaled products of queries and keys; these after softcap;
 * these after masks were added; or the probabilities. */
typedef enum tutti_attention_stage {
    TUTTI_SCORES,
    TUTTI_SCORES_CAPPED,
    TUTTI_SCORES_MASKED,
    TUTTI_SCORES_SOFTMAX,
} tutti_attention_stage;
typedef struct tutti_attention_options {
    size_t size; /* sizeof(tutti_attention_options), or 0 */
    const char *name;
    /* 0: queries, keys and values are [heads, length, width]. Otherwise they are [length, heads * width], and so is
     * the result; keys and values have `kv_heads` heads, 0: as many as queries. */
    int64_t heads, kv_heads;
    float scale;   /* of the products; 0: 1 / sqrt(width) */
    float softcap; /* scores become softcap * tanh(scores / softcap); 0: they stay */
    /* A query sees no key after its own position. The position of the first query is the number of past keys; with
     * `key_counts`, the last query's is that of the last key. */
    bool causal;
    int64_t window_before, window_after; /* 1 + how many keys before and after its position it sees; 0: all */
    /* Broadcast to the scores [heads, length, keys] and added to them; or, if it is boolean, keys where it is 0 are
     * not seen. If its last axis is shorter, keys after its end are not seen. NULL: none. */
    const tutti_tensor *mask;
    bool mask_is_boolean;
    const tutti_tensor *past_key, *past_value; /* [kv_heads, past length, width], before keys and values */
    const tutti_tensor *key_counts; /* one number for each sample, f32 or i32: keys from it on are not seen */
    tutti_tensor *present_key, *present_value; /* written: keys and values with the past ones; NULL: not wanted */
    tutti_tensor *scores;                      /* written; NULL: not wanted */
    tutti_attention_stage scores_stage;        /* which ones */
    /* At least 0, below 1. In training, probabilities become 0 with this probability, and the others are divided by
     * 1 - dropout, as by tutti_dropout(), before they weigh v. `scores` are taken before the
     * dropout. */
    float dropout;
} tutti_attention_options;
/* softmax(q k^T * scale + mask) v for each head: scaled dot-product attention (Vaswani et al. 2017), as ONNX's
 * Attention and PyTorch's scaled_dot_product_attention. q [heads, length, width], k [kv_heads, keys, width], v
 * [kv_heads, keys, width of v] -> [heads, length, width of v]. The number of heads is a multiple of kv_heads: each of
 * these serves as many neighbouring heads. A query that sees no key gives 0. Queries and keys may have the length
 * TUTTI_SEQUENCE. Errors: TUTTI_SHAPE, TUTTI_INVALID, TUTTI_UNSUPPORTED. */
TUTTI_API tutti_tensor tutti_attention(
    tutti_network *network, tutti_tensor q, tutti_tensor k, tutti_tensor v, const tutti_attention_options *options);

/* Functions of the gates of recurrent layers. DEFAULT: sigmoid for gates, tanh for values; tanh for tutti_rnn(). */
typedef enum tutti_recurrent_function {
    TUTTI_RECURRENT_DEFAULT,
    TUTTI_RECURRENT_SIGMOID,
    TUTTI_RECURRENT_TANH,
    TUTTI_RECURRENT_RELU,
} tutti_recurrent_function;
/* Tensors are the caller's, and NULL where there is none. `directions` is 2 for bidirectional layers, else 1. */
typedef struct tutti_recurrent_options {
    size_t size; /* sizeof(tutti_recurrent_options), or 0 */
    const char *name;
    bool no_bias;
    bool bidirectional, reverse; /* adds a second layer from the last step to the first one; has only such a layer */
    /* [directions, hidden], for each sample or the same for all. NULL: zeros. initial_c: for tutti_lstm(). */
    const tutti_tensor *initial_h, *initial_c;
    const tutti_tensor *lengths;   /* steps of each sample, one number, float32 or int32; outputs after them are 0 */
    tutti_tensor *last_h, *last_c; /* written: the last states [directions, hidden]; last_c: of tutti_lstm() */
    float clip;                    /* arguments of functions are clipped to [-clip, clip]; 0: they are not */
    tutti_recurrent_function functions[6]; /* ONNX's f, g, h of the first direction, then of the second one */
    bool reset_before; /* tutti_gru(): the reset gate multiplies h before its product, as ONNX's default */
    bool input_forget; /* tutti_lstm(): the forget gate is 1 less the input gate */
    /* ONNX's W [directions, gates * hidden, features], R [directions, gates * hidden, hidden],
     * B [directions, 2 * gates * hidden] and P [directions, 3 * hidden], with gates in ONNX's order, instead of
     * parameters of the layer's own. b and p may be NULL. */
    const tutti_tensor *w, *r, *b, *p;
} tutti_recurrent_options;
/* Recurrent layers as PyTorch's LSTM, GRU and RNN of one layer with batch_first: x [length, features] ->
 * [length, directions * hidden]. The length can be TUTTI_SEQUENCE. options may be NULL.
 * Parameters, with PyTorch's names and order of gates (4 for an LSTM, 3 for a GRU, 1):
 * weight_ih_l0 [gates * hidden, features], weight_hh_l0 [gates * hidden, hidden], bias_ih_l0, bias_hh_l0
 * [gates * hidden]; the second direction's end in _reverse. Errors: TUTTI_SHAPE, TUTTI_INVALID, TUTTI_UNSUPPORTED. */
TUTTI_API tutti_tensor tutti_lstm(
    tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options);
TUTTI_API tutti_tensor tutti_gru(
    tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options);
TUTTI_API tutti_tensor tutti_rnn(
    tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options);

/* Sets the state that the trainer carries (tutti_training.carries) to zeros. The next call may have another number of
 * samples. If the device with the state is lost, another one takes over. Errors: TUTTI_INVALID if the trainer carries
 * nothing; TUTTI_DEVICE_LOST if no device is left. */
TUTTI_API tutti_status tutti_reset_carried(tutti_trainer *trainer);
/* Write and read the state that the next call reads as `input`: [samples][shape of a sample]. If the state has not
 * begun, writing one input sets the others to zeros. Errors: TUTTI_INVALID if the state is of another number of
 * samples, `samples` is above the batch, or `input` is not in `carries`; for reading, also if the state has not begun;
 * TUTTI_DEVICE_LOST. */
TUTTI_API tutti_status tutti_set_carried(
    tutti_trainer *trainer, tutti_tensor input, const float *values, int64_t samples);
TUTTI_API tutti_status tutti_get_carried(tutti_trainer *trainer, tutti_tensor input, float *values, int64_t samples);

/* Discrete Fourier transforms of real tensors, with the norm "backward" of PyTorch: forward transforms have no factor,
 * inverse ones divide by the number of elements. A spectrum is a real tensor whose last axis has size 2: real and
 * imaginary part. Lengths are at most 2^24, of any factors. `dimension` counts the axes of a sample, for irfft without
 * the last one of size 2; -1 is the last one. They fail with TUTTI_INVALID for an axis that does not exist or a length
 * that is too large, and with TUTTI_SHAPE for an axis of size TUTTI_SEQUENCE or too few axes.
 *
 * tutti_rfft    [..., size, ...] -> [..., length / 2 + 1, ..., 2]. length: pads the axis by zeros at the end, or cuts
 * it; 0: its size.
 * tutti_irfft   [..., bins, ..., 2] -> [..., length, ...]. length 0: 2 (bins - 1). Of the frequency 0, and of the one
 * at half the length, only the real part is read. */
TUTTI_API tutti_tensor tutti_rfft(tutti_network *network, tutti_tensor x, int dimension, int64_t length);
TUTTI_API tutti_tensor tutti_irfft(tutti_network *network, tutti_tensor x, int dimension, int64_t length);
/* The last two axes: [..., height, width] -> [..., height, width / 2 + 1, 2], and back. width 0: 2 (columns - 1). */
TUTTI_API tutti_tensor tutti_rfft2(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_irfft2(tutti_network *network, tutti_tensor x, int64_t width);
/* Only the lowest frequencies: [..., height, width] -> [..., rows, columns, 2]. Row r has the frequency r - rows / 2
 * (rounded down) of the height, column c the frequency c of the width; rows <= height, columns <= width. The cost grows
 * with the number of frequencies if they are few. tutti_irfft2_modes() takes all others as 0; columns <= width / 2 + 1.
 */
TUTTI_API tutti_tensor tutti_rfft2_modes(tutti_network *network, tutti_tensor x, int64_t rows, int64_t columns);
TUTTI_API tutti_tensor tutti_irfft2_modes(tutti_network *network, tutti_tensor x, int64_t height, int64_t width);

#ifdef __cplusplus
}
#endif
#endif
