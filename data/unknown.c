/* What lies at a path that no opener knows, and what may be done about it. */
#include "data/ignored.h"
#include "data/listing.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_LEVELS = 3 }; /* train/, classes, and one more */

/* What is counted in a folder: its own files, and those of its folders. */
struct content {
    struct ignored here, below;
};

/* Counts a folder's files in `ignored`, and those of its folders, of theirs and so on, in `below`. */
static tutti_status count_files(const char *folder, struct ignored *ignored, struct ignored *below, int levels)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    ignored->hidden += listing.hidden;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        ignored_add(ignored, NULL, listing_name(&listing, i), listing.entries[i].folder);
        if (!listing.entries[i].folder || levels == 0) continue;
        char *path = memory_format("%s/%s", folder, listing_name(&listing, i));
        status = path ? count_files(path, below, below, levels - 1) : TUTTI_NO_MEMORY;
        free(path);
    }
    listing_free(&listing);
    return status;
}

static const char *const advice[] = { "convert pictures to JPEG or PNG", "convert recordings to WAV",
    "convert the table to CSV, by duckdb or pandas", "if it is a table, let its name end in .csv",
    "name one of the tables itself", "save arrays as .npz or .npy, called x and y",
    "unpack the archive, and name the folder", "docs/data.md says which files and folders are read" };
enum { PICTURES, RECORDINGS, OTHER_TABLES, TEXTS, TABLES, ARRAYS, ARCHIVES, ANYTHING, ADVICE };

static int advice_of(const char *extension)
{
    static const struct {
        const char *extensions; /* between blanks */
        int advice;
    } known[] = { { " .svg .jp2 .jxl .dng .cr2 .nef .psd ", PICTURES }, { " .m4a .aac .wma .amr .ape ", RECORDINGS },
        { " .xls .xlsx .ods .parquet .pq .arrow .feather .arff .json .jsonl ", OTHER_TABLES },
        { " .txt .dat .data ", TEXTS }, { " .csv .tsv ", TABLES },
        { " .mat .pkl .pt .pth .h5 .hdf5 .npz .npy ", ARRAYS }, { " .zip .gz .tgz .7z .rar .xz .bz2 ", ARCHIVES } };
    char word[16];
    snprintf(word, sizeof(word), " %s ", extension);
    for (size_t i = 0; extension[0] && i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(known[i].extensions, word)) return known[i].advice;
    return ANYTHING;
}

/* The advice for most of the files that are known at all. */
static const char *choose_advice(const struct content *content)
{
    int64_t counts[ADVICE] = { 0 };
    int best = ANYTHING;
    for (int i = 0; i < content->here.kind_count; i++)
        counts[advice_of(content->here.kinds[i].extension)] += content->here.kinds[i].count;
    for (int i = 0; i < content->below.kind_count; i++)
        counts[advice_of(content->below.kinds[i].extension)] += content->below.kinds[i].count;
    counts[ANYTHING] = 0;
    for (int i = 0; i < ADVICE; i++)
        if (counts[i] > counts[best]) best = i;
    return advice[best];
}

/* Tables in other formats, and how the file becomes a table in CSV. */
static const struct conversion {
    const char *ends, *format;
    bool duckdb;
    const char *pandas;
} conversions[] = {
    { " .parquet .pq ", "Parquet", true, "parquet" },
    { " .arrow .feather ", "Arrow", false, "feather" },
    { " .json .jsonl .ndjson ", "JSON", true, NULL },
    { " .xls .xlsx .ods ", "a spreadsheet", false, "excel" },
    { " .pkl .pickle ", "Python's pickle", false, "pickle" },
};

static const struct conversion *conversion_of(const char *end)
{
    char word[16];
    const int length = snprintf(word, sizeof(word), " %s ", end);
    for (size_t i = 0; length < (int)sizeof(word) && i < sizeof(conversions) / sizeof(conversions[0]); i++)
        if (strcasestr(conversions[i].ends, word)) return &conversions[i];
    return NULL;
}

/* Names the commands that convert the file, if its format is known. */
static tutti_status refuse_file(const char *path, const char *advice_on)
{
    const char *slash = strrchr(path, '/'), *point = strrchr(slash ? slash : path, '.');
    const struct conversion *known = point ? conversion_of(point) : NULL;
    struct text how = { 0 };
    if (text_ends_with(path, ".safetensors") || text_ends_with(path, ".onnx"))
        return fail(
            TUTTI_FILE, "%s: this is a network or its weights, not data: name it as MODEL or by --weights", path);
    if (!known) return fail(TUTTI_FILE, "%s: this is not a file of data that can be read: %s", path, advice_on);
    const int stem = (int)(point - path);
    if (known->duckdb) text_append(&how, "duckdb -c \"COPY (FROM '%s') TO '%.*s.csv'\"", path, stem, path);
    if (known->pandas)
        text_append(&how, "%spandas.read_%s(\"%s\").to_csv(\"%.*s.csv\", index=False)",
            known->duckdb ? ", or in Python by " : "", known->pandas, path, stem, path);
    const tutti_status status =
        fail(TUTTI_FILE, "%s is %s: convert it to CSV by %s", path, known->format, how.data ? how.data : "a program");
    text_free(&how);
    return status;
}

tutti_status data_unknown(const char *path)
{
    struct stat found;
    struct content *content = memory_new(1, sizeof(*content));
    if (!content) return TUTTI_NO_MEMORY;
    const bool is_folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    tutti_status status = TUTTI_OK;
    if (is_folder)
        status = count_files(path, &content->here, &content->below, MOST_LEVELS);
    else
        ignored_add(&content->here, NULL, path, false);
    if (status != TUTTI_OK) goto done;
    const struct ignored_text here = ignored_list(&content->here), below = ignored_list(&content->below);
    if (!is_folder)
        status = refuse_file(path, choose_advice(content));
    else if (!here.text[0])
        status = fail(TUTTI_FILE,
            "%s: this folder is empty: put a table into it, or the files of each class into a folder of its own", path);
    else
        status = fail(TUTTI_FILE, "%s: no data are recognised in this folder. It has %s%s%s: %s", path, here.text,
            below.text[0] ? ", and in its folders " : "", below.text, choose_advice(content));
done:
    free(content);
    return status;
}
