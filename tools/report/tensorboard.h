/* Event files that TensorBoard reads: scalars by step. */
#ifndef TOOLS_TENSORBOARD_H
#define TOOLS_TENSORBOARD_H

#include "tutti.h"

struct tensorboard;

/* Makes the folder, and a file with a name of its own in it. */
tutti_status tensorboard_open(struct tensorboard **board, const char *folder);
/* Numbers that are not finite are left out. Failures are told by tensorboard_flush(). */
void tensorboard_scalar(struct tensorboard *board, const char *tag, int64_t step, double value);
/* Writes what was added to the file. */
tutti_status tensorboard_flush(struct tensorboard *board);
void tensorboard_close(struct tensorboard *board); /* takes NULL */

#endif
