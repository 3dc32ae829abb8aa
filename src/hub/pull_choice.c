#include "hub/pull_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/split_name.h"
#include "format/json_scan.h"
#include "hub/gguf_choice.h"

#define WEIGHTS "model.safetensors"
#define INDEX "model.safetensors.index.json"

enum { INDEX_LIMIT = 64 << 20 };

/* ---- GGUF files ---- */

typedef struct gguf_list {
    const char **names; /* that can be chosen */
    size_t n, capacity;
} gguf_list;

static int list_ggufs(gguf_list *list, const qkv_listing *listing, qkv_error *err) {
    *list = (gguf_list){0};
    for (size_t i = 0; i < listing->n; i++) {
        const char *path = listing->files[i].path;
        if (qkv_gguf_is_choice(path) && !QKV_PUSH(list->names, list->capacity, list->n, path))
            return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* Marks a file, or every part of a split one; *size becomes theirs together. A NULL `err` and use
 * QKV_FILE_UNUSED: only counts. */
static int use_parts(const qkv_listing *listing, const char *path, qkv_file_use use, uint64_t *size,
                     qkv_error *err) {
    qkv_split_name split = {.count = 1};
    const int is_split = qkv_split_name_read(&split, path);
    char *part = qkv_strdup(path);
    int status = part ? QKV_OK : qkv_fail_memory(err);
    *size = 0;
    for (int i = 1; status == QKV_OK && i <= (is_split ? split.count : 1); i++) {
        if (is_split) qkv_split_name_write(part, &split, i);
        qkv_listed_file *file = qkv_listing_find(listing, part);
        if (!file) {
            status = qkv_fail(err, QKV_ERR_FORMAT, "part %d of %s is missing on the hub", i, path);
        } else {
            *size += file->size;
            if (use != QKV_FILE_UNUSED) file->use = use;
        }
    }
    free(part);
    return status;
}

/* "Q4_K_M (669 MB), Q8_0 (1.17 GB)" */
static void append_choices(qkv_text *text, const qkv_listing *listing, const gguf_list *list) {
    enum { ENOUGH = 600 };
    char size_text[QKV_BYTES_SIZE];
    for (size_t i = 0; i < list->n; i++) {
        if (text->length > ENOUGH) {
            qkv_text_printf(text, " and %zu more", list->n - i);
            return;
        }
        uint64_t size = 0;
        use_parts(listing, list->names[i], QKV_FILE_UNUSED, &size, NULL);
        if (i) qkv_text_puts(text, ", ");
        qkv_gguf_append_choice(text, list->names, list->n, i);
        if (size) qkv_text_printf(text, " (%s)", qkv_format_bytes(size_text, size));
    }
}

static int fail_gguf(int several, const qkv_hub *hub, const qkv_listing *listing,
                     const gguf_list *list, qkv_error *err) {
    const char *repository = hub->name.repository, *wanted = hub->name.file;
    qkv_text choices = {0};
    append_choices(&choices, listing, list);
    const char *all = choices.data ? choices.data : "";
    int status;
    if (!wanted)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s has several GGUF files; say which, as in %s:%.*s: %s", repository,
                          repository, (int)strcspn(all, " "), all, all);
    else if (several)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s has several GGUF files that '%s' may mean; it has %s", repository,
                          wanted, all);
    else
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no GGUF file '%s'; it has %s", repository,
                          wanted, all);
    qkv_text_release(&choices);
    return status;
}

static int choose_gguf(qkv_pull_choice *choice, const qkv_listing *listing, const qkv_hub *hub,
                       const gguf_list *list, qkv_error *err) {
    size_t index = 0;
    uint64_t size;
    if (!list->n)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no GGUF files: leave out ':%s'",
                        hub->name.repository, hub->name.file);
    const int found = qkv_gguf_choose(&index, list->names, list->n, hub->name.file, "", NULL);
    /* That says which it is, and this one adds sizes. */
    if (found != QKV_OK) return fail_gguf(found == QKV_ERR_ARGUMENT, hub, listing, list, err);
    choice->gguf = list->names[index];
    return use_parts(listing, choice->gguf, QKV_FILE_WEIGHTS, &size, err);
}

