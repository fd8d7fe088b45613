/* Files that options name, checked before any work: a training that fails at its end for a path has cost hours. */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include "base/file.h"

/* NAME of NAME, NAME.safetensors or NAME.state.safetensors, without the ending, in memory of the caller. */
const char *files_checkpoint(const char *given, char *buffer, size_t size);
/* The weights that --weights names: NAME.safetensors also for NAME, where there is no such file, and for
 * NAME.state.safetensors. Valid until the next call. */
const char *files_weights(const char *given);
/* How a file of another program is converted, by its extension (.pth, .h5 ...); NULL: the extension is unknown. */
const char *files_conversion(const char *path);

/* Check a file to read, by its beginning, and one to write, by its folder. They print a line and return an exit
 * status. `option` is for messages; a path that is NULL is good. */
int files_check_weights(const char *command, const char *option, const char *path);
int files_check_checkpoint(const char *name);                                      /* both files of `train --resume` */
int files_check_output(const char *command, const char *option, const char *path); /* replaced by renaming */
int files_check_log(const char *command, const char *option, const char *path);    /* appended to, as a pipe may be */
/* Files next to the path, whose names begin with it. */
int files_check_parent(const char *command, const char *option, const char *path);
/* A folder that will be made. */
int files_check_folder(const char *command, const char *option, const char *path);

/* Locks the name of `train --save` against other trainings meanwhile. Waits a moment for one that ends. */
int files_lock(const char *name, struct file_lock **lock);

#endif
