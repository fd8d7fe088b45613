/* Sentences whose words have tags: the first token of a word has its tag as the target, other tokens have none. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

tutti_status tags_add_word(struct texts *texts, const char *word, const char *tag)
{
    struct text_tags *tags = &texts->targets.tags;
    struct text_word *made;
    size_t at;
    tutti_status status = TUTTI_OK;
    TRY(memory_grow((void **)&tags->words, &tags->room, tags->count + 1, sizeof *tags->words));
    made = &tags->words[tags->count];
    *made = (struct text_word) { .token = -1, .tag = -1 };
    if (tag) TRY(table_class_of(&texts->targets.classes, tag, &made->tag));
    TRY(names_add(&tags->names, word, NULL, &made->name));
    TRY(names_add(&tags->line, word, NULL, &at));
    tags->count++;
done:
    return status;
}

tutti_status tags_end_sentence(struct texts *texts, int part, int64_t row, const char *name)
{
    struct text_tags *tags = &texts->targets.tags;
    const size_t samples = (size_t)texts->collection.samples;
    tutti_status status = TUTTI_OK;
    if (tags->line.used == 0) return TUTTI_OK;
    if (!tags->before && texts->tokenizer) TRY(words_begin(tags, texts->tokenizer));
    TRY(memory_grow((void **)&tags->sentences, &tags->sentences_room, samples + 1, sizeof *tags->sentences));
    TRY(texts_add_sample(texts, part, row, name));
    tags->sentences[samples] = (struct text_sentence) { samples ? tags->sentences[samples - 1].ends : 0, tags->count };
    TRY(texts_queue(texts, tags->line.text, tags->line.used, NULL, 0));
    tags->line.used = 0;
done:
    return status;
}

tutti_status tags_add_text(struct texts *texts, int part, const char *name, const char *text)
{
    tutti_status status = TUTTI_OK;
    for (const char *at = text + strspn(text, " \t\r\n\f\v"); *at; at += strspn(at, " \t\r\n\f\v")) {
        const size_t bytes = strcspn(at, " \t\r\n\f\v");
        char *word = memory_format("%.*s", (int)bytes, at);
        status = word ? tags_add_word(texts, word, NULL) : TUTTI_NO_MEMORY;
        free(word);
        if (status != TUTTI_OK) return status;
        at += bytes;
    }
    return tags_end_sentence(texts, part, 0, name);
}

tutti_status tags_end(struct texts *texts)
{
    struct text_tags *tags = &texts->targets.tags;
    struct collection *collection = &texts->collection;
    size_t tagged = 0;
    free(collection->labels);
    collection->labels = NULL;
    texts->targets.by_class = true;
    collection->info.target_dtype = TUTTI_DTYPE_I32;
    if (texts->targets.classes.count == 0) return TUTTI_OK;
    int32_t *classes = memory_new(tags->count + 1, sizeof *classes);
    if (!classes) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < tags->count; i++)
        if (tags->words[i].tag >= 0) classes[tagged++] = tags->words[i].tag;
    const tutti_status status = texts_name_classes(texts, classes, tagged);
    for (size_t i = 0, k = 0; status == TUTTI_OK && i < tags->count; i++)
        if (tags->words[i].tag >= 0) tags->words[i].tag = classes[k++];
    free(classes);
    return status;
}

void tags_read(const struct texts *texts, int64_t sample, int64_t length, int32_t *targets)
{
    const struct text_tags *tags = &texts->targets.tags;
    for (int64_t i = 0; i < length; i++) targets[i] = -1;
    for (size_t i = tags->sentences[sample].begins; i < tags->sentences[sample].ends; i++)
        if (tags->words[i].token >= 0 && tags->words[i].token < length)
            targets[tags->words[i].token] = tags->words[i].tag;
}

void tags_renumber(struct collection *collection, const int32_t *numbers)
{
    struct texts *texts = (struct texts *)collection;
    struct text_tags *tags = &texts->targets.tags;
    for (size_t i = 0; i < tags->count; i++)
        if (tags->words[i].tag >= 0) tags->words[i].tag = numbers[tags->words[i].tag];
}

const char *tags_word(const struct collection *collection, int64_t index, int64_t word, int64_t *token)
{
    const struct text_tags *tags = &((const struct texts *)collection)->targets.tags;
    const struct text_sentence *sentence = &tags->sentences[index];
    if (word < 0 || (size_t)word >= sentence->ends - sentence->begins) return NULL;
    const struct text_word *found = &tags->words[sentence->begins + (size_t)word];
    if (token) *token = found->token;
    return names_at(&tags->names, found->name);
}

void tags_free(struct text_tags *tags)
{
    names_free(&tags->names);
    names_free(&tags->line);
    free(tags->words);
    free(tags->sentences);
    free(tags->before);
    free(tags->after);
}
