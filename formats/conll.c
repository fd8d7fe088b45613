#include "formats/conll.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct conll {
    struct lines *lines;
    char *path, *copy; /* of the present line */
    char *named;       /* the line "# global.columns"; NULL: columns have CoNLL-U's own names */
    const char *names[CONLL_MOST_COLUMNS + 1];
    int name_count;
    int columns;        /* of the first row; 0: none is read yet */
    int64_t number;     /* of the line */
    char separator;     /* tab, or ' ' for blanks */
    bool universal;     /* CoNLL-U */
    bool comments;      /* # before a sentence begins a comment */
    bool between, seen; /* sentences: the next row begins one; a line was seen that is not empty */
};

static const char *const universal_names[] = { "ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS",
    "MISC" };
enum { UNIVERSAL_COLUMNS = 10 };

static bool is_universal_name(const char *path)
{
    return text_has_extension(path, ".conllu") || text_has_extension(path, ".conllu.gz");
}

bool conll_has_name(const char *path)
{
    static const char *const ends[] = { ".conll", ".iob", ".iob2", ".bio", ".conll.gz", ".iob.gz", ".iob2.gz",
        ".bio.gz" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_has_extension(path, ends[i])) return true;
    return is_universal_name(path);
}

tutti_status conll_open(const char *path, struct conll **made)
{
    struct conll *conll = memory_new(1, sizeof *conll);
    *made = NULL;
    if (!conll) return TUTTI_NO_MEMORY;
    conll->between = true;
    conll->universal = conll->comments = is_universal_name(path);
    for (int i = 0; i < UNIVERSAL_COLUMNS && conll->universal; i++)
        conll->names[conll->name_count++] = universal_names[i];
    conll->path = memory_copy_text(path);
    const tutti_status status = conll->path ? lines_open(path, &conll->lines) : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK)
        *made = conll;
    else
        conll_close(conll);
    return status;
}

void conll_close(struct conll *conll)
{
    if (!conll) return;
    lines_close(conll->lines);
    free(conll->path);
    free(conll->copy);
    free(conll->named);
    free(conll);
}

/* Divides a line, which it changes. Returns how many fields there are, at most one more than there is room for. */
static int divide(char separator, char *line, const char **fields)
{
    int count = 0;
    for (char *at = line;;) {
        if (separator == ' ') at += strspn(at, " \t");
        if (separator == ' ' && !*at) return count;
        if (count == CONLL_MOST_COLUMNS) return count + 1; /* more than there is room for */
        fields[count++] = at;
        at += strcspn(at, separator == ' ' ? " \t" : "\t");
        if (!*at) return count;
        *at++ = '\0';
    }
}

/* Keeps the names of "# global.columns = ID FORM UPOS". */
static tutti_status keep_names(struct conll *conll, const char *line)
{
    const char *equal = strchr(line, '=');
    if (!conll->universal || conll->columns || !equal || !strstr(line, "global.columns")) return TUTTI_OK;
    free(conll->named);
    conll->named = memory_copy_text(equal + 1);
    if (!conll->named) return TUTTI_NO_MEMORY;
    conll->name_count = divide(' ', conll->named, conll->names);
    if (conll->name_count <= CONLL_MOST_COLUMNS) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: more than %d columns have names", conll->path, CONLL_MOST_COLUMNS);
}

static bool is_comment(struct conll *conll, const char *line)
{
    if (*line != '#') return false;
    if (!conll->seen && line[1] == ' ') conll->comments = true;
    return conll->comments && conll->between;
}

/* Words of a range are given after it, and empty nodes are not in the text. */
static bool is_left_out(const struct conll *conll, const struct conll_row *row)
{
    if (!conll->universal) return !strncmp(row->fields[0], "-DOCSTART-", strlen("-DOCSTART-"));
    return conll->name_count > 0 && !strcmp(conll->names[0], "ID") && strpbrk(row->fields[0], "-.");
}

static tutti_status read_row(struct conll *conll, const char *line, struct conll_row *row)
{
    free(conll->copy);
    conll->copy = memory_copy_text(line);
    if (!conll->copy) return TUTTI_NO_MEMORY;
    if (!conll->separator) conll->separator = conll->universal || strchr(line, '\t') ? '\t' : ' ';
    const int count = divide(conll->separator, conll->copy, row->fields);
    row->line = conll->number;
    if (count > CONLL_MOST_COLUMNS)
        return fail(TUTTI_FORMAT, "%s, line %" PRId64 ": more than %d columns: this is not a word with its tags",
            conll->path, conll->number, CONLL_MOST_COLUMNS);
    row->count = count;
    if (is_left_out(conll, row)) {
        row->count = 0;
        return TUTTI_OK;
    }
    if (!conll->columns) conll->columns = count;
    if (count == conll->columns) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s, line %" PRId64 ": %d field%s, but the first row has %d, with %s between them",
        conll->path, conll->number, count, count == 1 ? "" : "s", conll->columns,
        conll->separator == ' ' ? "blanks" : "tabs");
}

tutti_status conll_next(struct conll *conll, struct conll_row *row)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *line;
    size_t bytes;
    tutti_status status = TUTTI_OK;
    *row = (struct conll_row) { .count = 0 };
    for (;;) {
        TRY(lines_next(conll->lines, &line, &bytes));
        conll->number++;
        if (!line) break;
        if (strlen(line) < bytes)
            FAIL(TUTTI_FORMAT, "%s, line %" PRId64 ": a byte is zero: this is not text", conll->path, conll->number);
        if (conll->number == 1 && !strncmp(line, mark, 3)) line += 3;
        if (!line[strspn(line, " \t")]) {
            conll->between = true;
            continue;
        }
        const bool comment = is_comment(conll, line);
        conll->seen = true;
        if (comment) {
            TRY(keep_names(conll, line));
            continue;
        }
        TRY(read_row(conll, line, row));
        if (row->count == 0) continue;
        row->begins = conll->between;
        conll->between = false;
        break;
    }
done:
    return status;
}

static int find_name(const struct conll *conll, const char *name)
{
    for (int i = 0; i < conll->name_count && i < conll->columns; i++)
        if (!strcmp(conll->names[i], name)) return i;
    return -1;
}

int conll_column(const struct conll *conll, const char *name, bool tag)
{
    if (!name && !conll->universal) return !tag ? 0 : conll->columns > 1 ? conll->columns - 1 : -1;
    if (!name) name = tag ? "UPOS" : "FORM";
    char *end = NULL;
    const long number = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;
    if (end && !*end) return number <= conll->columns ? (int)number - 1 : -1;
    return conll->universal ? find_name(conll, name) : -1;
}

bool conll_is_universal(const struct conll *conll)
{
    return conll->universal;
}
