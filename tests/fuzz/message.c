#include "tests/fuzz/target.h"

#include <stdlib.h>

void check_message(void)
{
    const char *text = tutti_message(NULL);
    if (!*text) abort();
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) abort();
}
