/*
 * NumPy's .npz: a ZIP archive of .npy files, stored without compression. Every tensor is NAME.npy, and
 * __metadata__.npy is one text of bytes, the metadata as JSON:
 *
 *     file = numpy.load("out.npz")
 *     file["v0/pattern.3"], json.loads(file["__metadata__"].item())
 *
 *     per file     local header, name, bytes
 *     at the end   the same headers again, with where each file begins; then one record on all
 *
 * Sizes and places have 32 bits and the number of files 16: what needs more is refused before anything
 * is written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/store_formats.h"

enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, HEADER_ROOM = 256, MOST_FILES = 65535 };

#define METADATA_NAME "__metadata__"

/* One file of the archive: a .npy's header and its values. */
typedef struct member {
    const char *name; /* without .npy */
    qkv_text header;
    const void *data;
    size_t size;
    uint32_t checksum;
    uint32_t offset;
} member;

/* ---- records ---- */

/* Numbers are little-endian. */
static void put(qkv_text *out, uint32_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; i++) {
        const char byte = (char)(value >> (8 * i) & 0xff);
        qkv_text_append(out, &byte, 1);
    }
}

/* What the local and the central header have in common. Names are UTF-8, the time is the first that
 * ZIP knows: files of one result are the same, whenever they are written. */
static void put_facts(qkv_text *out, const member *file) {
    const uint32_t size = (uint32_t)(file->header.length + file->size);
    enum { VERSION = 20, NAMES_ARE_UTF8 = 0x800, STORED = 0, FIRST_DAY = 0x21 };
    put(out, VERSION, 2);
    put(out, NAMES_ARE_UTF8, 2);
    put(out, STORED, 2);
    put(out, 0, 2);
    put(out, FIRST_DAY, 2);
    put(out, file->checksum, 4);
    put(out, size, 4);
    put(out, size, 4);
    put(out, (uint32_t)(strlen(file->name) + strlen(".npy")), 2);
    put(out, 0, 2); /* no extra field */
}

static void put_local(qkv_text *out, const member *file) {
    put(out, 0x04034b50, 4);
    put_facts(out, file);
    qkv_text_printf(out, "%s.npy", file->name);
}

static void put_central(qkv_text *out, const member *file) {
    put(out, 0x02014b50, 4);
    put(out, 20, 2); /* made by version */
    put_facts(out, file);
    put(out, 0, 2); /* no comment */
    put(out, 0, 2); /* disk */
    put(out, 0, 2); /* attributes inside and outside */
    put(out, 0, 4);
    put(out, file->offset, 4);
    qkv_text_printf(out, "%s.npy", file->name);
}

static void put_end(qkv_text *out, size_t n, uint32_t offset, uint32_t size) {
    put(out, 0x06054b50, 4);
    put(out, 0, 4); /* disks */
    put(out, (uint32_t)n, 2);
    put(out, (uint32_t)n, 2);
    put(out, size, 4);
    put(out, offset, 4);
    put(out, 0, 2); /* no comment */
}

/* ---- the archive ---- */

static int check_npz(const store_content *content, qkv_error *err) {
    /* Room for the metadata, which is not known yet. */
    uint64_t size = (uint64_t)64 << 20;
    for (size_t i = 0; i < content->n_tensors; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        if (strcmp(tensor->name, METADATA_NAME) == 0 || strlen(tensor->name) > UINT16_MAX - 4)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "%s cannot hold a tensor of the name %.64s",
                            content->path, tensor->name);
        size += (uint64_t)qkv_store_tensor_size(tensor) * sizeof(float) +
                2 * (strlen(tensor->name) + strlen(".npy")) + LOCAL_SIZE + CENTRAL_SIZE +
                HEADER_ROOM;
    }
    if (size > UINT32_MAX || content->n_tensors >= MOST_FILES)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%s can hold 4 GB and 65534 tensors, and this is more; write .safetensors "
                        "instead",
                        content->path);
    return QKV_OK;
}

/* Writes a text and empties it. */
static int flush(qkv_text *text, FILE *stream, qkv_error *err) {
    const int failed = text->failed;
    if (!failed && text->length) fwrite(text->data, 1, text->length, stream);
    qkv_text_release(text);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int write_members(member *files, size_t n, FILE *stream, qkv_error *err) {
    uint32_t offset = 0;
    qkv_text record = {0}, central = {0};
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (files[i].header.failed) {
            status = qkv_fail_memory(err);
            break;
        }
        files[i].offset = offset;
        files[i].checksum = qkv_crc32(0, files[i].header.data, files[i].header.length);
        files[i].checksum = qkv_crc32(files[i].checksum, files[i].data, files[i].size);
        put_local(&record, &files[i]);
        put_central(&central, &files[i]);
        offset += (uint32_t)(record.length + files[i].header.length + files[i].size);
        status = flush(&record, stream, err);
        fwrite(files[i].header.data, 1, files[i].header.length, stream);
        if (files[i].size) fwrite(files[i].data, 1, files[i].size, stream);
    }
    put_end(&central, n, offset, (uint32_t)central.length);
    if (status == QKV_OK) status = flush(&central, stream, err);
    qkv_text_release(&record);
    qkv_text_release(&central);
    return status;
}

/* The metadata and then the tensors. */
static void fill_members(member *files, const store_content *content, const char *metadata) {
    const size_t length = strlen(metadata);
    char type[32];
    snprintf(type, sizeof type, "|S%zu", length);
    files[0] = (member){.name = METADATA_NAME, .data = metadata, .size = length};
    qkv_store_npy_header(&files[0].header, type, NULL, 0);
    for (size_t i = 0; i < content->n_tensors; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        files[i + 1] = (member){.name = tensor->name,
                                .data = tensor->data,
                                .size = (size_t)qkv_store_tensor_size(tensor) * sizeof(float)};
        qkv_store_npy_header(&files[i + 1].header, "<f4", tensor->shape, tensor->n_dims);
    }
}

static int write_npz(const store_content *content, FILE *stream, qkv_error *err) {
    const size_t n = content->n_tensors + 1;
    char *metadata = qkv_json_dump(content->metadata, JSON_COMPACT);
    member *files = qkv_calloc(n, sizeof *files);
    int status = metadata && files ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && strlen(metadata) > (size_t)48 << 20)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s: the metadata are too long; write .safetensors", content->path);
    if (status == QKV_OK) {
        fill_members(files, content, metadata);
        status = write_members(files, n, stream, err);
    }
    for (size_t i = 0; files && i < n; i++) qkv_text_release(&files[i].header);
    free(files);
    free(metadata);
    return status;
}

const store_format qkv_store_npz = {"npz", check_npz, write_npz};
