/* Which process wrote something into a file that other processes and other hosts read. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>

enum process_state { PROCESS_LIVES, PROCESS_ENDED, PROCESS_ELSEWHERE };
enum { PROCESS_TEXT = 320 };

/* "HOST PID START" of this process, in three words. */
void process_describe(char text[PROCESS_TEXT]);
/* Returns the state of the process that a text begins with. The process of another host cannot be asked for. A text
 * that does not begin so counts as ended. */
enum process_state process_state(const char *text);

#endif