/* ---- directories ---- */

static void use_settings(const qkv_listing *listing) {
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "spiece.model",
                                        "sentencepiece.bpe.model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qkv_listed_file *file = qkv_listing_find(listing, names[i]);
        if (file) file->use = QKV_FILE_SETTINGS;
    }
}

/* From the cache, or from the hub, unless it is known already; it is kept, and written from there. */
static int read_index(qkv_listed_file *index, qkv_hub *hub, const qkv_pull_cache *cache,
                      qkv_error *err) {
    qkv_text where = {0};
    if (index->content.length) return QKV_OK;
    int status = qkv_listing_complete(cache->listing, hub, index, err);
    if (status == QKV_OK && qkv_pull_cache_has(cache, index, &where)) {
        char *text = NULL;
        size_t size;
        status = where.failed ? qkv_fail_memory(err)
                              : qkv_read_file(&text, &size, where.data, INDEX_LIMIT, err);
        if (status == QKV_OK) qkv_text_append(&index->content, text, size);
        free(text);
    } else if (status == QKV_OK) {
        status = qkv_hub_file_url(hub, &where, cache->listing->commit, index->path, err);
        if (status == QKV_OK)
            status =
                qkv_hub_read(hub, where.data, index->path, INDEX_LIMIT, &index->content, NULL, err);
    }
    qkv_text_release(&where);
    return status == QKV_OK && index->content.failed ? qkv_fail_memory(err) : status;
}

static int fail_index(const qkv_hub *hub, const char *shard, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: " INDEX " %s%s%.200s%s", hub->name.repository, why,
                    shard ? " '" : "", shard ? shard : "", shard ? "'" : "");
}

static int use_shard(const qkv_listing *listing, const qkv_hub *hub, qkv_json_span value,
                     qkv_text *name, qkv_error *err) {
    name->length = 0;
    if (!qkv_json_append_string(value, name)) return fail_index(hub, NULL, "is malformed", err);
    if (name->failed) return qkv_fail_memory(err);
    if (strlen(name->data) != name->length || !qkv_hub_path_is_safe(name->data))
        return fail_index(hub, name->data, "names a file outside of the repository:", err);
    qkv_listed_file *file = qkv_listing_find(listing, name->data);
    if (!qkv_equal_ignoring_case(qkv_path_suffix(name->data), "safetensors"))
        return fail_index(hub, name->data, "names a file that is not safetensors:", err);
    if (!file) return fail_index(hub, name->data, "names a file that is not there:", err);
    file->use = QKV_FILE_WEIGHTS;
    return QKV_OK;
}

/* {"weight_map": {TENSOR: FILE, ...}} */
static int use_shards(const qkv_listing *listing, const qkv_hub *hub, const qkv_text *index,
                      qkv_error *err) {
    qkv_json_scan scan, shards;
    qkv_json_span key, value;
    qkv_text name = {0};
    int more = 0, within = 0, found = 0, status = QKV_OK;
    if (!qkv_json_open(&scan, qkv_json_whole(index->data, index->length)))
        return fail_index(hub, NULL, "is not JSON", err);
    while (status == QKV_OK && (more = qkv_json_next(&scan, &key, &value)) == 1) {
        if (!scan.is_object || !qkv_json_equals(key, "weight_map")) continue;
        if (!qkv_json_open(&shards, value)) break;
        while (status == QKV_OK && (within = qkv_json_next(&shards, &key, &value)) == 1) {
            status = use_shard(listing, hub, value, &name, err);
            found = 1;
        }
    }
    if (status == QKV_OK && (more < 0 || within < 0 || !found))
        status = fail_index(hub, NULL, "is malformed", err);
    qkv_text_release(&name);
    return status;
}

