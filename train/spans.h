/* Spans of words that tags such as B-PER and I-PER name, counted as conlleval does (Tjong Kim Sang, Buchholz 2000). */
#ifndef TRAIN_SPANS_H
#define TRAIN_SPANS_H

#include "tutti.h"

/* What a class says: the first letter of its tag, and which classes are of its type. */
struct span_tag {
    char letter; /* B, I, E, S or O; of BILOU, L is E and U is S */
    int type;    /* the first class with this type; -1: of O */
};
/* Where two sequences of tags are: the right one and the predicted one. */
struct span_state {
    struct span_tag target, predicted; /* of the word before; letter 0: there is none */
    bool same;                         /* both are in a span that began at one word and is of one type */
};
struct span_counts {
    int64_t *targets, *predicted, *right;
};

/* Makes the tags of classes with these names; *tags stays NULL if they are not all tags of spans. */
tutti_status spans_new(const char *const *names, int64_t classes, struct span_tag **tags);
/* Goes on to a word with these tags; NULL: past the last word. */
void spans_step(struct span_state *state, const struct span_tag *target, const struct span_tag *predicted,
    const struct span_counts *counts);

#endif
