/* Which process wrote something into a file that other processes and other hosts read. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>

enum process_state { PROCESS_LIVES, PROCESS_ENDED, PROCESS_ELSEWHERE };
enum { PROCESS_TEXT = 320 };

/* "HOST PID START" of this process, in three words. */
void process_describe(char text[PROCESS_TEXT]);
/* Of a text that begins so; one of another host cannot be asked for. What is no such text: ended. */
enum process_state process_state(const char *text);

#endif
