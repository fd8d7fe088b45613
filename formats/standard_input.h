/* Standard input as a file that can be read several times. */
#ifndef FORMATS_STANDARD_INPUT_H
#define FORMATS_STANDARD_INPUT_H

#include "tutti.h"

/* Opens a new descriptor at the begin of what standard input had. The first call reads all of it into a file without a
 * name in the folder for temporary files, which lasts as long as the process. */
tutti_status standard_input_open(int *descriptor);

#endif
