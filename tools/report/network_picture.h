/* The picture of a network for the package of Python. */
#ifndef TOOLS_NETWORK_PICTURE_H
#define TOOLS_NETWORK_PICTURE_H

#include "tutti.h"

/* Returns the picture that `tutti show --svg` writes, without kernels, as text. Free it with free(). NULL: failure. */
char *network_picture(const tutti_network *network, const char *title);

#endif
