/*
 * Opening a directory: which files it consists of, and what they become together.
 *
 * parts[0] is config.json with the metadata made from it; the files of the weights follow, as
 * model.safetensors.index.json lists them, or model.safetensors, or the only *.safetensors there is;
 * the tokeniser's (tokenizer_files.h) come last. All that decides a token's id or a number is a
 * part, and so in the model's hash; the index is not, since the files it names are. Refused: names
 * that lead out of the directory, and weights as pickles (*.bin, *.pt), which are programs and can
 * do anything.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/json_read.h"
#include "format/json_scan.h"
#include "model/hf/hf.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/vocab_internal.h"

#define INDEX_NAME "model.safetensors.index.json"
#define MAX_PARTS 1000
#define MAX_CONFIG (1 << 20) /* its tree may take eighty times as much */
#define MAX_NAME 255         /* of a file, in bytes */

typedef struct opener {
    qkv_gguf *file;
    size_t capacity;
    char **names; /* of the weights' files */
    size_t n_names, names_capacity;
    qkv_string_map known; /* the same, to look up */
} opener;

/* DIRECTORY/NAME, the caller's to free; NULL when memory is short. */
static char *path_of(const opener *o, const char *name) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", o->file->path, name);
    if (!path.failed) return path.data;
    qkv_text_release(&path);
    return NULL;
}

/* A file that is there but cannot be read (also a link that leads nowhere) is there: opening it says
 * what is wrong. */
static int has_file(const opener *o, const char *name) {
    char *path = path_of(o, name);
    struct stat st;
    const int there = path && (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
    free(path);
    return there;
}

/* Maps a file as the next part. */
static int add_part(opener *o, const char *name, qkv_gguf_part **added, qkv_error *err) {
    qkv_gguf *file = o->file;
    qkv_gguf_part part = {.path = path_of(o, name)};
    if (!part.path) return qkv_fail_memory(err);
    if (!QKV_PUSH(file->parts, o->capacity, file->n_parts, part)) {
        free(part.path);
        return qkv_fail_memory(err);
    }
    *added = &file->parts[file->n_parts - 1];
    return qkv_mapping_open(&(*added)->map, (*added)->path, err);
}

static int load_json(json_t **out, const qkv_gguf_part *part, qkv_error *err) {
    json_error_t where;
    if (part->map.size > MAX_CONFIG)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s has %zu bytes; at most %d are accepted",
                        part->path, part->map.size, MAX_CONFIG);
    *out = qkv_json_load((const char *)part->map.data, part->map.size, 0, &where);
    if (json_is_object(*out)) return QKV_OK;
    const int line = *out ? 1 : where.line;
    json_decref(*out);
    *out = NULL;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %d: not a JSON object%s%s", part->path, line,
                    where.text[0] ? ": " : "", where.text);
}

/* ---- which files ---- */

static int add_name(opener *o, const char *name, qkv_error *err) {
    if (qkv_string_map_find(&o->known, name, strlen(name)) != QKV_NO_TOKEN) return QKV_OK;
    if (o->n_names >= MAX_PARTS)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: more than %d files of weights", o->file->path,
                        MAX_PARTS);
    char *copy = qkv_strdup(name);
    if (!copy || !QKV_PUSH(o->names, o->names_capacity, o->n_names, copy)) {
        free(copy);
        return qkv_fail_memory(err);
    }
    qkv_string_map_add(&o->known, copy, strlen(copy), 0);
    return QKV_OK;
}

/* Where the index says that a tensor is; a name with a slash could lead anywhere. */
static int add_indexed(opener *o, qkv_json_span tensor, qkv_json_span file, qkv_error *err) {
    qkv_text name = {0};
    const int is_name = file.length <= 2 + MAX_NAME && qkv_json_append_string(file, &name);
    const char *text = is_name && name.data ? name.data : "";
    int status = name.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK &&
        (!*text || strlen(text) != name.length || strchr(text, '/') || text[0] == '.'))
        status =
            qkv_fail(err, QKV_ERR_FORMAT,
                     "%s/" INDEX_NAME ": tensor %.*s is said to be in '%.100s', which is not a "
                     "file of this directory",
                     o->file->path, (int)(tensor.length < 100 ? tensor.length : 100), tensor.text,
                     *text ? text : "?");
    if (status == QKV_OK) status = add_name(o, text, err);
    qkv_text_release(&name);
    return status;
}

