#include "tools/defaults.h"

#include "base/text.h"
#include "tools/progress.h"

#include <string.h>

enum { DEFAULT_EPOCHS = 5 };

/* Tables: the steps that large ones need. Small ones end earlier, for they would be learned by heart. Measured on the
 * tables of docs/tables.md. */
enum {
    TABLE_STEPS = 4000,
    TABLE_LEAST_EPOCHS = 10,
    TABLE_FEW_EPOCHS = 20, /* of the smallest tables */
    TABLE_MOST_EPOCHS = 64,
    TABLE_ROWS_OF_BATCH = 64, /* rows for each sample of a batch */
    TABLE_LEAST_BATCH = 16,
    TABLE_MOST_BATCH = 256
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static int64_t table_batch(int64_t samples)
{
    int64_t batch = TABLE_LEAST_BATCH;
    while (batch < TABLE_MOST_BATCH && batch * TABLE_ROWS_OF_BATCH < samples) batch *= 2;
    return batch;
}

static int64_t table_epochs(const struct model *model, const tutti_data_info *info, int64_t samples, int64_t batch)
{
    if (model->few_epochs && info->classes == 0 && samples < MODEL_FEW_SAMPLES) return model->few_epochs;
    const int64_t steps = (samples + batch - 1) / batch, rows = samples / TABLE_ROWS_OF_BATCH;
    const int64_t most = clamp(rows, TABLE_FEW_EPOCHS, TABLE_MOST_EPOCHS);
    return clamp(TABLE_STEPS / steps, TABLE_LEAST_EPOCHS, most);
}

/* Takes the model's optimizer where none is given; another optimizer starts from the library's defaults. */
static void choose_optimizer(const struct defaults_options *o, const struct model *model)
{
    tutti_training *training = o->training;
    if (!o->given->optimizer) training->optimizer = model->optimizer;
    if (training->optimizer != model->optimizer) return;
    if (training->learning_rate == 0) training->learning_rate = model->learning_rate;
    if (!o->given->momentum) training->momentum = model->momentum;
    if (!o->given->weight_decay) training->weight_decay = model->weight_decay;
}

/* Options that are of other optimizers ask for the model's. */
static bool takes_adamw(const struct defaults_options *o)
{
    const tutti_training *training = o->training;
    if (o->given->optimizer) return training->optimizer == TUTTI_ADAMW;
    return !o->given->momentum && !training->nesterov && !training->centered;
}

static void choose_adamw(const struct defaults_options *o, const struct model *model, struct text *line)
{
    tutti_training *training = o->training;
    if (!o->given->optimizer) text_append(line, " --optimizer adamw");
    training->optimizer = TUTTI_ADAMW;
    if (training->learning_rate == 0) {
        training->learning_rate = model->table_rate;
        text_append(line, " --lr %g", (double)model->table_rate);
    }
    if (!o->given->weight_decay) {
        training->weight_decay = model->table_weight_decay;
        text_append(line, " --weight-decay %g", (double)model->table_weight_decay);
    }
}

static void choose_for_table(const struct defaults_options *o, const struct model *model, const tutti_data_info *info,
    int64_t samples, struct text *line)
{
    if (!o->training->batch) {
        const int64_t batch = table_batch(samples);
        o->training->batch = batch < samples ? batch : samples;
        text_append(line, " --batch %lld", (long long)o->training->batch);
    }
    if (!o->fitting->epochs && !o->fitting->steps) {
        o->fitting->epochs = table_epochs(model, info, samples, o->training->batch);
        text_append(line, " --epochs %lld", (long long)o->fitting->epochs);
    }
    if (takes_adamw(o))
        choose_adamw(o, model, line);
    else
        choose_optimizer(o, model);
    if (!o->schedule->kind_given) {
        o->schedule->options.kind = TUTTI_SCHEDULE_COSINE;
        o->fitting->schedule = &o->schedule->options;
        text_append(line, " --schedule cosine");
    }
}

char *defaults_choose(
    const struct defaults_options *o, const struct model *model, const tutti_data_info *info, int64_t samples)
{
    tutti_fitting *fitting = o->fitting;
    struct text line = { 0 };
    if (model->table_rate > 0 && !strcmp(info->kind, "table"))
        choose_for_table(o, model, info, samples, &line);
    else
        choose_optimizer(o, model);
    if (!o->training->batch) o->training->batch = model->batch < samples ? model->batch : samples;
    if (fitting->steps && !fitting->epochs) o->schedule->options.steps = TUTTI_SCHEDULE_CALL;
    if (!fitting->epochs) fitting->epochs = fitting->steps ? PROGRESS_ENDLESS : DEFAULT_EPOCHS;
    return line.data;
}
