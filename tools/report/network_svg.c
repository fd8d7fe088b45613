#include "tools/report/network_svg.h"

#include "base/memory.h"
#include "tools/report/network_boxes.h"
#include "tools/report/page.h"
#include "tools/report/page_text.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 360,
    LANE = 9,
    MOST_LANES = 10,
    GAP = 16,
    BOX_PLAIN = 42,
    BOX_KERNEL = 62,
    INPUT_HEIGHT = 26,
    BLOCK_HEAD = 22,
    BLOCK_FOOT = 8,
    PAD = 8,
    NAME_LENGTH = 28,
    NAME_CHARACTER = 9, /* wide, at most, on average */
    TIME_WIDTH = 82,    /* and what is around name and time */
    OPERATIONS_LENGTH = 26
};

struct edge {
    int from, to, lane; /* boxes, from BOX_INPUT on */
};

struct drawing {
    struct text *page;
    struct boxes boxes;
    const struct costs *costs;
    int *tops; /* of each box, shown ones only */
    struct edge *edges;
    size_t edge_count, edge_room;
    int left, height, box_height;
    double slowest;
};

static int top_of(const struct drawing *drawing, int box)
{
    return box == BOX_INPUT ? PAD : drawing->tops[box];
}

static int height_of(const struct drawing *drawing, int box)
{
    return box == BOX_INPUT ? INPUT_HEIGHT : drawing->box_height;
}

static void place_boxes(struct drawing *drawing)
{
    int y = PAD + INPUT_HEIGHT + GAP, block_end = -1;
    for (int i = 0; i < drawing->boxes.count; i++) {
        const struct box *box = &drawing->boxes.boxes[i];
        if (box->stands_for != i) continue;
        if (box->repeats > 1) {
            y += BLOCK_HEAD;
            block_end = i + box->length - 1;
        }
        drawing->tops[i] = y;
        y += drawing->box_height + GAP;
        if (i == block_end) y += BLOCK_FOOT;
        drawing->slowest = fmax(drawing->slowest, box->seconds);
    }
    drawing->height = y - GAP + PAD;
}

/* The shown box before this one, or the input. */
static int before(const struct drawing *drawing, int box)
{
    do box--;
    while (box >= 0 && drawing->boxes.boxes[box].stands_for != box);
    return box;
}

static int lane_for(const struct drawing *drawing, int from, int to)
{
    for (int lane = 0; lane < MOST_LANES; lane++) {
        bool is_free = true;
        for (size_t i = 0; i < drawing->edge_count && is_free; i++) {
            const struct edge *edge = &drawing->edges[i];
            is_free = edge->lane != lane || edge->to <= from || edge->from >= to || edge->from == from;
        }
        if (is_free) return lane;
    }
    return MOST_LANES - 1;
}

static tutti_status add_edge(struct drawing *drawing, int from, int to)
{
    void *edges = drawing->edges;
    const tutti_status status =
        memory_grow(&edges, &drawing->edge_room, drawing->edge_count + 1, sizeof(*drawing->edges));
    drawing->edges = edges;
    if (status != TUTTI_OK) return status;
    const int lane = from == before(drawing, to) ? -1 : lane_for(drawing, from, to);
    drawing->edges[drawing->edge_count++] = (struct edge) { from, to, lane };
    if ((lane + 1) * LANE + 2 * PAD > drawing->left) drawing->left = (lane + 1) * LANE + 2 * PAD;
    return TUTTI_OK;
}

static tutti_status find_edges(struct drawing *drawing)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < drawing->boxes.count; i++) {
        const struct box *box = &drawing->boxes.boxes[i];
        for (int k = 0; box->stands_for == i && k < box->source_count && status == TUTTI_OK; k++) {
            const int from = box->sources[k] < 0 ? BOX_INPUT : drawing->boxes.boxes[box->sources[k]].stands_for;
            if (from < i) status = add_edge(drawing, from, i);
        }
    }
    return status;
}