static int add_map(opener *o, qkv_json_span map, qkv_error *err) {
    qkv_json_scan scan;
    qkv_json_span tensor, file;
    int more, status = QKV_OK;
    if (!qkv_json_open(&scan, map) || !scan.is_object)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s/" INDEX_NAME ": no weight_map", o->file->path);
    while (status == QKV_OK && (more = qkv_json_next(&scan, &tensor, &file)) != 0)
        status = more > 0
                     ? add_indexed(o, tensor, file, err)
                     : qkv_fail(err, QKV_ERR_FORMAT,
                                "%s/" INDEX_NAME ": the weight_map is malformed", o->file->path);
    return status;
}

/* The files of an index, which may be long: it is gone through in place. */
static int add_index(opener *o, qkv_error *err) {
    char *path = path_of(o, INDEX_NAME);
    qkv_mapping mapping = {0};
    qkv_json_scan scan;
    qkv_json_span key, value, map = {NULL, 0};
    int status = path ? qkv_mapping_open(&mapping, path, err) : qkv_fail_memory(err);
    if (status == QKV_OK) {
        int more = qkv_json_open(&scan, qkv_json_whole((const char *)mapping.data, mapping.size));
        while (more > 0 && (more = qkv_json_next(&scan, &key, &value)) > 0) {
            if (scan.is_object && qkv_json_equals(key, "weight_map")) map = value;
        }
        status = more < 0 ? qkv_fail(err, QKV_ERR_FORMAT, "%s: malformed JSON", path)
                          : add_map(o, map, err);
    }
    qkv_mapping_close(&mapping);
    free(path);
    return status;
}

static int ends_with(const char *name, const char *end) {
    const size_t length = strlen(name), n = strlen(end);
    return length > n && strcmp(name + length - n, end) == 0;
}

/* Without an index: model.safetensors, or the only file of that kind. */
static int add_single(opener *o, qkv_error *err) {
    if (has_file(o, "model.safetensors")) return add_name(o, "model.safetensors", err);
    DIR *directory = opendir(o->file->path);
    if (!directory) return qkv_fail(err, QKV_ERR_IO, "cannot read the directory %s", o->file->path);
    int pickles = 0, status = QKV_OK;
    const struct dirent *entry;
    while (status == QKV_OK && (entry = readdir(directory)) != NULL) {
        if (ends_with(entry->d_name, ".safetensors")) status = add_name(o, entry->d_name, err);
        pickles |= ends_with(entry->d_name, ".bin") || ends_with(entry->d_name, ".pt") ||
                   ends_with(entry->d_name, ".pth") || ends_with(entry->d_name, ".ckpt");
    }
    closedir(directory);
    if (status != QKV_OK || o->n_names == 1) return status;
    if (o->n_names > 1)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: several *.safetensors, but no " INDEX_NAME,
                        o->file->path);
    if (pickles)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the weights are pickles (*.bin, *.pt), which can run any program when "
                        "they are read; convert them to safetensors first",
                        o->file->path);
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: no *.safetensors in this directory", o->file->path);
}

static int open_weights(opener *o, qkv_error *err) {
    const int indexed = has_file(o, INDEX_NAME);
    if (!qkv_string_map_init(&o->known, MAX_PARTS)) return qkv_fail_memory(err);
    int status = indexed ? add_index(o, err) : add_single(o, err);
    if (status != QKV_OK) return status;
    if (o->n_names > 1) qsort(o->names, o->n_names, sizeof *o->names, qkv_compare_strings);
    for (size_t i = 0; i < o->n_names && status == QKV_OK; i++) {
        qkv_gguf_part *part = NULL;
        if (indexed && !has_file(o, o->names[i]))
            return qkv_fail(err, QKV_ERR_IO,
                            "%s: %s is missing, which " INDEX_NAME
                            " names; is the download complete?",
                            o->file->path, o->names[i]);
        status = add_part(o, o->names[i], &part, err);
        if (status == QKV_OK)
            status = qkv_safetensors_read(&((qkv_hf_dir *)o->file->source)->sources, &part->map,
                                          part->path, o->file->n_parts - 1, err);
    }
    return status == QKV_OK
               ? qkv_st_sort(&((qkv_hf_dir *)o->file->source)->sources, o->file->path, err)
               : status;
}

/* ---- what they become ---- */

/* In Hugging Face's cache, models--org--name/snapshots/COMMIT, the name; else what the directory is
 * called. */
static const char *find_name(const char *path, size_t *length) {
    const char *snapshot = qkv_path_snapshot(path);
    const char *name = snapshot ? snapshot : qkv_path_base(path);
    *length = strcspn(name, "/");
    if (!snapshot) return name;
    const char *end = name + *length, *start = end;
    while (start[-1] != '-' || start[-2] != '-') start--;
    *length = (size_t)(end - start);
    return start;
}

