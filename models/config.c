#include "models/config.h"

#include "models/text_models.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* A config.json that is read; the first failure is kept. */
struct reading {
    const json_t *object;
    char *message;
    size_t bytes;
    bool failed;
};

#define REFUSE(r, ...) \
    ((r)->failed ? (void)0 : ((r)->failed = true, (void)snprintf((r)->message, (r)->bytes, __VA_ARGS__)))

/* NULL where there is none, or null. */
static const json_t *find(const struct reading *r, const char *name)
{
    const json_t *value = json_object_get(r->object, name);
    return json_is_null(value) ? NULL : value;
}

static void read_size(struct reading *r, const char *name, int64_t least, int64_t *size)
{
    enum { MOST = 1 << 28 };
    const json_t *value = find(r, name);
    if (!value) return;
    *size = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    if (*size < least || *size > MOST)
        REFUSE(r, "%s must be a whole number from %lld to %d", name, (long long)least, MOST);
}

static void read_double(struct reading *r, const char *name, double least, double most, double *number)
{
    const json_t *value = find(r, name);
    if (!value) return;
    *number = json_is_number(value) ? json_number_value(value) : least - 1;
    if (!(*number >= least && *number <= most)) REFUSE(r, "%s is not a number, or out of its range", name);
}

static void read_float(struct reading *r, const char *name, double most, float *number)
{
    double wide = (double)*number;
    read_double(r, name, 0, most, &wide);
    *number = (float)wide;
}

static void read_flag(struct reading *r, const char *name, bool *flag)
{
    const json_t *value = find(r, name);
    if (!value) return;
    *flag = json_is_true(value);
    if (!json_is_boolean(value)) REFUSE(r, "%s must be true or false", name);
}

/* The flag must be as these networks are. */
static void expect_flag(struct reading *r, const char *name, bool wanted)
{
    bool flag = wanted;
    read_flag(r, name, &flag);
    if (flag != wanted) REFUSE(r, "%s is %s, which these networks do not have", name, flag ? "true" : "false");
}

/* One of `words`, ended by NULL. */
static void read_word(struct reading *r, const char *name, const char *const *words, int *position)
{
    const json_t *value = find(r, name);
    const char *word = json_string_value(value);
    if (!value) return;
    for (int i = 0; word && words[i]; i++) {
        if (strcmp(words[i], word) != 0) continue;
        *position = i;
        return;
    }
    REFUSE(r, "%s is \"%s\", which these networks do not have", name, word ? word : "not a text");
}

static void read_activation(struct reading *r, const char *name, enum model_activation *activation)
{
    static const char *const words[] = { "gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh", "swish", NULL };
    static const enum model_activation meant[] = { MODEL_GELU, MODEL_GELU_TANH, MODEL_RELU, MODEL_SILU, MODEL_GELU_TANH,
        MODEL_SILU };
    int position = -1;
    read_word(r, name, words, &position);
    if (position >= 0) *activation = meant[position];
}

/* ------------------------------------------------------------------------------------------------- families ---- */

static void read_speech(struct reading *r, struct model_config *c)
{
    read_size(r, "width", 1, &c->width);
    read_size(r, "hidden_size", 1, &c->hidden);
    read_size(r, "num_hidden_layers", 1, &c->layers);
    read_flag(r, "bidirectional", &c->bidirectional);
    read_float(r, "dropout", 0.99, &c->dropout.hidden);
}

static void read_recurrent(struct reading *r, struct model_config *c)
{
    static const char *const words[] = { "attention", "mean", "max", "last", NULL };
    int pooling = (int)c->pooling;
    read_size(r, "embedding_size", 1, &c->width);
    read_size(r, "hidden_size", 1, &c->hidden);
    read_size(r, "num_hidden_layers", 1, &c->layers);
    read_flag(r, "bidirectional", &c->bidirectional);
    read_word(r, "pooling", words, &pooling);
    read_float(r, "dropout", 0.99, &c->dropout.hidden);
    c->pooling = (enum model_pooling)pooling;
}

static void read_fasttext(struct reading *r, struct model_config *c)
{
    enum { MOST_BUCKETS = 1 << 18 }; /* see fasttext.c */
    read_size(r, "embedding_size", 1, &c->width);
    read_size(r, "buckets", 0, &c->buckets);
    read_float(r, "initializer_range", 10, &c->deviation);
    if (c->buckets > MOST_BUCKETS || (c->buckets & (c->buckets - 1)))
        REFUSE(r, "buckets must be a power of two up to %d, or 0", MOST_BUCKETS);
}

