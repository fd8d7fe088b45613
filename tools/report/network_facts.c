#include "tools/report/network_svg.h"

#include "tools/report/page.h"
#include "tutti_inspect.h"

#include <math.h>

tutti_status network_facts(
    struct json_line *facts, const tutti_network *network, const struct costs *costs, const char *title)
{
    tutti_layer_info layer;
    char shape[96];
    struct text svg = { 0 };
    json_line_print(facts, "network { costs %hhd layers [", costs != NULL);
    for (int i = 0; i < tutti_network_layers(network); i++) {
        const tutti_status status = tutti_network_layer(network, i, &layer);
        if (status != TUTTI_OK) return status;
        json_line_print(facts, "{ layer %s operation %s shape %s parameters %lld ms %g kernel %s }", layer.name,
            layer.operation, format_shape(&layer.shape, shape, sizeof(shape)), (long long)layer.parameters,
            costs && costs->layers[i].seconds > 0 ? 1000 * costs->layers[i].seconds : NAN,
            costs ? costs->layers[i].kernel : "");
    }
    json_line_print(facts, "]");
    const tutti_status status = network_svg(&svg, network, costs, title, false);
    page_member(facts, "svg", &svg);
    json_line_print(facts, "}");
    return status;
}
