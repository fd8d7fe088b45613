#include "train/spans.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const struct span_tag outside = { 'O', -1 };

/* The letter of a tag; 0: it is none. */
static char letter_of(const char *name)
{
    static const char letters[] = "BIESLU", same_as[] = "BIESES";
    if (!strcmp(name, "O")) return 'O';
    const char *found = *name ? strchr(letters, *name) : NULL;
    return found && name[1] == '-' && name[2] ? same_as[found - letters] : 0;
}

tutti_status spans_new(const char *const *names, int64_t classes, struct span_tag **made)
{
    bool some = false;
    *made = NULL;
    for (int64_t i = 0; i < classes; i++) {
        if (!names[i] || !letter_of(names[i])) return TUTTI_OK;
        some |= letter_of(names[i]) == 'B' || letter_of(names[i]) == 'I';
    }
    if (!some) return TUTTI_OK;
    struct span_tag *tags = memory_new((size_t)classes, sizeof *tags);
    if (!tags) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < classes; i++) {
        tags[i] = (struct span_tag) { letter_of(names[i]), -1 };
        for (int64_t k = 0; tags[i].letter != 'O' && tags[i].type < 0; k++)
            if (letter_of(names[k]) != 'O' && !strcmp(names[k] + 1, names[i] + 1)) tags[i].type = (int)k;
    }
    *made = tags;
    return TUTTI_OK;
}

static bool is_inside(char letter)
{
    return letter == 'B' || letter == 'I';
}

static bool ends(struct span_tag before, struct span_tag now)
{
    if (before.letter == 'O') return false;
    return !is_inside(before.letter) || now.letter == 'B' || now.letter == 'S' || now.letter == 'O' ||
        before.type != now.type;
}

static bool begins(struct span_tag before, struct span_tag now)
{
    if (now.letter == 'O') return false;
    return !is_inside(before.letter) || now.letter == 'B' || now.letter == 'S' || before.type != now.type;
}

void spans_step(struct span_state *state, const struct span_tag *target, const struct span_tag *predicted,
    const struct span_counts *counts)
{
    const struct span_tag before = state->target.letter ? state->target : outside;
    const struct span_tag guessed = state->predicted.letter ? state->predicted : outside;
    const struct span_tag now = target ? *target : outside, guess = predicted ? *predicted : outside;
    const bool end = ends(before, now), guess_ends = ends(guessed, guess);
    const bool begin = begins(before, now), guess_begins = begins(guessed, guess);
    *counts->right += state->same && end && guess_ends;
    state->same &= !end && !guess_ends;
    if (begin && guess_begins) state->same = now.type == guess.type;
    *counts->targets += begin;
    *counts->predicted += guess_begins;
    state->target = now;
    state->predicted = guess;
}