static void read_bert(struct reading *r, struct model_config *c)
{
    static const char *const absolute[] = { "absolute", NULL };
    int kind = 0;
    read_size(r, "hidden_size", 1, &c->width);
    read_size(r, "intermediate_size", 1, &c->hidden);
    read_size(r, "num_hidden_layers", 1, &c->layers);
    read_size(r, "num_attention_heads", 1, &c->heads);
    read_size(r, "max_position_embeddings", 1, &c->positions);
    read_size(r, "type_vocab_size", 1, &c->types);
    read_activation(r, "hidden_act", &c->activation);
    read_float(r, "hidden_dropout_prob", 0.99, &c->dropout.hidden);
    read_float(r, "attention_probs_dropout_prob", 0.99, &c->dropout.attention);
    read_float(r, "initializer_range", 10, &c->deviation);
    read_float(r, "layer_norm_eps", 1, &c->epsilon);
    read_word(r, "position_embedding_type", absolute, &kind);
    expect_flag(r, "is_decoder", false);
    expect_flag(r, "add_cross_attention", false);
    c->dropout.embedding = c->dropout.head = c->dropout.hidden;
    read_float(r, "classifier_dropout", 0.99, &c->dropout.head);
}

static void read_fno(struct reading *r, struct model_config *c)
{
    enum { MOST = 4096 };
    read_size(r, "width", 1, &c->width);
    read_size(r, "modes", 1, &c->modes);
    read_size(r, "layers", 1, &c->layers);
    read_size(r, "hidden", 1, &c->hidden);
    if (c->width > MOST || c->modes > MOST) REFUSE(r, "width and modes must be at most %d", MOST);
}

/* The first two positions of RoBERTa are not of tokens: they follow the number of the padding token. */
static void read_roberta(struct reading *r, struct model_config *c)
{
    int64_t padding = 1;
    c->positions += 2;
    read_bert(r, c);
    read_size(r, "pad_token_id", 0, &padding);
    c->positions -= 2;
    if (padding != 1)
        REFUSE(r, "pad_token_id is %lld: positions count from 1 more, which must be 2", (long long)padding);
    if (c->positions < 1) REFUSE(r, "max_position_embeddings must be at least 3");
}

static void read_distilbert(struct reading *r, struct model_config *c)
{
    read_size(r, "dim", 1, &c->width);
    read_size(r, "hidden_dim", 1, &c->hidden);
    read_size(r, "n_layers", 1, &c->layers);
    read_size(r, "n_heads", 1, &c->heads);
    read_size(r, "max_position_embeddings", 1, &c->positions);
    read_activation(r, "activation", &c->activation);
    read_float(r, "dropout", 0.99, &c->dropout.hidden);
    read_float(r, "attention_dropout", 0.99, &c->dropout.attention);
    read_float(r, "seq_classif_dropout", 0.99, &c->dropout.head);
    read_float(r, "initializer_range", 10, &c->deviation);
    c->dropout.embedding = c->dropout.hidden;
}

static void read_gpt(struct reading *r, struct model_config *c)
{
    bool bias = c->bias.mlp;
    c->hidden = 0;
    read_size(r, "n_embd", 1, &c->width);
    read_size(r, "n_layer", 1, &c->layers);
    read_size(r, "n_head", 1, &c->heads);
    read_size(r, "block_size", 1, &c->positions);
    read_flag(r, "bias", &bias);
    read_float(r, "dropout", 0.99, &c->dropout.hidden);
    c->bias = (struct model_biases) { bias, bias, bias };
    c->dropout.attention = c->dropout.embedding = c->dropout.hidden;
    c->hidden = 4 * c->width;
}

static void read_gpt2(struct reading *r, struct model_config *c)
{
    c->hidden = 0;
    read_size(r, "n_embd", 1, &c->width);
    read_size(r, "n_layer", 1, &c->layers);
    read_size(r, "n_head", 1, &c->heads);
    read_size(r, "n_inner", 1, &c->hidden);
    read_size(r, "n_positions", 1, &c->positions);
    read_activation(r, "activation_function", &c->activation);
    read_float(r, "resid_pdrop", 0.99, &c->dropout.hidden);
    read_float(r, "attn_pdrop", 0.99, &c->dropout.attention);
    read_float(r, "embd_pdrop", 0.99, &c->dropout.embedding);
    read_float(r, "initializer_range", 10, &c->deviation);
    read_float(r, "layer_norm_epsilon", 1, &c->epsilon);
    read_flag(r, "tie_word_embeddings", &c->tied);
    expect_flag(r, "scale_attn_weights", true);
    expect_flag(r, "scale_attn_by_inverse_layer_idx", false);
    expect_flag(r, "add_cross_attention", false);
    if (c->hidden == 0) c->hidden = 4 * c->width;
}

