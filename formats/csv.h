/* Tables as text, row by row, plain or packed by gzip: CSV (RFC 4180) with commas, semicolons, tabs, bars or blanks
 * between the fields, and TSV. */
#ifndef FORMATS_CSV_H
#define FORMATS_CSV_H

#include "tutti.h"

/* The path that stands for standard input, as messages call it. */
#define CSV_STANDARD_INPUT "standard input"

enum { CSV_MAX_COLUMNS = 1 << 16, CSV_MAX_ROW_BYTES = 1 << 24 };

struct csv_row {
    int64_t line; /* of the file, where the row begins, from 1 on */
    int count;    /* fields; 0: the file has ended */
    char **fields;
};

/* Whether a file is called as tables are. */
bool csv_has_name(const char *path);
/* Opens a file. In a file named .tsv, tabs separate fields; else the one of comma, semicolon, tab and bar that the
 * first row has most often; blanks (' ') if it has none of them. A byte order mark is skipped. Errors: TUTTI_FILE,
 * TUTTI_FORMAT. */
struct csv;
tutti_status csv_open(const char *path, struct csv **csv);
void csv_close(struct csv *csv); /* accepts NULL */
char csv_separator(const struct csv *csv);
/* Reads the next row that is not empty; it is valid until the next call. Spaces around fields without quotes are left
 * out. Errors: TUTTI_FORMAT with file and line where quotes are wrong, a row is too long, or bytes are not text. */
tutti_status csv_next(struct csv *csv, struct csv_row *row);

/* Whether the text is a finite number in decimal notation, which is written to *number. */
bool csv_number(const char *text, double *number);
/* Does the same for a field of a row, and is faster: it reads up to nine bytes, which a row always has there. */
bool csv_field_number(const char *field, double *number);

#endif
