#include "formats/zip.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/little_endian.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END64 = 0x06064b50, LOCATOR64 = 0x07064b50 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, END64_BYTES = 56, LOCATOR64_BYTES = 20 };
enum { STORED = 0, DEFLATED = 8 };
/* No deflated data are smaller than a 1032nd of what they unpack to. */
enum { MOST_RATIO = 1032, LIMIT_RATIO = 100 };
enum { MOST_MEMBERS = 10000 }; /* whose names are compared with one another */
#define LIMIT_AT_LEAST ((size_t)1 << 30)
#define FULL16 0xffffu
#define FULL32 0xffffffffu

struct member {
    char *name;
    unsigned method;
    uint32_t checksum;
    size_t packed, unpacked, begin; /* bytes; `begin` is of the packed data in the file */
};

struct zip {
    unsigned char *bytes;
    size_t size;
    size_t directory; /* where it begins */
    struct member *members;
    size_t count;
    unsigned char *unpacked; /* of the last member that was asked for */
};

/* ----------------------------------------------------------------------------------------------- directory ---- */

/* Whether `count` bytes from `begin` on lie before `end`. */
static bool lies_before(size_t begin, size_t count, size_t end)
{
    return begin <= end && count <= end - begin;
}

/* Finds the record at the end of the file, after which a comment may follow; the record tells its length. */
static tutti_status find_end(const struct zip *zip, size_t *end)
{
    for (size_t comment = 0; comment <= FULL16 && zip->size >= END_BYTES + comment; comment++) {
        *end = zip->size - END_BYTES - comment;
        if (read_le32(zip->bytes + *end) == END && read_le16(zip->bytes + *end + 20) == comment) return TUTTI_OK;
    }
    return fail(TUTTI_FORMAT, "this is not a ZIP file, or it is cut: it has no directory at its end");
}

/* Finds where the directory lies and how many members it has; *end becomes the position of what follows it. */
static tutti_status find_directory(struct zip *zip, size_t *end, size_t *bytes)
{
    const unsigned char *at = zip->bytes + *end;
    zip->count = read_le16(at + 10);
    *bytes = read_le32(at + 12);
    zip->directory = read_le32(at + 16);
    const bool disks = read_le16(at + 4) != 0 || read_le16(at + 6) != 0 || read_le16(at + 8) != read_le16(at + 10);
    if (zip->count == FULL16 || *bytes == FULL32 || zip->directory == FULL32) {
        const unsigned char *locator = *end >= LOCATOR64_BYTES ? at - LOCATOR64_BYTES : NULL;
        if (!locator || read_le32(locator) != LOCATOR64 || !lies_before(read_le64(locator + 8), END64_BYTES, *end) ||
            read_le32(zip->bytes + read_le64(locator + 8)) != END64)
            return fail(TUTTI_FORMAT, "the ZIP file is damaged: its Zip64 directory is missing");
        *end = read_le64(locator + 8);
        at = zip->bytes + *end;
        zip->count = read_le64(at + 32);
        *bytes = read_le64(at + 40);
        zip->directory = read_le64(at + 48);
    }
    if (disks) return fail(TUTTI_FORMAT, "the ZIP file is one of several that belong together: pass a whole one");
    if (!lies_before(zip->directory, *bytes, *end) || zip->count > *bytes / CENTRAL_BYTES)
        return fail(TUTTI_FORMAT, "the ZIP file is damaged: its directory does not lie within it");
    if (zip->count > MOST_MEMBERS)
        return fail(TUTTI_FORMAT, "the ZIP file has %zu members: %d can be read", zip->count, MOST_MEMBERS);
    return TUTTI_OK;
}