static void draw_edge(const struct drawing *drawing, const struct edge *edge)
{
    const int x = drawing->left + 18, from = top_of(drawing, edge->from) + height_of(drawing, edge->from),
              to = top_of(drawing, edge->to);
    if (edge->lane < 0) {
        text_append(drawing->page,
            "<path class=\"edge\" d=\"M%d %dV%d\"/><path class=\"tip\" d=\"M%d %dl-4 -6h8z\"/>\n", x, from, to - 5, x,
            to);
        return;
    }
    const int lane = drawing->left - 6 - (edge->lane + 1) * LANE, out = from - 9, in = to + 12, left = drawing->left;
    text_append(drawing->page,
        "<path class=\"edge\" d=\"M%d %dH%dQ%d %d %d %dV%dQ%d %d %d %dH%d\"/>"
        "<path class=\"tip\" d=\"M%d %dl-6 -4v8z\"/>\n",
        left, out, lane + 5, lane, out, lane, out + 5, in - 5, lane, in, lane + 5, in, left - 5, left, in);
}

/* "conv2d, batch_norm, relu" */
static void append_operations(const struct drawing *drawing, int box, struct text *text)
{
    const struct boxes *boxes = &drawing->boxes;
    for (int i = boxes->boxes[box].first; i <= boxes->boxes[box].last; i++)
        if (boxes->owners[i] == box)
            text_append(text, "%s%s", i == boxes->boxes[box].first ? "" : ", ", boxes->layers[i].operation);
}

static void append_milliseconds(struct text *page, double seconds)
{
    const double ms = 1000 * seconds;
    text_append(page, "%.*f ms", ms < 0.1 ? 3 : ms < 10 ? 2 : 1, ms);
}

static void draw_kernel(const struct drawing *drawing, int number, int y)
{
    const struct box *box = &drawing->boxes.boxes[number];
    const char *kernel = drawing->costs->layers[box->first].kernel;
    char count[32];
    text_append(drawing->page, "<text class=\"soft small\" x=\"%d\" y=\"%d\">", drawing->left + 10, y + 51);
    page_text_cut(drawing->page, *kernel ? kernel : "no kernel of its own", OPERATIONS_LENGTH);
    text_append(drawing->page, "</text>");
    if (!box->parameters) return;
    text_append(drawing->page, "<text class=\"soft small end\" x=\"%d\" y=\"%d\">%s parameters</text>",
        WIDTH - PAD - 10, y + 51, format_count((double)box->parameters, count, sizeof(count)));
}

/* Returns how many characters of a name fit before the time; connections next to the box take up room. */
static int name_length(const struct drawing *drawing)
{
    const int length = (WIDTH - PAD - drawing->left - TIME_WIDTH) / NAME_CHARACTER;
    return length < NAME_LENGTH ? length : NAME_LENGTH;
}

static void draw_box(const struct drawing *drawing, int number)
{
    const struct box *box = &drawing->boxes.boxes[number];
    const tutti_layer_info *first = &drawing->boxes.layers[box->first], *last = &drawing->boxes.layers[box->last];
    const int y = drawing->tops[number], left = drawing->left, right = WIDTH - PAD;
    struct text operations = { 0 };
    char shape[96];
    append_operations(drawing, number, &operations);
    text_append(drawing->page, "<g><title>");
    page_text(drawing->page, first->name);
    text_append(drawing->page, ": ");
    if (!operations.failed && operations.data) page_text(drawing->page, operations.data);
    text_append(drawing->page, "</title><rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>",
        left, y, right - left, drawing->box_height);
    if (box->seconds > 0)
        text_append(drawing->page, "<rect class=\"f0\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"3\" rx=\"1.5\"/>",
            left + 1, y + drawing->box_height - 4, fmax(2, (right - left - 2) * box->seconds / drawing->slowest));
    text_append(drawing->page, "<text class=\"bold\" x=\"%d\" y=\"%d\">", left + 10, y + 17);
    page_text_cut(drawing->page, first->name, name_length(drawing));
    text_append(drawing->page, "</text>");
    if (box->seconds > 0) {
        text_append(drawing->page, "<text class=\"f0 end bold small\" x=\"%d\" y=\"%d\">", right - 10, y + 17);
        append_milliseconds(drawing->page, box->seconds);
        text_append(drawing->page, "</text>");
    }
    text_append(drawing->page, "<text class=\"small\" x=\"%d\" y=\"%d\">", left + 10, y + 34);
    if (!operations.failed && operations.data) page_text_cut(drawing->page, operations.data, OPERATIONS_LENGTH);
    text_append(drawing->page, "</text><text class=\"small end\" x=\"%d\" y=\"%d\">%s</text>", right - 10, y + 34,
        format_shape(&last->shape, shape, sizeof(shape)));
    if (drawing->costs) draw_kernel(drawing, number, y);
    text_append(drawing->page, "</g>\n");
    text_free(&operations);
}

