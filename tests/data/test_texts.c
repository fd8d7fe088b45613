/* Texts: tables, folders of classes, lines of JSON and plain text become tokens; what is left out; batches. */
#include "kinds.h"

#include "tutti_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tutti_data_options none = { .note = hear };

static const char reviews[] =
    "id\ttext\tlabel\n1\tgood film\tpos\n2\tbad\tneg\n3\tso so\tneg\n4\tv\xc3\xa9ry good\tpos\n"
    "5\tawful film\tneg\n6\tfine\tpos\n";

static tutti_data_options text_options(const char *text, const char *target)
{
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    options.text = text;
    options.target = target;
    options.tokenizer = "bytes";
    options.fill_missing = true;
    options.note = hear;
    return options;
}

/* Whether a sample has the bytes of the text, and padding after them. */
static void expect_text(struct collection *texts, int64_t index, const char *text, int32_t label)
{
    enum { MOST = 64 };
    int32_t ids[MOST], types[MOST], target = -7;
    const size_t bytes = strlen(text);
    ck_assert_int_eq(texts->length(texts, index), (int64_t)bytes);
    for (int i = 0; i < MOST; i++) ids[i] = types[i] = -9;
    ck_assert_int_eq(texts->read_tokens(texts, index, MOST, ids, types, &target), TUTTI_OK);
    for (size_t i = 0; i < MOST; i++) ck_assert_int_eq(ids[i], i < bytes ? (unsigned char)text[i] : -1);
    for (size_t i = 0; i < MOST; i++) ck_assert_int_eq(types[i], 0);
    ck_assert_int_eq(target, label);
}

START_TEST(reads_rows)
{
    char name[40];
    put_text("reviews.tsv", reviews);
    tutti_data_options options = text_options("text", "label");
    struct collection *texts = opened(text_open, "reviews.tsv", &options);
    ck_assert_str_eq(texts->info.kind, "text");
    ck_assert_int_eq(texts->samples, 6);
    ck_assert_int_eq(texts->info.classes, 2);
    ck_assert_str_eq(texts->info.class_names[1], "pos");
    ck_assert_int_eq(texts->info.vocabulary, 256);
    ck_assert_int_eq(texts->info.length, 16); /* of the longest, 10 bytes, a multiple of 8 */
    ck_assert_int_eq(texts->info.shape.sizes[0], 16);
    ck_assert(!texts->info.pairs && !texts->info.tokens_are_classes);
    expect_text(texts, 0, "good film", 1);
    expect_text(texts, 1, "bad", 0);
    expect_text(texts, 3, "v\xc3\xa9ry good", 1);
    texts->name(texts, 3, name, sizeof name);
    ck_assert_str_eq(name, "row 4");
    ck_assert_int_eq(texts->rows[3], 4);
    texts->free(texts);
    /* Columns by number, without names; the last one is the target. */
    put_text("plain.csv", "a b,1\nc,2\nd e f,1\n");
    options = text_options("1", NULL);
    texts = opened(text_open, "plain.csv", &options);
    ck_assert_int_eq(texts->samples, 3);
    ck_assert_int_eq(texts->info.classes, 2);
    expect_text(texts, 2, "d e f", 0);
    texts->free(texts);
    ck_assert_ptr_nonnull(strstr(heard, "2 different whole numbers, which are taken as classes"));
}
END_TEST