/* Sizes and position that do not fit 32 bits stand in an extra field, in this order. */
static bool read_zip64(const unsigned char *extra, size_t bytes, struct member *member, size_t *local)
{
    size_t *const values[] = { &member->unpacked, &member->packed, local };
    while (bytes >= 4) {
        const uint32_t kind = read_le16(extra), length = read_le16(extra + 2);
        if (length > bytes - 4) return false;
        size_t at = 0;
        for (int i = 0; kind == 1 && i < 3; i++) {
            if (*values[i] != FULL32) continue;
            if (at + 8 > length) return false;
            *values[i] = read_le64(extra + 4 + at);
            at += 8;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return true;
}

static bool name_is_plain(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return false;
    return length > 0 && text_is_utf8(name);
}

/* The header before the data has the name, too, and extra fields of its own. */
static tutti_status find_data(const struct zip *zip, struct member *member, size_t local)
{
    const size_t length = strlen(member->name);
    const unsigned char *at = zip->bytes + local;
    if (!lies_before(local, LOCAL_BYTES, zip->directory) || read_le32(at) != LOCAL ||
        !lies_before(local + LOCAL_BYTES, length, zip->directory) || read_le16(at + 26) != length ||
        memcmp(at + LOCAL_BYTES, member->name, length) != 0)
        return fail(
            TUTTI_FORMAT, "the ZIP file is damaged: member \"%s\" is not where its directory says", member->name);
    member->begin = local + LOCAL_BYTES + length + read_le16(at + 28);
    if (!lies_before(member->begin, member->packed, zip->directory))
        return fail(TUTTI_FORMAT, "the ZIP file is damaged: member \"%s\" does not lie within it", member->name);
    return TUTTI_OK;
}

static tutti_status check_member(const struct zip *zip, const struct member *member, unsigned flags)
{
    const char *name = member->name;
    if (flags & 1) return fail(TUTTI_FORMAT, "member \"%s\" is encrypted: pass a file without a password", name);
    if (member->method != STORED && member->method != DEFLATED)
        return fail(TUTTI_FORMAT, "member \"%s\" is packed by method %u: only stored (0) and deflated (8) can be read",
            name, member->method);
    const bool possible =
        member->method == STORED ? member->unpacked == member->packed : member->unpacked / MOST_RATIO <= member->packed;
    if (!possible)
        return fail(TUTTI_FORMAT, "the ZIP file is damaged: member \"%s\" cannot have %zu bytes, packed in %zu", name,
            member->unpacked, member->packed);
    for (const struct member *other = zip->members; other < member; other++)
        if (!strcmp(other->name, name)) return fail(TUTTI_FORMAT, "two members have the name \"%s\"", name);
    return TUTTI_OK;
}

/* Reads the member whose entry lies at *at, and moves *at after it. */
static tutti_status read_entry(struct zip *zip, struct member *member, size_t *at, size_t end)
{
    tutti_status status = TUTTI_OK;
    const unsigned char *entry = zip->bytes + *at;
    if (!lies_before(*at, CENTRAL_BYTES, end) || read_le32(entry) != CENTRAL)
        return fail(TUTTI_FORMAT, "the ZIP file is damaged: its directory has fewer members than it says");
    const size_t name = read_le16(entry + 28), extra = read_le16(entry + 30),
                 all = CENTRAL_BYTES + name + extra + read_le16(entry + 32);
    if (!lies_before(*at, all, end)) return fail(TUTTI_FORMAT, "the ZIP file is damaged: its directory is cut");
    size_t local = read_le32(entry + 42);
    member->method = read_le16(entry + 10);
    member->checksum = read_le32(entry + 16);
    member->packed = read_le32(entry + 20);
    member->unpacked = read_le32(entry + 24);
    member->name = memory_new(name + 1, 1);
    if (!member->name) return TUTTI_NO_MEMORY;
    memcpy(member->name, entry + CENTRAL_BYTES, name);
    if (strlen(member->name) != name || !name_is_plain(member->name, name))
        return fail(TUTTI_FORMAT, "a member of the ZIP file has an empty name, or one with bytes that are not text");
    if (!read_zip64(entry + CENTRAL_BYTES + name, extra, member, &local))
        return fail(TUTTI_FORMAT, "the ZIP file is damaged: the sizes of member \"%s\" are missing", member->name);
    TRY(check_member(zip, member, read_le16(entry + 8)));
    TRY(find_data(zip, member, local));
    *at += all;
done:
    return status;
}

static tutti_status read_directory(struct zip *zip)
{
    tutti_status status = TUTTI_OK;
    size_t end = 0, bytes = 0, unpacked = 0, packed = 0;
    const size_t limit = zip->size > LIMIT_AT_LEAST / LIMIT_RATIO ? zip->size * LIMIT_RATIO : LIMIT_AT_LEAST;
    TRY(find_end(zip, &end));
    TRY(find_directory(zip, &end, &bytes));
    size_t at = zip->directory;
    zip->members = memory_new(zip->count + 1, sizeof *zip->members);
    if (!zip->members) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < zip->count; i++) {
        const struct member *member = &zip->members[i];
        TRY(read_entry(zip, &zip->members[i], &at, zip->directory + bytes));
        if (!size_add(packed, member->packed, &packed) || packed > zip->directory)
            FAIL(TUTTI_FORMAT, "the ZIP file is damaged: its members overlap");
        if (!size_add(unpacked, member->unpacked, &unpacked) || unpacked > limit)
            FAIL(TUTTI_FORMAT,
                "the ZIP file of %zu bytes unpacks to more than %zu: it is damaged, or made to fill memory", zip->size,
                limit);
    }
    if (at != zip->directory + bytes)
        FAIL(TUTTI_FORMAT, "the ZIP file is damaged: its directory has more than it says");
done:
    return status;
}

tutti_status zip_open(const char *path, struct zip **opened)
{
    tutti_status status = TUTTI_NO_MEMORY;
    *opened = NULL;
    struct zip *zip = memory_new(1, sizeof *zip);
    if (!zip) return status;
    TRY(file_read(path, SIZE_MAX / (2 * LIMIT_RATIO), &zip->bytes, &zip->size));
    status = read_directory(zip);
    if (status != TUTTI_OK) status = status_context(status, "%s", path);
done:
    if (status == TUTTI_OK)
        *opened = zip;
    else
        zip_close(zip);
    return status;
}

void zip_close(struct zip *zip)
{
    if (!zip) return;
    for (size_t i = 0; zip->members && i < zip->count; i++) free(zip->members[i].name);
    free(zip->members);
    free(zip->bytes);
    free(zip->unpacked);
    free(zip);
}

size_t zip_count(const struct zip *zip)
{
    return zip->count;
}

const char *zip_name(const struct zip *zip, size_t member)
{
    return zip->members[member].name;
}

/* --------------------------------------------------------------------------------------------------- unpack ---- */

static uInt at_most(size_t bytes)
{
    return bytes < (1u << 30) ? (uInt)bytes : 1u << 30;
}

/* Unpacks data. False unless they make exactly so many bytes. zlib counts in 32 bits, so it works on pieces. */
static bool unpack(z_stream *stream, const unsigned char *packed, size_t packed_bytes, unsigned char *to, size_t bytes)
{
    size_t taken = 0, made = 0;
    int code = Z_OK;
    while (code == Z_OK) {
        const uInt in = at_most(packed_bytes - taken), out = at_most(bytes - made);
        stream->next_in = (Bytef *)(uintptr_t)(packed + taken); /* which zlib only reads */
        stream->avail_in = in;
        stream->next_out = to + made;
        stream->avail_out = out;
        code = inflate(stream, Z_NO_FLUSH);
        taken += in - stream->avail_in;
        made += out - stream->avail_out;
    }
    return code == Z_STREAM_END && taken == packed_bytes && made == bytes;
}

static tutti_status inflate_member(struct zip *zip, const struct member *member)
{
    z_stream stream = { 0 };
    zip->unpacked = malloc(member->unpacked + 1);
    if (!zip->unpacked || inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return fail(TUTTI_NO_MEMORY, "no memory for the %zu bytes of member \"%s\"", member->unpacked, member->name);
    const bool whole = unpack(&stream, zip->bytes + member->begin, member->packed, zip->unpacked, member->unpacked);
    (void)inflateEnd(&stream);
    if (whole) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "member \"%s\" is damaged: its deflated data do not unpack to %zu bytes", member->name,
        member->unpacked);
}

tutti_status zip_member(struct zip *zip, size_t number, const unsigned char **data, size_t *bytes)
{
    const struct member *member = &zip->members[number];
    free(zip->unpacked);
    zip->unpacked = NULL;
    *data = zip->bytes + member->begin;
    *bytes = member->unpacked;
    if (member->method == DEFLATED) {
        const tutti_status status = inflate_member(zip, member);
        if (status != TUTTI_OK) return status;
        *data = zip->unpacked;
    }
    if (crc32_z(crc32_z(0, NULL, 0), *data, *bytes) == member->checksum) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "member \"%s\" is damaged: its checksum is wrong", member->name);
}

