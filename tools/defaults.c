#include "tools/defaults.h"

#include "base/text.h"
#include "tools/progress.h"

#include <string.h>

enum { DEFAULT_EPOCHS = 5 };

/* Tables: the fewest steps that most of them need, and the limits of what follows from it. Measured on the tables of
 * docs/tables.md. */
enum {
    TABLE_STEPS = 4000,
    TABLE_LEAST_EPOCHS = 10,
    TABLE_MOST_EPOCHS = 100,
    TABLE_ROWS_OF_BATCH = 64, /* rows for each sample of a batch */
    TABLE_LEAST_BATCH = 16,
    TABLE_MOST_BATCH = 256
};
#define TABLE_WEIGHT_DECAY 0.01f

static int64_t table_batch(int64_t samples)
{
    int64_t batch = TABLE_LEAST_BATCH;
    while (batch < TABLE_MOST_BATCH && batch * TABLE_ROWS_OF_BATCH < samples) batch *= 2;
    return batch;
}

static int64_t table_epochs(int64_t samples, int64_t batch)
{
    const int64_t steps = (samples + batch - 1) / batch, epochs = TABLE_STEPS / steps;
    return epochs < TABLE_LEAST_EPOCHS ? TABLE_LEAST_EPOCHS : epochs > TABLE_MOST_EPOCHS ? TABLE_MOST_EPOCHS : epochs;
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
        training->weight_decay = TABLE_WEIGHT_DECAY;
        text_append(line, " --weight-decay %g", (double)TABLE_WEIGHT_DECAY);
    }
}

static void choose_for_table(
    const struct defaults_options *o, const struct model *model, int64_t samples, struct text *line)
{
    if (!o->training->batch) {
        const int64_t batch = table_batch(samples);
        o->training->batch = batch < samples ? batch : samples;
        text_append(line, " --batch %lld", (long long)o->training->batch);
    }
    if (!o->fitting->epochs && !o->fitting->steps) {
        o->fitting->epochs = table_epochs(samples, o->training->batch);
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
        choose_for_table(o, model, samples, &line);
    else
        choose_optimizer(o, model);
    if (!o->training->batch) o->training->batch = model->batch < samples ? model->batch : samples;
    if (fitting->steps && !fitting->epochs) o->schedule->options.steps = TUTTI_SCHEDULE_CALL;
    if (!fitting->epochs) fitting->epochs = fitting->steps ? PROGRESS_ENDLESS : DEFAULT_EPOCHS;
    return line.data;
}