/* How many *.safetensors there are, whatever they are called; *first is one. */
static size_t count_weights(const qkv_listing *listing, qkv_listed_file **first) {
    size_t n = 0;
    *first = NULL;
    for (size_t i = 0; i < listing->n; i++) {
        qkv_listed_file *file = &listing->files[i];
        if (!qkv_equal_ignoring_case(qkv_path_suffix(file->path), "safetensors")) continue;
        if (n++ == 0) *first = file;
    }
    return n;
}

static int choose_directory(const qkv_listing *listing, qkv_hub *hub, const qkv_pull_cache *cache,
                            qkv_listed_file *weights, qkv_listed_file *index, qkv_error *err) {
    if (!qkv_listing_find(listing, "config.json"))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s has %s but no config.json: not a model that "
                        "can be opened",
                        hub->name.repository, weights ? weights->path : INDEX);
    use_settings(listing);
    if (weights) {
        weights->use = QKV_FILE_WEIGHTS;
        return QKV_OK;
    }
    index->use = QKV_FILE_SETTINGS;
    int status = read_index(index, hub, cache, err);
    if (status == QKV_OK) status = use_shards(listing, hub, &index->content, err);
    return status;
}

/* ---- either ---- */

static int fail_weights(const qkv_listing *listing, const qkv_hub *hub, qkv_error *err) {
    qkv_listed_file *first;
    if (count_weights(listing, &first) > 1)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s has several *.safetensors (%s), but neither " WEIGHTS " nor " INDEX,
                        hub->name.repository, first->path);
    if (listing->pickle)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s has its weights only as %s: such files can run code when they are read "
                        "and are never fetched; look for one with safetensors or GGUF",
                        hub->name.repository, listing->pickle);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s has no weights: neither " WEIGHTS " nor GGUF files", hub->name.repository);
}

static int is_directory_kind(const qkv_listing *listing, qkv_listed_file **weights,
                             qkv_listed_file **index) {
    *weights = qkv_listing_find(listing, WEIGHTS);
    *index = *weights ? NULL : qkv_listing_find(listing, INDEX);
    if (*weights || *index) return 1;
    return count_weights(listing, weights) == 1;
}

/* Small files first: what is wrong with them shows early. */
static int collect(qkv_pull_choice *choice, qkv_listing *listing, qkv_error *err) {
    static const qkv_file_use order[] = {QKV_FILE_SETTINGS, QKV_FILE_WEIGHTS};
    for (size_t pass = 0; pass < sizeof order / sizeof *order; pass++) {
        for (size_t i = 0; i < listing->n; i++) {
            qkv_listed_file *file = &listing->files[i];
            if (file->use == order[pass] &&
                !QKV_PUSH(choice->files, choice->capacity, choice->n, file))
                return qkv_fail_memory(err);
        }
    }
    return QKV_OK;
}

int qkv_pull_choose(qkv_pull_choice *choice, qkv_listing *listing, qkv_hub *hub,
                    const qkv_pull_cache *cache, qkv_error *err) {
    *choice = (qkv_pull_choice){0};
    qkv_listed_file *weights, *index;
    gguf_list ggufs;
    const char *wanted = hub->name.file;
    int status = list_ggufs(&ggufs, listing, err);
    if (status != QKV_OK) {
        /* nothing more */
    } else if (wanted && qkv_is_pickle(wanted)) {
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s: such files can run code when they are read and are never fetched",
                          wanted);
    } else if (!wanted && is_directory_kind(listing, &weights, &index)) {
        status = choose_directory(listing, hub, cache, weights, index, err);
    } else if (ggufs.n || wanted) {
        status = choose_gguf(choice, listing, hub, &ggufs, err);
    } else {
        status = fail_weights(listing, hub, err);
    }
    free(ggufs.names);
    if (status == QKV_OK) status = collect(choice, listing, err);
    return status;
}

void qkv_pull_choice_release(qkv_pull_choice *choice) {
    free(choice->files);
    *choice = (qkv_pull_choice){0};
}