/* ---------------------------------------------------------------------------------------------------- write ---- */

struct written {
    char *name;
    uint32_t checksum, bytes, begin;
};

struct zip_writer {
    struct atomic_file *file;
    struct written *members;
    size_t count, capacity, size;
};

tutti_status zip_create(const char *path, struct zip_writer **created)
{
    *created = NULL;
    struct zip_writer *writer = memory_new(1, sizeof *writer);
    if (!writer) return TUTTI_NO_MEMORY;
    const tutti_status status = atomic_file_open(&writer->file, path);
    if (status == TUTTI_OK)
        *created = writer;
    else
        zip_abandon(writer);
    return status;
}

static unsigned char *put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) *at++ = (unsigned char)(value >> (8 * i));
    return at;
}

/* What the header of a member and its entry in the directory share: version 2.0, names in UTF-8, stored, and the first
 * day that the format knows, so that equal arrays make equal files. */
static unsigned char *put_member(unsigned char *at, const struct written *member)
{
    at = put(put(put(at, 20, 2), 1u << 11, 2), STORED, 2);
    at = put(put(at, 0, 2), 1 << 5 | 1, 2);
    at = put(put(put(at, member->checksum, 4), member->bytes, 4), member->bytes, 4);
    return put(put(at, strlen(member->name), 2), 0, 2);
}