/* The frame around a block that repeats, with what it stands for. */
static void draw_block(const struct drawing *drawing, int number)
{
    const struct box *box = &drawing->boxes.boxes[number];
    const int top = drawing->tops[number] - BLOCK_HEAD,
              bottom = drawing->tops[number + box->length - 1] + drawing->box_height;
    char name[96];
    const int last = number + (box->repeats - 1) * box->length;
    text_append(drawing->page,
        "<rect x=\"2\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"none\" class=\"s0\" stroke-dasharray=\"4 "
        "4\"/>"
        "<text class=\"f0 bold small end\" x=\"%d\" y=\"%d\">%d times, to ",
        top, WIDTH - 4, bottom - top + BLOCK_FOOT, WIDTH - PAD - 10, top + 15, box->repeats);
    boxes_scope(&drawing->boxes, last, box->scope, name, sizeof(name));
    page_text_cut(drawing->page, name, NAME_LENGTH);
    text_append(drawing->page, "</text>\n");
}

static void draw_input(const struct drawing *drawing, const tutti_network *network)
{
    tutti_tensor tensor;
    tutti_shape shape;
    char text[96] = "";
    if (tutti_network_input(network, 0, &tensor) == TUTTI_OK && tutti_shape_of(network, tensor, &shape) == TUTTI_OK)
        format_shape(&shape, text, sizeof(text));
    text_append(drawing->page,
        "<rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"13\"/><text class=\"bold\" x=\"%d\" "
        "y=\"%d\">"
        "input</text><text class=\"small end\" x=\"%d\" y=\"%d\">%s</text>\n",
        drawing->left, PAD, WIDTH - PAD - drawing->left, INPUT_HEIGHT, drawing->left + 12, PAD + 18, WIDTH - PAD - 12,
        PAD + 18, text);
}

static void draw_begin(const struct drawing *drawing, const char *title, bool alone)
{
    struct text *page = drawing->page;
    text_append(page, "<svg %srole=\"img\" viewBox=\"0 0 %d %d\" ",
        alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", WIDTH, drawing->height);
    if (alone) text_append(page, "width=\"%d\" height=\"%d\" ", WIDTH, drawing->height);
    text_append(page, "aria-label=\"");
    page_text(page, title);
    text_append(page, ": %d layers from top to bottom\">\n", drawing->boxes.layer_count);
    if (!alone) return;
    text_append(page,
        "<style>\n%s</style>\n<style>svg{max-width:460px;margin:0 auto}</style><rect width=\"100%%\" height=\"100%%\" "
        "fill=\"var(--bg)\"/>\n",
        embedded_style);
}

static void draw(const struct drawing *drawing, const tutti_network *network, const char *title, bool alone)
{
    draw_begin(drawing, title, alone);
    for (int i = 0; i < drawing->boxes.count; i++)
        if (drawing->boxes.boxes[i].repeats > 1) draw_block(drawing, i);
    for (size_t i = 0; i < drawing->edge_count; i++) draw_edge(drawing, &drawing->edges[i]);
    draw_input(drawing, network);
    for (int i = 0; i < drawing->boxes.count; i++)
        if (drawing->boxes.boxes[i].stands_for == i) draw_box(drawing, i);
    text_append(drawing->page, "</svg>\n");
}

tutti_status network_svg(
    struct text *page, const tutti_network *network, const struct costs *costs, const char *title, bool alone)
{
    struct drawing drawing = {
        .page = page, .costs = costs, .left = 2 * PAD, .box_height = costs ? BOX_KERNEL : BOX_PLAIN
    };
    tutti_status status = boxes_make(&drawing.boxes, network, costs);
    if (status == TUTTI_OK) drawing.tops = memory_new((size_t)drawing.boxes.count + 1, sizeof(*drawing.tops));
    if (status == TUTTI_OK && !drawing.tops) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) {
        place_boxes(&drawing);
        status = find_edges(&drawing);
    }
    if (status == TUTTI_OK) draw(&drawing, network, title, alone);
    free(drawing.tops);
    free(drawing.edges);
    boxes_free(&drawing.boxes);
    return status;
}
