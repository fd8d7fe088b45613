/* The trainer's part of views: outputs that are kept for them. */
#ifndef TRAIN_VIEWS_H
#define TRAIN_VIEWS_H

#include <stdint.h>

struct tutti_trainer;

/* After an inference that has succeeded: notes where the outputs are that it keeps. length: of its sequences. */
void views_keep_outputs(struct tutti_trainer *trainer, int64_t samples, int64_t length);
/* Before the devices' buffers are freed: closes the views that are open. */
void views_close_all(struct tutti_trainer *trainer);
void views_free(struct tutti_trainer *trainer);

#endif
