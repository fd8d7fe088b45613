#include "layers/epilogue.h"

#include "layers/elementwise.h"

bool epilogue_keeps_zero(const struct epilogue *epilogue)
{
    if (epilogue->activation == ACTIVATION_CLIP) return epilogue->low <= 0 && epilogue->high >= 0;
    return epilogue->activation != ACTIVATION_SIGMOID;
}

void epilogue_emit(
    const struct epilogue *epilogue, const struct value *out, cl_mem out_buffer, cl_mem add, struct launch_list *list)
{
    struct epilogue what = *epilogue;
    if (!add) what.add = NO_VALUE;
    if (what.add == NO_VALUE && what.activation == ACTIVATION_NONE) return;
    char options[EPILOGUE_OPTIONS];
    epilogue_options(&what, options, sizeof options);
    cl_mem buffers[3] = { out_buffer };
    int count = 1;
    if (what.add != NO_VALUE) buffers[count++] = add;
    buffers[count++] = out_buffer;
    elementwise_emit(list, "elementwise_sum", options, buffers, count, elementwise_floats(out, &list->device->can), 2);
    if (!epilogue_keeps_zero(&what)) elementwise_clear_padding(list, out, out_buffer);
}