/* Words that occur twice among those that train are known, the most frequent ones first; without capital letters. */
START_TEST(learns_words)
{
    static const char *const words[] = { "[UNK]", "good", "film" };
    int32_t ids[4], target;
    put_text("learn/train.csv", "text,label\nGood film,x\ngood Film,y\ngood rare,x\n");
    put_text("learn/test.csv", "text,label\nseen seen seen,x\nfilm good,y\n");
    tutti_data_options options = text_options("text", "label");
    options.tokenizer = NULL;
    struct collection *texts = opened(text_open, "learn", &options);
    tutti_tokenizer *tokenizer = tutti_tokenizer_parse(texts->info.tokenizer);
    ck_assert_ptr_nonnull(tokenizer);
    ck_assert_int_eq(texts->info.vocabulary, 3);
    for (int i = 0; i < 3; i++) ck_assert_str_eq(tutti_tokenizer_token(tokenizer, i), words[i]);
    ck_assert_int_eq(texts->read_tokens(texts, 2, 4, ids, NULL, &target), TUTTI_OK);
    ck_assert_mem_eq(ids, ((int32_t[]) { 1, 0, -1, -1 }), sizeof ids);
    ck_assert_int_eq(texts->read_tokens(texts, 4, 4, ids, NULL, &target), TUTTI_OK);
    ck_assert_mem_eq(ids, ((int32_t[]) { 2, 1, -1, -1 }), sizeof ids);
    tutti_tokenizer_close(tokenizer);
    texts->free(texts);
    options.tokenizer = "wordpiece";
    texts = opened(text_open, "learn", &options);
    ck_assert_ptr_nonnull(strstr(texts->info.tokenizer, "WordPiece"));
    texts->free(texts);
    put_text("only.txt", "there are no targets\n");
    options = (tutti_data_options) { .tokenizer = "words", .length = 4 };
    expect_refused(text_open, "only.txt", &options, "--tokenizer words", "tutti tokenize --train");
}
END_TEST

START_TEST(reads_numbers)
{
    float target;
    int32_t ids[16];
    put_text("prices.csv", "text,price\nab,1.5\nb,2.5\n\"c, d\",5\n");
    tutti_data_options options = text_options("text", "price");
    struct collection *texts = opened(text_open, "prices.csv", &options);
    ck_assert_int_eq(texts->info.classes, 0);
    ck_assert_int_eq(texts->info.target_dtype, TUTTI_DTYPE_F32);
    ck_assert_double_eq_tol(texts->info.target_mean[0], 3, 1e-12);
    ck_assert_int_eq(texts->read_tokens(texts, 2, 8, ids, NULL, &target), TUTTI_OK);
    ck_assert_float_eq_tol(target, (float)(2 / texts->info.target_std[0]), 1e-6f);
    texts->free(texts);
    put_text("stars.csv", "text,stars\nab,1\nb,5\nc,5\n");
    options = text_options("text", "stars:number");
    texts = opened(text_open, "stars.csv", &options);
    ck_assert_int_eq(texts->info.classes, 0);
    texts->free(texts);
    put_text("words.csv", "text,stars\nab,1\nb,five\n");
    expect_refused(text_open, "words.csv", &options, "stars", "not all of its texts are numbers");
}
END_TEST

START_TEST(reads_pairs)
{
    int32_t ids[8], types[8], target;
    static const int32_t expected[] = { 'a', 'b', 'c', 'd', 'e', -1, -1, -1 };
    static const int32_t second[] = { 0, 0, 1, 1, 1, 0, 0, 0 };
    put_text("pairs.jsonl",
        "{\"q\": \"ab\", \"a\": \"cde\", \"same\": true}\n\n{\"q\": \"x\", \"a\": \"y\", \"same\": false}\r\n");
    tutti_data_options options = text_options("q,a", "same");
    struct collection *texts = opened(text_open, "pairs.jsonl", &options);
    ck_assert(texts->info.pairs);
    ck_assert_int_eq(texts->samples, 2);
    ck_assert_str_eq(texts->info.class_names[0], "false");
    ck_assert_int_eq(texts->read_tokens(texts, 0, 8, ids, types, &target), TUTTI_OK);
    ck_assert_mem_eq(ids, expected, sizeof ids);
    ck_assert_mem_eq(types, second, sizeof types);
    ck_assert_int_eq(target, 1);
    texts->free(texts);
    options.text = "q,a,b";
    expect_refused(text_open, "pairs.jsonl", &options, "--text", "one column, or two");
    options = text_options("q,a", NULL);
    expect_refused(text_open, "pairs.jsonl", &options, "pairs.jsonl", "--target");
}
END_TEST

