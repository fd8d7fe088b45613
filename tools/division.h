/* How the data of a training were divided into parts, as its weights record it. A training that continues needs the
 * same division: samples that were held out would train otherwise. */
#ifndef TOOLS_DIVISION_H
#define TOOLS_DIVISION_H

#include "tools/user_data.h"

/* Compares options with what the checkpoint NAME records. seed_given: whether the user chose the seed of the options.
 * Takes NULL for `saved`. Errors: TUTTI_MISMATCH names the option. */
tutti_status division_check_options(
    const struct user_data_saved *saved, const char *name, const tutti_data_options *options, bool seed_given);
/* Compares the numbers of samples that were divided. Takes NULL for `saved`. Errors: TUTTI_MISMATCH. */
tutti_status division_check_samples(const struct user_data_saved *saved, const char *name, const tutti_data *data);
/* Prints a line where weights measure data under another --split than that of their training. Takes NULL for `saved`.
 */
void division_report_split(const struct user_data_saved *saved, const char *weights, const tutti_data_options *options);
/* Prints a line where a training that begins with weights divides as many samples as theirs had in another way. */
void division_report_weights(const char *weights, const tutti_data *data);

#endif
