/* Scores of transcripts: the edit distance (Levenshtein 1966) of characters and of words. */
#include "train/scores.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t tutti_ctc_labels(const float *logits, int64_t steps, int64_t classes, int blank, int32_t *labels)
{
    int64_t count = 0;
    int32_t last = -1;
    for (int64_t t = 0; t < steps; t++) {
        const float *x = logits + t * classes;
        int32_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (x[c] > x[best]) best = (int32_t)c;
        if (best != blank && best != last) labels[count++] = best;
        last = best;
    }
    return count;
}

/* Two lists of numbers, equal where what they stand for is equal. */
struct sequences {
    int64_t *target, *found;
    int64_t targets, founds;
};

/* Returns how many elements must be inserted, left out or exchanged. row [targets + 1] */
static int64_t distance(const struct sequences *s, int64_t *row)
{
    for (int64_t j = 0; j <= s->targets; j++) row[j] = j;
    for (int64_t i = 0; i < s->founds; i++) {
        int64_t diagonal = row[0];
        row[0] = i + 1;
        for (int64_t j = 0; j < s->targets; j++) {
            const int64_t exchanged = diagonal + (s->found[i] != s->target[j]);
            const int64_t least = row[j] < row[j + 1] ? row[j] : row[j + 1];
            diagonal = row[j + 1];
            row[j + 1] = exchanged < least + 1 ? exchanged : least + 1;
        }
    }
    return row[s->targets];
}

/* Writes each character of UTF-8 as a number. */
static int64_t list_characters(const char *text, int64_t *numbers)
{
    int64_t count = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if ((*c & 0xc0) != 0x80 || count == 0) numbers[count++] = 0;
        numbers[count - 1] = numbers[count - 1] << 8 | *c;
    }
    return count;
}

/* Writes where each word begins, and returns how many there are. */
static int64_t list_words(const char *text, int64_t *begins)
{
    int64_t count = 0;
    for (const char *c = text; *c; c++)
        if (*c != ' ' && (c == text || c[-1] == ' ')) begins[count++] = c - text;
    return count;
}

static bool same_word(const char *a, const char *b)
{
    const size_t size = strcspn(a, " ");
    return size == strcspn(b, " ") && !memcmp(a, b, size);
}

/* Replaces words by the place where the first one that is equal begins, among the targets and then the found ones. */
static void number_words(struct sequences *words, const char *target, const char *found)
{
    int64_t *const at[] = { words->target, words->found };
    const int64_t counts[] = { words->targets, words->founds };
    const char *const texts[] = { target, found };
    const int64_t second = (int64_t)strlen(target) + 1;
    int64_t *first = words->found + words->founds; /* of each target, as `target` is overwritten */
    memcpy(first, words->target, (size_t)words->targets * sizeof *first);
    for (int list = 0; list < 2; list++)
        for (int64_t i = 0; i < counts[list]; i++) {
            int64_t k = 0;
            const char *word = texts[list] + at[list][i];
            while (k < words->targets && !same_word(word, target + first[k])) k++;
            at[list][i] = k < words->targets ? first[k] : second + at[list][i];
        }
}

struct edits {
    int64_t characters, wrong, words, wrong_words;
};

static tutti_status compare_texts(const char *target, const char *found, struct edits *edits)
{
    const size_t a = strlen(target) + 1, b = strlen(found) + 1;
    int64_t *memory = memory_new(3 * a + b, sizeof *memory);
    if (!memory) return TUTTI_NO_MEMORY;
    struct sequences s = { .target = memory, .found = memory + a };
    s.targets = list_characters(target, s.target);
    s.founds = list_characters(found, s.found);
    edits->characters = s.targets;
    edits->wrong = distance(&s, memory + a + b);
    s.targets = list_words(target, s.target);
    s.founds = list_words(found, s.found);
    number_words(&s, target, found);
    edits->words = s.targets;
    edits->wrong_words = distance(&s, memory + 2 * a + b);
    free(memory);
    return TUTTI_OK;
}

static tutti_status compare_labels(
    const int32_t *target, int64_t targets, const int32_t *found, int64_t founds, struct edits *edits)
{
    int64_t *memory = memory_new((size_t)(2 * targets + founds) + 1, sizeof *memory);
    if (!memory) return TUTTI_NO_MEMORY;
    const struct sequences s = { memory, memory + targets, targets, founds };
    for (int64_t i = 0; i < targets; i++) s.target[i] = target[i];
    for (int64_t i = 0; i < founds; i++) s.found[i] = found[i];
    *edits = (struct edits) { .characters = targets, .wrong = distance(&s, memory + targets + founds) };
    free(memory);
    return TUTTI_OK;
}

static tutti_status compare(const tutti_scores *scores, const int32_t *target, int64_t targets, const int32_t *found,
    int64_t founds, struct edits *edits)
{
    if (!scores->text) return compare_labels(target, targets, found, founds, edits);
    char *first = scores->text(scores->user, target, targets);
    char *second = first ? scores->text(scores->user, found, founds) : NULL;
    const tutti_status status =
        second ? compare_texts(first, second, edits) : fail(TUTTI_INVALID, "labels of a transcript have no text");
    free(first);
    free(second);
    return status;
}

tutti_status scores_add_transcript(
    tutti_scores *scores, const float *outputs, int64_t steps, const int32_t *target, tutti_mistake *mistake)
{
    struct edits edits = { 0 };
    int64_t targets = 0;
    int32_t *found = memory_new((size_t)steps + 1, sizeof *found);
    if (!found) return TUTTI_NO_MEMORY;
    while (targets < scores->transcript && target[targets] >= 0) targets++;
    const int64_t founds = tutti_ctc_labels(outputs, steps, scores->classes, scores->blank, found);
    const tutti_status status = compare(scores, target, targets, found, founds, &edits);
    free(found);
    if (status != TUTTI_OK) return status;
    scores->counts[SCORES_SAMPLES]++;
    scores->counts[SCORES_LABELS] += edits.characters;
    scores->counts[SCORES_RIGHT] += edits.wrong == 0;
    scores->counts[SCORES_EDITS] += edits.wrong;
    scores->counts[SCORES_WORDS] += edits.words;
    scores->counts[SCORES_WORD_EDITS] += edits.wrong_words;
    mistake->loss = (double)edits.wrong / (double)(edits.characters > 0 ? edits.characters : 1);
    mistake->error = (double)edits.wrong;
    return TUTTI_OK;
}