START_TEST(leaves_out)
{
    put_text("damaged.csv",
        "text,label\nab,x\n,x\ncd,\nef,y\nb\xff"
        "d,y\n");
    tutti_data_options options = text_options("text", "label");
    struct collection *texts = opened(text_open, "damaged.csv", &options);
    ck_assert_int_eq(texts->samples, 3);
    ck_assert_int_eq(texts->info.damaged, 2);
    ck_assert_int_eq(texts->rows[1], 4);
    expect_text(texts, 1, "ef", 1);
    expect_text(texts, 2,
        "b\xef\xbf\xbd"
        "d",
        1);
    texts->free(texts);
    ck_assert_ptr_nonnull(strstr(heard, "left out 2 rows"));
    ck_assert_ptr_nonnull(strstr(heard, "row 2 (line 3): column 'text': the text is empty"));
    ck_assert_ptr_nonnull(strstr(heard, "column 'label': the value is missing"));
    ck_assert_ptr_nonnull(strstr(heard, "1 text is not UTF-8"));
    options.fill_missing = false;
    expect_refused(text_open, "damaged.csv", &options, "row 3 (line 4)", "the value is missing");
    put_text("short.csv", "text,label\nab,x\nc\n");
    expect_refused(text_open, "short.csv", &options, "row 2", "1 field, but there are 2 columns");
    put_text("bad.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": 5, \"label\": 1}\n");
    expect_refused(text_open, "bad.jsonl", &options, "row 2", "the value of 'text' is not a text");
    put_text("bad.jsonl", "{\"text\": \"a\", \"label\": 1}\n[\n");
    expect_refused(text_open, "bad.jsonl", &options, "line 2", "this is not a JSON object");
    expect_refused(text_open, "short.csv", &(tutti_data_options) { .text = "txt", .target = "label" }, "short.csv",
        "there is no column 'txt': its first row has 'text', 'label'");
    expect_refused(text_open, "short.csv", &(tutti_data_options) { .text = "text", .length = -1 }, "--length", "-1");
}
END_TEST

START_TEST(cuts)
{
    put_text("long.csv", "text,label\nabcdefghijkl,x\nab,y\n");
    tutti_data_options options = text_options("text", "label");
    options.length = 5;
    struct collection *texts = opened(text_open, "long.csv", &options);
    ck_assert_int_eq(texts->info.length, 5);
    expect_text(texts, 0, "abcde", 0);
    json_t *object = json_object();
    ck_assert_int_eq(texts->inspect(texts, 0, object), 0);
    const json_t *text = json_object_get(object, "text"), *lengths = json_object_get(text, "lengths");
    ck_assert_int_eq(json_integer_value(json_object_get(text, "cut")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(text, "tokens")), 7);
    ck_assert_int_eq(json_integer_value(json_object_get(text, "bytes")), 14);
    ck_assert_int_eq(json_integer_value(json_object_get(lengths, "least")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(lengths, "largest")), 12);
    json_decref(object);
    texts->free(texts);
    ck_assert_ptr_nonnull(strstr(heard, "1 of 2 texts have more than 5 tokens and are cut"));
}
END_TEST

START_TEST(reads_folders)
{
    const tutti_data_options bytes = { .tokenizer = "bytes", .note = hear };
    static const char *const folders[] = { "imdb/train/neg", "imdb/train/pos", "imdb/test/neg", "imdb/test/pos" };
    char name[600];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%s/%d_1.txt", folders[i % 4], i);
        char text[20];
        snprintf(text, sizeof text, "%s %d\n", i % 2 ? "good" : "bad", i);
        put_text(name, text);
    }
    put_text("imdb/train/unsup/1.txt", "what");
    put_text("imdb/train/pos/notes.md", "# nothing");
    struct collection *texts = opened(text_open, "imdb", &bytes);
    ck_assert_int_eq(texts->samples, 12);
    ck_assert_int_eq(texts->info.classes, 2);
    ck_assert_str_eq(texts->info.class_names[0], "neg");
    ck_assert_int_eq(texts->parts[0], TUTTI_DATA_TRAIN);
    ck_assert_int_eq(texts->parts[11], TUTTI_DATA_TEST);
    expect_text(texts, 0, "bad 0\n", 0);
    texts->name(texts, 0, name, sizeof name);
    ck_assert_ptr_nonnull(strstr(name, "imdb/train/neg/0_1.txt"));
    texts->free(texts);
    ck_assert_ptr_nonnull(strstr(heard, "left out: 1 texts in unsup/"));
    ck_assert_ptr_nonnull(strstr(heard, "1 .md file"));
}
END_TEST

