/* Texts of tables that stand for something else: columns are read by them, and nodes of ONNX files are made of them. */
#ifndef BASE_TABLE_WORDS_H
#define BASE_TABLE_WORDS_H

/* Missing values: an empty text, too. Upper and lower case are the same. */
#define TABLE_MISSING_SIGNS "?", "-", "."
#define TABLE_MISSING_WORDS "na", "n/a", "nan", "null", "none", "#n/a", "<na>"

/* Pairs of false and true; number i is bit i of a column's format. Upper and lower case are the same. */
#define TABLE_TRUTH_WORDS                                             \
    { "false", "true" }, { "no", "yes" }, { "n", "y" }, { "f", "t" }, \
    {                                                                 \
        "off", "on"                                                   \
    }

#endif