/* What people call the model. */
static void set_name(opener *o) {
    char name[256];
    size_t length;
    const char *found = find_name(o->file->path, &length);
    if (length > sizeof name - 1) length = sizeof name - 1;
    memcpy(name, found, length);
    name[length] = '\0';
    if (length && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        gguf_set_val_str(o->file->parts[0].header, "general.name", name);
}

static int open_config(opener *o, qkv_hf_config *config, qkv_error *err) {
    qkv_gguf_part *part = NULL;
    json_t *json = NULL;
    if (!has_file(o, "config.json"))
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s is a directory without config.json, so no Hugging Face model",
                        o->file->path);
    int status = add_part(o, "config.json", &part, err);
    if (status == QKV_OK) status = load_json(&json, part, err);
    if (status == QKV_OK && !(part->header = gguf_init_empty())) status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        config->path = part->path;
        config->meta = part->header;
        status = qkv_hf_config_read(config, json, err);
    }
    json_decref(json);
    return status;
}

/* Embedding rows are the vocabulary's size; llama.cpp wants a key where there is no tokenizer. */
static int set_vocab_size(opener *o, qkv_hf_config *config, qkv_error *err) {
    for (size_t i = 0; i < o->file->n_tensors; i++) {
        const qkv_gguf_tensor *t = &o->file->tensors[i];
        if (strcmp(t->name, "token_embd.weight") != 0) continue;
        if (t->ne[1] > INT32_MAX)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: %lld rows of embeddings", o->file->path,
                            (long long)t->ne[1]);
        qkv_hf_set_int(config, "vocab_size", t->ne[1]);
    }
    return QKV_OK;
}

/* config.json says things that are not known. */
static int note_ignored(opener *o, const qkv_hf_config *config, qkv_error *err) {
    qkv_text text = {0};
    if (config->n_ignored == 0) return QKV_OK;
    qkv_text_printf(&text, "config.json: settings that %s does not have were ignored: %s",
                    config->wrapper ? config->wrapper->architecture : config->architecture,
                    config->ignored.data ? config->ignored.data : "");
    return qkv_gguf_add_notice(o->file, &text, err);
}

/* Without one the model takes token ids only. */
static int open_tokenizer(opener *o, qkv_error *err) {
    unsigned files = 0;
    int status = qkv_tokenizer_read(o->file->parts[0].header, o->file->path, &files, err);
    for (int i = 0; i < QKV_TOKENIZER_N_FILES && status == QKV_OK; i++) {
        qkv_gguf_part *part = NULL;
        if (files >> i & 1)
            status = add_part(o, qkv_tokenizer_file_name((enum qkv_tokenizer_file)i), &part, err);
    }
    return status;
}

static void free_directory(void *source) {
    qkv_hf_dir *dir = source;
    for (size_t i = 0; i < dir->n_makers; i++) {
        free((void *)dir->makers[i]->sources);
        free(dir->makers[i]->values);
        free(dir->makers[i]);
    }
    for (size_t i = 0; i < dir->n_names; i++) free(dir->names[i]);
    free(dir->makers);
    free(dir->names);
    free(dir->path);
    qkv_st_release(&dir->sources);
    free(dir);
}

static int new_directory(qkv_gguf *file, const char *path, qkv_error *err) {
    qkv_hf_dir *dir = qkv_calloc(1, sizeof *dir);
    if (!dir) return qkv_fail_memory(err);
    file->source = dir;
    file->free_source = free_directory;
    dir->path = qkv_strdup(path);
    file->path = dir->path;
    return dir->path ? QKV_OK : qkv_fail_memory(err);
}

static int read_directory(qkv_gguf *file, const char *path, qkv_error *err) {
    opener o = {.file = file};
    qkv_hf_config config = {0};
    int status = new_directory(file, path, err);
    if (status != QKV_OK) return status;
    file->original_order = 1;
    status = open_config(&o, &config, err);
    if (status == QKV_OK) status = open_weights(&o, err);
    if (status == QKV_OK) status = qkv_hf_bind_tensors(file, &config, err);
    if (status == QKV_OK) status = note_ignored(&o, &config, err);
    if (status == QKV_OK) status = set_vocab_size(&o, &config, err);
    if (status == QKV_OK) status = open_tokenizer(&o, err);
    if (status == QKV_OK) set_name(&o);
    qkv_hf_config_release(&config);
    for (size_t i = 0; i < o.n_names; i++) free(o.names[i]);
    free(o.names);
    qkv_string_map_release(&o.known);
    return status;
}

int qkv_hf_open(qkv_gguf **out, const char *path, qkv_error *err) {
    return qkv_gguf_build(out, path, read_directory, err);
}