START_TEST(reads_streams)
{
    enum { BYTES = 1000, LENGTH = 7 };
    char text[BYTES + 1];
    int32_t ids[LENGTH], targets[LENGTH];
    for (int i = 0; i < BYTES; i++) text[i] = (char)('a' + i % 23);
    text[BYTES] = '\0';
    put_text("book.txt", text);
    tutti_data_options options = TUTTI_OPTIONS(tutti_data_options);
    options.length = LENGTH;
    struct collection *texts = opened(text_open, "book.txt", &options);
    const int64_t train = (900 - 1) / LENGTH, held = (100 - 1) / LENGTH;
    ck_assert_int_eq(texts->samples, train + held);
    ck_assert(texts->info.tokens_are_classes);
    ck_assert_int_eq(texts->info.classes, 256);
    ck_assert_int_eq(texts->info.target_shape.sizes[0], LENGTH);
    for (int64_t i = 0; i < texts->samples; i++) {
        const int64_t begins = i < train ? i * LENGTH : 900 + (i - train) * LENGTH;
        ck_assert_int_eq(texts->parts[i], i < train ? TUTTI_DATA_TRAIN : TUTTI_DATA_VAL);
        ck_assert_int_eq(texts->read_tokens(texts, i, LENGTH, ids, NULL, targets), TUTTI_OK);
        for (int k = 0; k < LENGTH; k++) ck_assert_int_eq(ids[k], text[begins + k]);
        for (int k = 0; k < LENGTH; k++) ck_assert_int_eq(targets[k], text[begins + k + 1]);
    }
    texts->free(texts);
    options.length = 200;
    expect_refused(text_open, "book.txt", &options, "held out has 100 tokens", "lower --length, or raise --split");
    put_text("books/train.txt", text);
    put_text("books/val.txt", "abcdefghij");
    options.length = LENGTH;
    texts = opened(text_open, "books", &options);
    ck_assert_int_eq(texts->samples, 142 + 1);
    ck_assert_int_eq(texts->read_tokens(texts, 142, LENGTH, ids, NULL, targets), TUTTI_OK);
    ck_assert_int_eq(ids[0], 'a');
    ck_assert_int_eq(targets[LENGTH - 1], 'h');
    texts->free(texts);
}
END_TEST

/* A long text is encoded in pieces, which nothing in the tokens shows. */
START_TEST(reads_long_streams)
{
    enum { LINES = 40000, LINE = 29 };
    int32_t ids[512], targets[512];
    char *text = malloc(LINES * LINE + 1), *at = text;
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < LINES; i++) at += sprintf(at, "%07d the quick brown \xc3\xa4x\n", i) * 1;
    const size_t bytes = (size_t)(at - text);
    put("long.txt", text, bytes);
    struct collection *texts = opened(text_open, "long.txt", &none);
    const int64_t held = (int64_t)(0.1 * (double)bytes + 0.5), train = (int64_t)bytes - held;
    ck_assert_int_eq(texts->samples, (train - 1) / 512 + (held - 1) / 512);
    for (int64_t i = 0; i < (train - 1) / 512; i++) {
        ck_assert_int_eq(texts->read_tokens(texts, i, 512, ids, NULL, targets), TUTTI_OK);
        for (int k = 0; k < 512; k++) ck_assert_int_eq(ids[k], (unsigned char)text[i * 512 + k]);
        ck_assert_int_eq(targets[511], (unsigned char)text[i * 512 + 512]);
    }
    texts->free(texts);
    free(text);
}
END_TEST

/* ------------------------------------------------------------------------------------------- as sources ---- */

