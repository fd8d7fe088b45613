/* The line of a program that a node was exported from: dynamo=True writes the stack into the node's metadata. */
#include "onnx/import.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const frame = "File \"";

/* The innermost frame outside of installed packages, or the innermost one. NULL: the node has none. */
static const char *find_frame(const Onnx__NodeProto *node)
{
    const char *own = NULL, *last = NULL;
    for (size_t i = 0; i < node->n_metadata_props; i++) {
        if (!strstr(proto_text(node->metadata_props[i]->key), "stack_trace")) continue;
        const char *at = strstr(proto_text(node->metadata_props[i]->value), frame);
        for (; at; at = strstr(at + 1, frame)) {
            const char *package = strstr(at, "site-packages"), *end = strchr(at, '\n');
            last = at;
            if (!package || (end && package > end)) own = at;
        }
    }
    return own ? own : last;
}

/* At most `size` - 1 bytes up to one of the characters in `ends`. */
static void copy_until(const char *from, const char *ends, char *to, size_t size)
{
    const size_t length = strcspn(from, ends);
    snprintf(to, size, "%.*s", (int)(length < size ? length : size - 1), from);
}

struct source_line node_source(const Onnx__NodeProto *node)
{
    struct source_line source = { "" };
    char path[512], code[96] = "";
    const char *at = find_frame(node);
    if (!at) return source;
    copy_until(at + strlen(frame), "\"\n", path, sizeof path);
    const char *slash = strrchr(path, '/'), *line = strstr(at, "\", line "), *next = strchr(at, '\n');
    if (!line || (next && line > next)) return source;
    if (next) copy_until(next + 1 + strspn(next + 1, " \t"), "\n", code, sizeof code);
    snprintf(source.text, sizeof source.text, " (%s:%" PRId64 "%s%s)", text_printable(slash ? slash + 1 : path).text,
        (int64_t)strtoll(line + strlen("\", line "), NULL, 10), *code ? ": " : "", text_printable(code).text);
    return source;
}
