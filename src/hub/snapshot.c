#define _POSIX_C_SOURCE 200809L
#include "hub/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/split_name.h"
#include "hub/folder.h"
#include "hub/gguf_choice.h"
#include "hub/name.h"

#define INDEX_NAME "model.safetensors.index.json"
#define MAX_INDEX ((size_t)64 << 20)
#define MAX_DEPTH 4     /* of folders with GGUF files */
#define MAX_GGUFS 10000 /* a repository has a few dozen */

/* ---- reading a directory ---- */

/* model-00001-of-00003.safetensors, which makes no sense alone. */
static int is_shard(const char *name) {
    const char *of = strstr(name, "-of-");
    return of && strcmp(of, "-of-00001.safetensors") != 0;
}

/* Directories are read in no order: the first by name is kept. */
static int note_dangling(qkv_snapshot *s, const char *name, qkv_error *err) {
    if (s->dangling && strcmp(s->dangling, name) <= 0) return QKV_OK;
    free(s->dangling);
    s->dangling = qkv_strdup(name);
    return s->dangling ? QKV_OK : qkv_fail_memory(err);
}

static int note_root_file(qkv_snapshot *s, const char *name, const struct stat *target,
                          qkv_error *err) {
    const char *suffix = qkv_path_suffix(name);
    const int is_weights = strcmp(suffix, "safetensors") == 0;
    const int is_index = strcmp(name, INDEX_NAME) == 0;
    const int is_json = strcmp(suffix, "json") == 0;
    s->has_config |= strcmp(name, "config.json") == 0;
    s->has_weights |= is_weights || is_index;
    s->has_index |= is_index;
    s->has_shards |= is_weights && is_shard(name);
    s->has_pickles |=
        strcmp(suffix, "bin") == 0 || strcmp(suffix, "pt") == 0 || strcmp(suffix, "pth") == 0;
    if (!is_weights && !is_json) return QKV_OK;
    s->size += target ? (uint64_t)target->st_size : 0;
    return target ? QKV_OK : note_dangling(s, name, err);
}

static int add_gguf(qkv_snapshot *s, const char *name, qkv_error *err) {
    if (s->n_ggufs >= MAX_GGUFS)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: more than %d GGUF files", s->path, MAX_GGUFS);
    char *copy = qkv_strdup(name);
    if (copy && QKV_PUSH(s->ggufs, s->capacity, s->n_ggufs, copy)) return QKV_OK;
    free(copy);
    return qkv_fail_memory(err);
}

/* `name` is a path in the snapshot. Folders that are links could lead round in circles. */
static int read_entry(void *user, const char *path, const char *name, qkv_error *err) {
    qkv_snapshot *s = user;
    const int depth = qkv_folder_depth(name);
    struct stat facts, target;
    if (lstat(path, &facts) != 0) return QKV_OK;
    if (S_ISDIR(facts.st_mode))
        return depth < MAX_DEPTH ? qkv_folder_visit(s->path, name, read_entry, s, err) : QKV_OK;
    const int is_there = stat(path, &target) == 0;
    if (is_there && !S_ISREG(target.st_mode)) return QKV_OK;
    const int status =
        depth == 0 ? note_root_file(s, name, is_there ? &target : NULL, err) : QKV_OK;
    return status == QKV_OK && qkv_gguf_is_choice(name) ? add_gguf(s, name, err) : status;
}

int qkv_snapshot_read(qkv_snapshot *s, const char *path, qkv_error *err) {
    *s = (qkv_snapshot){.path = qkv_strdup(path)};
    int status = s->path ? qkv_folder_visit(s->path, "", read_entry, s, err) : qkv_fail_memory(err);
    if (s->n_ggufs > 1) qsort(s->ggufs, s->n_ggufs, sizeof *s->ggufs, qkv_compare_strings);
    return status;
}

void qkv_snapshot_release(qkv_snapshot *s) {
    for (size_t i = 0; i < s->n_ggufs; i++) free(s->ggufs[i]);
    free(s->ggufs);
    free(s->dangling);
    free(s->path);
    *s = (qkv_snapshot){0};
}

/* ---- what is missing ---- */

static int has_file(const qkv_snapshot *s, const char *name, uint64_t *size) {
    qkv_text path = {0};
    struct stat facts = {0};
    qkv_text_printf(&path, "%s/%s", s->path, name);
    const int there = !path.failed && stat(path.data, &facts) == 0 && S_ISREG(facts.st_mode);
    qkv_text_release(&path);
    if (there && size) *size += (uint64_t)facts.st_size;
    return there;
}

static int fail_missing(qkv_error *err, const char *model, const char *what) {
    return qkv_fail(err, QKV_ERR_IO, "%s is not complete here: %s is missing", model, what);
}

/* The first file that the index names and that is not there, NULL where all are. An index that
 * cannot be read is reported when the model is opened. */
static char *find_missing_shard(const qkv_snapshot *s) {
    qkv_text path = {0};
    char *text = NULL, *missing = NULL;
    size_t size = 0;
    qkv_text_printf(&path, "%s/" INDEX_NAME, s->path);
    if (path.failed || qkv_read_file(&text, &size, path.data, MAX_INDEX, NULL) != QKV_OK) {
        qkv_text_release(&path);
        return NULL;
    }
    json_t *index = qkv_json_parse(text, size, 0, NULL), *file;
    const char *tensor, *last = "";
    json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
        const char *name = json_string_value(file);
        /* Tensors of a file mostly stand together. */
        if (!name || strcmp(name, last) == 0 || !qkv_hub_path_is_safe(name)) continue;
        last = name;
        if (has_file(s, name, NULL)) continue;
        missing = qkv_strdup(name);
        break;
    }
    json_decref(index);
    free(text);
    qkv_text_release(&path);
    return missing;
}

int qkv_snapshot_is_directory(const qkv_snapshot *s) {
    return (s->has_config && s->has_weights) || s->n_ggufs == 0;
}

int qkv_snapshot_check_directory(const qkv_snapshot *s, const char *model, qkv_error *err) {
    if (!has_file(s, "config.json", NULL)) return fail_missing(err, model, "config.json");
    /* Opening says what is the matter with pickles. */
    if (!s->has_weights)
        return s->has_pickles ? QKV_OK : fail_missing(err, model, "the file of its weights");
    if (s->dangling) return fail_missing(err, model, s->dangling);
    if (s->has_shards && !s->has_index) return fail_missing(err, model, INDEX_NAME);
    char *shard = find_missing_shard(s);
    if (!shard) return QKV_OK;
    const int status = fail_missing(err, model, shard);
    free(shard);
    return status;
}

int qkv_snapshot_check_gguf(char **out, uint64_t *size, const qkv_snapshot *s, const char *file,
                            const char *model, qkv_error *err) {
    uint64_t sum = 0;
    qkv_split_name split;
    char *part = qkv_strdup(file);
    qkv_text path = {0};
    const int n = part && qkv_split_name_read(&split, file) ? split.count : 1;
    int status = part ? QKV_OK : qkv_fail_memory(err);
    for (int i = 1; i <= n && status == QKV_OK; i++) {
        if (n > 1) qkv_split_name_write(part, &split, i);
        if (!has_file(s, part, &sum)) status = fail_missing(err, model, part);
    }
    free(part);
    qkv_text_printf(&path, "%s/%s", s->path, file);
    if (status == QKV_OK && path.failed) status = qkv_fail_memory(err);
    *out = status == QKV_OK ? path.data : NULL;
    if (status != QKV_OK) qkv_text_release(&path);
    if (size) *size = sum;
    return status;
}