static tutti_status write_bytes(struct zip_writer *writer, const void *data, size_t bytes)
{
    writer->size += bytes;
    return bytes ? atomic_file_write(writer->file, data, bytes) : TUTTI_OK;
}

tutti_status zip_add(struct zip_writer *writer, const char *name, const void *head, size_t head_bytes, const void *data,
    size_t data_bytes)
{
    tutti_status status = TUTTI_OK;
    unsigned char header[LOCAL_BYTES];
    size_t bytes, end;
    if (strlen(name) >= FULL16 || writer->count + 1 >= FULL16 || !size_add(head_bytes, data_bytes, &bytes) ||
        !size_add(writer->size + LOCAL_BYTES + strlen(name), bytes, &end) || end >= FULL32)
        return fail(TUTTI_INVALID, "%s does not fit a ZIP file, which has less than 4 GiB and 65535 members", name);
    TRY(memory_grow((void **)&writer->members, &writer->capacity, writer->count + 1, sizeof *writer->members));
    struct written *member = &writer->members[writer->count];
    *member = (struct written) { memory_copy_text(name), 0, (uint32_t)bytes, (uint32_t)writer->size };
    if (!member->name) return TUTTI_NO_MEMORY;
    writer->count++;
    uLong checksum = crc32_z(crc32_z(0, NULL, 0), head, head_bytes);
    if (data_bytes) checksum = crc32_z(checksum, data, data_bytes);
    member->checksum = (uint32_t)checksum;
    (void)put_member(put(header, LOCAL, 4), member);
    TRY(write_bytes(writer, header, sizeof header));
    TRY(write_bytes(writer, name, strlen(name)));
    TRY(write_bytes(writer, head, head_bytes));
    TRY(write_bytes(writer, data, data_bytes));
done:
    return status;
}

static tutti_status write_directory(struct zip_writer *writer)
{
    tutti_status status = TUTTI_OK;
    const size_t begin = writer->size;
    for (size_t i = 0; i < writer->count; i++) {
        const struct written *member = &writer->members[i];
        unsigned char entry[CENTRAL_BYTES];
        unsigned char *at = put_member(put(put(entry, CENTRAL, 4), 20, 2), member);
        at = put(put(put(at, 0, 2), 0, 2), 0, 2); /* comment, disk, kind */
        (void)put(put(at, 0, 4), member->begin, 4);
        TRY(write_bytes(writer, entry, sizeof entry));
        TRY(write_bytes(writer, member->name, strlen(member->name)));
    }
    if (writer->size >= FULL32) FAIL(TUTTI_INVALID, "the arrays do not fit a ZIP file, which has less than 4 GiB");
    unsigned char end[END_BYTES];
    unsigned char *at = put(put(put(end, END, 4), 0, 2), 0, 2);
    at = put(put(at, writer->count, 2), writer->count, 2);
    (void)put(put(put(at, writer->size - begin, 4), begin, 4), 0, 2);
    TRY(write_bytes(writer, end, sizeof end));
done:
    return status;
}

tutti_status zip_commit(struct zip_writer *writer)
{
    tutti_status status = write_directory(writer);
    if (status == TUTTI_OK) {
        status = atomic_file_commit(writer->file);
        writer->file = NULL;
    }
    zip_abandon(writer);
    return status;
}

void zip_abandon(struct zip_writer *writer)
{
    if (!writer) return;
    for (size_t i = 0; i < writer->count; i++) free(writer->members[i].name);
    free(writer->members);
    atomic_file_abandon(writer->file);
    free(writer);
}