/* The rotation stands in the object itself, or in one of its own, which older files call otherwise. */
static void read_rotary(struct reading *r, struct model_config *c)
{
    static const char *const kinds[] = { "default", "linear", "llama3", NULL };
    struct model_rotary *rotary = &c->rotary;
    double part = 1;
    int kind = ROTARY_DEFAULT;
    read_double(r, "rope_theta", 1, 1e12, &rotary->theta);
    read_double(r, "partial_rotary_factor", 0, 1, &part);
    const json_t *own = find(r, "rope_parameters");
    if (!own) own = find(r, "rope_scaling");
    if (own) {
        struct reading inner = { .object = own, .message = r->message, .bytes = r->bytes, .failed = r->failed };
        read_word(&inner, find(&inner, "rope_type") ? "rope_type" : "type", kinds, &kind);
        read_double(&inner, "rope_theta", 1, 1e12, &rotary->theta);
        read_double(&inner, "partial_rotary_factor", 0, 1, &part);
        read_double(&inner, "factor", 1, 1e6, &rotary->factor);
        read_double(&inner, "low_freq_factor", 1e-6, 1e6, &rotary->low);
        read_double(&inner, "high_freq_factor", 1e-6, 1e6, &rotary->high);
        read_double(&inner, "original_max_position_embeddings", 1, 1e9, &rotary->original);
        if (!json_is_object(own)) REFUSE(&inner, "rope_scaling must be an object");
        r->failed = inner.failed;
    }
    rotary->kind = (enum model_rotary_kind)kind;
    if (part < 1) REFUSE(r, "partial_rotary_factor is below 1: these networks turn whole heads");
    if (kind == ROTARY_LLAMA3 && !(rotary->high > rotary->low && rotary->original > 0))
        REFUSE(r,
            "rope_scaling: high_freq_factor must be above low_freq_factor, and "
            "original_max_position_embeddings given");
}

/* Newer files name the kind of each layer; Qwen's older ones say from which layer on there are windows. */
static void read_window(struct reading *r, struct model_config *c, bool used, int64_t first)
{
    const json_t *kinds = find(r, "layer_types");
    read_flag(r, "use_sliding_window", &used);
    read_size(r, "max_window_layers", 0, &first);
    if (used) read_size(r, "sliding_window", 1, &c->window.size);
    if (c->window.size == 0) return;
    if (kinds && json_array_size(kinds) != (size_t)c->layers) REFUSE(r, "layer_types must have a word for each layer");
    for (int64_t i = 0; i < c->layers && i < MODEL_MOST_LAYERS; i++) {
        const char *kind = json_string_value(json_array_get(kinds, (size_t)i));
        c->window.layers[i] = kinds ? kind && !strcmp(kind, "sliding_attention") : i >= first;
        if (kinds && (!kind || (!c->window.layers[i] && strcmp(kind, "full_attention") != 0)))
            REFUSE(r, "layer_types has \"%s\", which these networks do not have", kind ? kind : "no text");
    }
}

static void read_llama(struct reading *r, struct model_config *c, const char *type)
{
    const bool qwen2 = !strcmp(type, "qwen2"), qwen3 = !strcmp(type, "qwen3"), mistral = !strcmp(type, "mistral");
    bool attention = false;
    c->kv_heads = c->head_width = 0;
    read_size(r, "hidden_size", 1, &c->width);
    read_size(r, "intermediate_size", 1, &c->hidden);
    read_size(r, "num_hidden_layers", 1, &c->layers);
    read_size(r, "num_attention_heads", 1, &c->heads);
    read_size(r, "num_key_value_heads", 1, &c->kv_heads);
    read_size(r, "head_dim", 1, &c->head_width);
    read_size(r, "max_position_embeddings", 1, &c->positions);
    read_activation(r, "hidden_act", &c->activation);
    read_float(r, "attention_dropout", 0.99, &c->dropout.attention);
    read_float(r, "initializer_range", 10, &c->deviation);
    read_float(r, "rms_norm_eps", 1, &c->epsilon);
    read_flag(r, "tie_word_embeddings", &c->tied);
    if (!qwen2 && !mistral) read_flag(r, "attention_bias", &attention);
    c->bias.queries = attention || qwen2;
    c->bias.output = attention;
    if (!qwen2 && !qwen3 && !mistral) read_flag(r, "mlp_bias", &c->bias.mlp);
    c->norm_of_queries = qwen3;
    if (qwen2 || qwen3 || mistral) read_window(r, c, mistral, mistral ? 0 : 28);
    read_rotary(r, c);
    if (c->kv_heads == 0) c->kv_heads = qwen2 || qwen3 ? 32 : mistral ? 8 : c->heads;
    if (c->head_width == 0 && qwen3) c->head_width = 128;
    if (c->head_width == 0 && c->heads > 0) {
        if (c->width % c->heads) REFUSE(r, "hidden_size must be a multiple of num_attention_heads, or head_dim given");
        c->head_width = c->width / c->heads;
    }
    if (c->heads % (c->kv_heads > 0 ? c->kv_heads : 1))
        REFUSE(r, "num_attention_heads must be a multiple of num_key_value_heads");
    if (c->head_width % 2) REFUSE(r, "head_dim must be even");
    if (c->activation != MODEL_SILU) REFUSE(r, "hidden_act must be \"silu\"");
}