START_TEST(fills_batches)
{
    enum { ROWS = 200 };
    char *text = malloc(ROWS * 80), *at = text;
    int32_t ids[4 * 64], labels[4];
    ck_assert_ptr_nonnull(text);
    at += sprintf(at, "text,label\n");
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "%.*s,%d\n", 1 + i % 50, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", i % 2);
    put_text("rows.csv", text);
    free(text);
    tutti_data_options options = text_options("text", "label");
    tutti_data *data = tutti_data_open(in_kinds("rows.csv"), &options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    const tutti_source *source = tutti_data_source(data, TUTTI_DATA_ALL);
    ck_assert_int_eq(source->length, 56);
    ck_assert_int_eq(source->buckets, 3);
    const int64_t indices[] = { 0, 17, 3, 9 };
    ck_assert_int_eq(source->batch_length(source->user, indices, 4), 24);
    ck_assert_int_eq(source->batch_length(source->user, (int64_t[]) { 49 }, 1), 56);
    ck_assert_int_eq(source->batch_length(source->user, (int64_t[]) { ROWS }, 1), -1);
    for (int i = 0; i < 4 * 64; i++) ids[i] = -9;
    const tutti_buffer buffers[] = { { "ids", TUTTI_DTYPE_I32, ids, 24 * sizeof *ids, 24 },
        { "targets", TUTTI_DTYPE_I32, labels, sizeof *labels, 24 } };
    ck_assert_int_eq(source->read(source->user, indices, 4, buffers, 2), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(labels[i], indices[i] % 2);
        for (int k = 0; k < 24; k++) ck_assert_int_eq(ids[i * 24 + k], k <= indices[i] ? 'a' + k % 26 : -1);
    }
    ck_assert_int_eq(ids[4 * 24], -9);
    const tutti_buffer small[] = { { "ids", TUTTI_DTYPE_I32, ids, 8 * sizeof *ids, 8 } };
    ck_assert_int_ne(source->read(source->user, indices, 4, small, 1), 0);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "a text has 18 tokens"));
    tutti_data_free(data);
}
END_TEST

/* Other texts are read as those of the training were. */
START_TEST(restores)
{
    put_text("reviews.tsv", reviews);
    tutti_data_options options = text_options("text", "label");
    options.length = 12;
    tutti_data *data = tutti_data_open(in_kinds("reviews.tsv"), &options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    char *description = tutti_data_json(data), *found = tutti_data_inspect(data, 0);
    ck_assert_ptr_nonnull(description);
    ck_assert_ptr_nonnull(strstr(found, "\"unknown\"") ? NULL : found);
    tutti_data_free(data);
    options = text_options(NULL, NULL);
    options.description = description;
    options.without_targets = true;
    put_text("new.csv", "other,text\n1,fine film\n2,a very long text that is cut\n");
    data = tutti_data_open(in_kinds("new.csv"), &options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    tutti_data_info info = TUTTI_OPTIONS(tutti_data_info);
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.classes, 0);
    ck_assert_int_eq(info.length, 12);
    ck_assert_int_eq(tutti_data_source(data, TUTTI_DATA_TEST)->samples, 2);
    tutti_data_free(data);
    options.without_targets = false;
    ck_assert_ptr_null(tutti_data_open(in_kinds("new.csv"), &options));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "there is no column 'label'"));
    put_text("new.csv", "label,text\npos,fine film\npos,good\n");
    data = tutti_data_open(in_kinds("new.csv"), &options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_data_label(data, TUTTI_DATA_ALL, 0), 1);
    tutti_data_free(data);
    put_text("new.csv", "label,text\ngreat,fine film\npos,good\n");
    ck_assert_ptr_null(tutti_data_open(in_kinds("new.csv"), &options));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "'great'"));
    options.texts = (const char *const[]) { "one", "two words" };
    options.text_count = 2;
    data = tutti_data_open("texts", &options);
    ck_assert_msg(data != NULL, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_data_source(data, TUTTI_DATA_TEST)->samples, 2);
    tutti_data_free(data);
    options.texts = NULL;
    options.length = 13;
    ck_assert_ptr_null(tutti_data_open(in_kinds("new.csv"), &options));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "the network was trained with 12"));
    put_text("numbers.csv", "a,b\n1,2\n3,4\n5,6\n");
    data = tutti_data_open(in_kinds("numbers.csv"), &(tutti_data_options) { .length = 5 });
    ck_assert_ptr_null(data);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "--length is an option of texts, but these data are a table"));
    free(description);
    free(found);
}
END_TEST

Suite *texts_suite(void)
{
    Suite *suite = suite_create("texts");
    TCase *test = tcase_create("texts");
    tcase_add_checked_fixture(test, kinds_begin, kinds_end);
    tcase_set_timeout(test, 60);
    tcase_add_test(test, reads_rows);
    tcase_add_test(test, learns_words);
    tcase_add_test(test, reads_numbers);
    tcase_add_test(test, reads_pairs);
    tcase_add_test(test, leaves_out);
    tcase_add_test(test, cuts);
    tcase_add_test(test, reads_folders);
    tcase_add_test(test, reads_streams);
    tcase_add_test(test, reads_long_streams);
    tcase_add_test(test, fills_batches);
    tcase_add_test(test, restores);
    suite_add_tcase(suite, test);
    return suite;
}
