#include "tools/report/network_picture.h"

#include "tools/report/network_svg.h"

char *network_picture(const tutti_network *network, const char *title)
{
    struct text page = { 0 };
    if (network_svg(&page, network, NULL, title, true) == TUTTI_OK) return text_take(&page);
    text_free(&page);
    return NULL;
}