/* ---------------------------------------------------------------------------------------------------- reading ---- */

#define LLAMA_DEFAULTS                                                                                              \
    .family = FAMILY_LLAMA, .width = 4096, .layers = 32, .heads = 32, .activation = MODEL_SILU, .deviation = 0.02f, \
    .epsilon = 1e-6f, .rotary = { .theta = 10000, .factor = 1, .low = 1, .high = 4 }

static const struct model_config roberta_defaults = { .family = FAMILY_ROBERTA,
    .vocabulary = 50265,
    .positions = 510, /* of 512 rows, the first two are for padding */
    .types = 2,
    .width = 768,
    .hidden = 3072,
    .layers = 12,
    .heads = 12,
    .dropout = { 0.1f, 0.1f, 0.1f, 0.1f },
    .deviation = 0.02f,
    .epsilon = 1e-12f };
static const struct model_config llama_defaults = { LLAMA_DEFAULTS, .vocabulary = 32000, .positions = 2048,
    .hidden = 11008 };
static const struct model_config mistral_defaults = { LLAMA_DEFAULTS, .vocabulary = 32000, .positions = 131072,
    .hidden = 14336, .window = { .size = 4096 } };
static const struct model_config qwen_defaults = { LLAMA_DEFAULTS, .vocabulary = 151936, .positions = 32768,
    .hidden = 22016 };

/* transformers' defaults: a config.json may leave them out. */
static const struct {
    const char *type;
    const struct model_config *defaults;
} published[] = {
    { "bert", &bert_base_config },
    { "roberta", &roberta_defaults },
    { "distilbert", &distilbert_config },
    { "gpt2", &gpt2_config },
    { "llama", &llama_defaults },
    { "mistral", &mistral_defaults },
    { "qwen2", &qwen_defaults },
    { "qwen3", &qwen_defaults },
};
enum { PUBLISHED = sizeof published / sizeof *published };

static const char *type_of(enum model_family family)
{
    for (int i = 0; i < PUBLISHED; i++)
        if (published[i].defaults->family == family) return published[i].type;
    return "";
}

static void begin(struct reading *r, const struct model_config *own, const char *type, struct model_config *config)
{
    *config = *own;
    for (int i = 0; i < PUBLISHED; i++) {
        if (strcmp(published[i].type, type) != 0) continue;
        *config = *published[i].defaults;
        if (config->family == own->family) return;
        REFUSE(r, "it is of a network of the type \"%s\", and not of %s", type,
            *type_of(own->family) ? type_of(own->family) : "this model");
        return;
    }
    if (*type) REFUSE(r, "it is of a network of the type \"%s\", which is not one of those that are known", type);
}

static void check_heads(struct reading *r, const struct model_config *c)
{
    if (c->layers > MODEL_MOST_LAYERS) REFUSE(r, "more than %d layers are too many", MODEL_MOST_LAYERS);
    if (c->family != FAMILY_LLAMA && c->heads > 0 && c->width % c->heads)
        REFUSE(
            r, "the %lld units of a state cannot be divided by %lld heads", (long long)c->width, (long long)c->heads);
}

static void read_family(struct reading *r, struct model_config *config, const char *type)
{
    read_size(r, "vocab_size", 1, &config->vocabulary);
    switch (config->family) {
    case FAMILY_FASTTEXT: read_fasttext(r, config); break;
    case FAMILY_LSTM:
    case FAMILY_GRU: read_recurrent(r, config); break;
    case FAMILY_BERT: read_bert(r, config); break;
    case FAMILY_ROBERTA: read_roberta(r, config); break;
    case FAMILY_DISTILBERT: read_distilbert(r, config); break;
    case FAMILY_FNO: read_fno(r, config); break;
    case FAMILY_SPEECH: read_speech(r, config); break;
    case FAMILY_GPT: read_gpt(r, config); break;
    case FAMILY_GPT2: read_gpt2(r, config); break;
    case FAMILY_LLAMA: read_llama(r, config, type); break;
    }
    check_heads(r, config);
}

bool model_config_read(
    const char *json, const struct model_config *own, struct model_config *config, char *message, size_t bytes)
{
    json_error_t error;
    json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    struct reading r = { .object = object, .message = message, .bytes = bytes };
    if (json_is_object(object)) {
        const char *type = json_string_value(find(&r, "model_type"));
        begin(&r, own, type ? type : type_of(own->family), config);
        read_family(&r, config, type ? type : type_of(own->family));
    } else {
        REFUSE(&r, "it is not an object of JSON: %s", object ? "it is something else" : error.text);
    }
    json_decref(object);
    return !r.failed;
}
