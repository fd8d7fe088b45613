/* Words with tags: files of words, lists in JSON; the first token of each word has its tag; spans; what is refused. */
#include "kinds.h"

#include "formats/conll.h"
#include "tutti_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tutti_data_options plain = { .note = hear, .tokenizer = "bytes" };

/* Tokens and targets of a sample, in words: "10/0 -1/-1". */
static void expect_sample(struct collection *texts, int64_t index, int64_t length, const char *expected)
{
    enum { MOST = 64 };
    int32_t ids[MOST], targets[MOST];
    char text[1024] = "";
    ck_assert_int_le(length, MOST);
    ck_assert_int_eq(texts->read_tokens(texts, index, length, ids, NULL, targets), TUTTI_OK);
    for (int64_t i = 0; i < length; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d/%d", i ? " " : "", ids[i], targets[i]);
    ck_assert_str_eq(text, expected);
}

static void expect_words(struct collection *texts, int64_t index, const char *expected)
{
    char text[1024] = "";
    const char *word;
    int64_t token;
    for (int64_t i = 0; (word = texts->word(texts, index, i, &token)); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s@%d", i ? " " : "", word, (int)token);
    ck_assert_str_eq(text, expected);
}

START_TEST(reads_columns)
{
    char name[64];
    put_text("ner.conll",
        "-DOCSTART- -X- O O\n\nab NNP B-NP B-X\nc VB O O\r\n\n\n\nd  NN\tI-NP O\n# # # O\n  \nab NNP B-NP B-Y");
    struct collection *texts = opened(text_open, "ner.conll", &plain);
    ck_assert_str_eq(texts->info.kind, "text");
    ck_assert(texts->info.tags && !texts->info.tokens_are_classes && !texts->labels && !texts->rows);
    ck_assert_int_eq(texts->samples, 3);
    ck_assert_int_eq(texts->info.classes, 3);
    ck_assert_str_eq(texts->info.class_names[0], "B-X");
    ck_assert_str_eq(texts->info.class_names[2], "O");
    ck_assert_int_eq(texts->info.target_dtype, TUTTI_DTYPE_I32);
    ck_assert_int_eq(texts->info.target_shape.sizes[0], texts->info.length);
    /* The blank before a word is a token of its own. */
    expect_sample(texts, 0, 6, "97/0 98/-1 32/-1 99/2 -1/-1 -1/-1");
    expect_sample(texts, 1, 3, "100/2 32/-1 35/2");
    expect_sample(texts, 2, 3, "97/1 98/-1 -1/-1");
    expect_words(texts, 0, "ab@0 c@3");
    texts->name(texts, 2, name, sizeof name);
    ck_assert_str_eq(name, "sentence 3");
    texts->free(texts);
    texts = opened(text_open, "ner.conll", &(tutti_data_options) { .note = hear }); /* learns words: "ab" */
    expect_sample(texts, 0, 3, "1/0 0/2 -1/-1");
    expect_sample(texts, 2, 2, "1/1 -1/-1");
    texts->free(texts);
    tutti_data_options options = plain;
    options.text = "1";
    options.target = "2";
    texts = opened(text_open, "ner.conll", &options);
    ck_assert_int_eq(texts->info.classes, 4);
    ck_assert_str_eq(texts->info.class_names[0], "#");
    texts->free(texts);
    options.target = "5";
    expect_refused(text_open, "ner.conll", &options, "ner.conll", "no column '5' of tags");
    options.target = "1";
    expect_refused(text_open, "ner.conll", &options, "ner.conll", "named twice");
}
END_TEST

START_TEST(reads_universal)
{
    put_text("en.conllu",
        "# text = vamonos al mar\n1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tvamos\tir\tVERB\t_\t_\t_\t_\t_\t_\n"
        "2\tnos\tnos\tPRON\t_\t_\t_\t_\t_\t_\n2.1\tx\tx\tX\t_\t_\t_\t_\t_\t_\n3\ta b\ta\t_\t_\t_\t_\t_\t_\t_\n\n"
        "# more\n1\t#\t#\tSYM\t_\t_\t_\t_\t_\t_\n");
    struct collection *texts = opened(text_open, "en.conllu", &plain);
    ck_assert_int_eq(texts->samples, 2);
    ck_assert_int_eq(texts->info.classes, 3);
    expect_words(texts, 0, "vamos@0 nos@6 a b@10");
    expect_sample(texts, 0, 13, "118/2 97/-1 109/-1 111/-1 115/-1 32/-1 110/0 111/-1 115/-1 32/-1 97/-1 32/-1 98/-1");
    expect_words(texts, 1, "#@0");
    texts->free(texts);
    tutti_data_options options = plain;
    options.text = "LEMMA";
    options.target = "FORM";
    texts = opened(text_open, "en.conllu", &options);
    expect_words(texts, 0, "ir@0 nos@3 a@7");
    texts->free(texts);
    put_text("plus.conllu", "# global.columns = FORM  MY:TAG\na\tX\nb\tY\n");
    options = plain;
    options.target = "MY:TAG";
    texts = opened(text_open, "plus.conllu", &options);
    ck_assert_int_eq(texts->info.classes, 2);
    texts->free(texts);
    /* The comments of other files. */
    put_text("ids.iob2", "# id 1 2\na _ _ X\n\n# id 2 3\n# _ _ X\n");
    texts = opened(text_open, "ids.iob2", &plain);
    ck_assert_int_eq(texts->info.classes, 1);
    ck_assert_int_eq(texts->samples, 1);
    texts->free(texts);
}
END_TEST

START_TEST(reads_lists)
{
    put_text("ner.jsonl",
        "{\"tokens\": [\"ab\", \"c d\"], \"tags\": [3, -100]}\n{\"tokens\": [], \"tags\": []}\n"
        "{\"tokens\": [\"e\"], \"tags\": [\"10\"]}\n");
    tutti_data_options options = plain;
    options.text = "tokens";
    options.target = "tags";
    struct collection *texts = opened(text_open, "ner.jsonl", &options);
    ck_assert_int_eq(texts->samples, 2);
    ck_assert_str_eq(texts->info.class_names[0], "3");
    ck_assert_str_eq(texts->info.class_names[1], "10");
    expect_sample(texts, 0, 6, "97/0 98/-1 32/-1 99/-1 32/-1 100/-1");
    expect_sample(texts, 1, 1, "101/1");
    expect_words(texts, 0, "ab@0 c d@3");
    texts->free(texts);
    put_text("short.jsonl", "{\"tokens\": [\"ab\", \"c\"], \"tags\": [3]}\n");
    expect_refused(text_open, "short.jsonl", &options, "line 1", "'tokens' has 2 words, but 'tags' has 1 tags");
    put_text("short.jsonl", "{\"tokens\": [\"ab\", 4], \"tags\": [3, 3]}\n");
    expect_refused(text_open, "short.jsonl", &options, "line 1", "word 2 of 'tokens' is not a text");
    put_text("short.jsonl", "{\"tokens\": [\"ab\"], \"tags\": [3.5]}\n");
    expect_refused(text_open, "short.jsonl", &options, "line 1", "tag 1 of 'tags' is not a text or a whole number");
    options.text = "tokens,more";
    expect_refused(text_open, "short.jsonl", &options, "two columns", "in one");
}
END_TEST

/* [CLS] play ##ing chess [SEP]; words without characters have no token. */
START_TEST(finds_first_tokens)
{
    put_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\nchess\n,\n");
    put_text("a.conll", "Playing\tV\n\xc2\xad\tZ\nchess,\tN\ngo\tV\n");
    tutti_data_options options = plain;
    options.tokenizer = in_kinds("vocab.txt");
    struct collection *texts = opened(text_open, "a.conll", &options);
    ck_assert_int_eq(texts->info.classes, 3);
    expect_words(texts, 0, "Playing@1 \xc2\xad@-1 chess,@3 go@5");
    expect_sample(texts, 0, 8, "2/-1 5/1 6/-1 7/0 8/-1 1/1 3/-1 -1/-1");
    texts->free(texts);
    options.length = 5;
    texts = opened(text_open, "a.conll", &options);
    expect_sample(texts, 0, 5, "2/-1 5/1 6/-1 7/0 3/-1");
    expect_words(texts, 0, "Playing@1 \xc2\xad@-1 chess,@3 go@-1");
    texts->free(texts);
    ck_assert_ptr_nonnull(strstr(heard, "more than 5 tokens"));
    options.length = 1;
    expect_refused(text_open, "a.conll", &options, "--length 1", "special tokens are 2");
}
END_TEST

START_TEST(finds_parts)
{
    char name[64];
    put_text("ud/en_x-ud-train.conllu", "1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n\n1\tb\tb\tY\t_\t_\t_\t_\t_\t_\n");
    put_text("ud/en_x-ud-dev.conllu", "1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n");
    put_text("ud/en_x-ud-test.conllu", "1\tb\tb\tX\t_\t_\t_\t_\t_\t_\n");
    struct collection *texts = opened(text_open, "ud", &plain);
    ck_assert_int_eq(texts->samples, 4);
    ck_assert_int_eq(texts->parts[1], TUTTI_DATA_TRAIN);
    ck_assert_int_eq(texts->parts[2], TUTTI_DATA_VAL);
    ck_assert_int_eq(texts->parts[3], TUTTI_DATA_TEST);
    texts->name(texts, 3, name, sizeof name);
    ck_assert_str_eq(name, "en_x-ud-test.conllu sentence 1");
    texts->free(texts);
    put_text("ud/train.conllu", "1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n");
    expect_refused(text_open, "ud", &plain, "train.conllu", "both of one part");
}
END_TEST

START_TEST(refuses_files)
{
    tutti_data_options options = plain;
    put_text("a.conll", "a X\nb\n");
    expect_refused(text_open, "a.conll", &options, "line 2", "1 field, but the first row has 2, with blanks");
    put_text("a.conll", "a\nb\n");
    expect_refused(text_open, "a.conll", &options, "a.conll", "no column '2' of tags");
    put_text("a.conll", "\n\n");
    expect_refused(text_open, "a.conll", &options, "a.conll", "no words");
    put_text("a.conll", "a\tX\n\tY\n");
    expect_refused(text_open, "a.conll", &options, "line 2", "the word is empty");
    put("a.conll", "a X\nb\0 X\n", 9);
    expect_refused(text_open, "a.conll", &options, "line 2", "a byte is zero");
    put_text("a.conll", "a X\nb Y\n");
    options.oversample = true;
    expect_refused(text_open, "a.conll", &options, "--oversample", "tags of words");
    options = plain;
    options.text = "1,2";
    expect_refused(text_open, "a.conll", &options, "two columns", "in one");
    char many[3 * CONLL_MOST_COLUMNS] = "";
    for (int i = 0; i <= CONLL_MOST_COLUMNS; i++) strcat(many, "a ");
    put_text("a.conll", many);
    expect_refused(text_open, "a.conll", &plain, "line 1", "more than 64 columns");
}
END_TEST

/* Other data get the classes of the training, by name; words to predict need no tags. */
START_TEST(restores)
{
    put_text("a.conll", "a X\nb Y\n\nc Z\nd X\n\ne Y\n\nf X\n");
    tutti_data_options options = plain;
    tutti_data *data = tutti_data_open(in_kinds("a.conll"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    char *description = tutti_data_json(data);
    const tutti_source *train = tutti_data_source(data, TUTTI_DATA_TRAIN);
    ck_assert_ptr_nonnull(train->batch_length);
    ck_assert_ptr_null(tutti_data_word(data, TUTTI_DATA_TRAIN, train->samples, 0, NULL));
    tutti_data_free(data);
    options.tokenizer = NULL;
    options.description = description;
    put_text("b.conll", "q r Z\n");
    data = tutti_data_open(in_kinds("b.conll"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    int64_t index = 0;
    int32_t ids[8], targets[8];
    const tutti_buffer buffers[] = { { "ids", TUTTI_DTYPE_I32, ids, sizeof ids, 8 },
        { "targets", TUTTI_DTYPE_I32, targets, sizeof targets, 8 } };
    const tutti_source *all = tutti_data_source(data, TUTTI_DATA_ALL);
    ck_assert_int_eq(all->read(all->user, &index, 1, buffers, 2), 0);
    ck_assert_int_eq(ids[0], 'q');
    ck_assert_int_eq(targets[0], 2); /* Z */
    ck_assert_int_eq(targets[1], -1);
    tutti_data_free(data);
    put_text("b.conll", "q W\n");
    ck_assert_ptr_null(tutti_data_open(in_kinds("b.conll"), &options));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "'W'"));
    options.without_targets = true;
    put_text("b.conll", "q\nr\n");
    data = tutti_data_open(in_kinds("b.conll"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    ck_assert_str_eq(tutti_data_word(data, TUTTI_DATA_TEST, 0, 1, NULL), "r");
    tutti_data_free(data);
    put_text("b.csv", "text,tag\na,b\n");
    ck_assert_ptr_null(tutti_data_open(in_kinds("b.csv"), &options));
    options.texts = (const char *const[]) { "one  two\nthree", "four" };
    options.text_count = 2;
    data = tutti_data_open("texts", &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    all = tutti_data_source(data, TUTTI_DATA_TEST);
    ck_assert_int_eq(all->samples, 3); /* a line is a sentence */
    ck_assert_str_eq(tutti_data_word(data, TUTTI_DATA_TEST, 0, 1, NULL), "two");
    tutti_data_free(data);
    free(description);
}
END_TEST

Suite *tags_suite(void)
{
    Suite *suite = suite_create("tags");
    TCase *test = tcase_create("tags");
    tcase_add_checked_fixture(test, kinds_begin, kinds_end);
    tcase_set_timeout(test, 60);
    tcase_add_test(test, reads_columns);
    tcase_add_test(test, reads_universal);
    tcase_add_test(test, reads_lists);
    tcase_add_test(test, finds_first_tokens);
    tcase_add_test(test, finds_parts);
    tcase_add_test(test, refuses_files);
    tcase_add_test(test, restores);
    suite_add_tcase(suite, test);
    return suite;
}
