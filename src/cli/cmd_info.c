/* qkv info: the facts about a model, as a table or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/columns.h"
#include "cli/inputs.h"

typedef struct info_args {
    const char *model;
    int json;
    int hash;
} info_args;

static const info_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(info_args),
    CLI_JSON_OPTION(info_args),
    {0, "hash", NULL, "add the hash of the model's files (reads every byte)", CLI_FLAG,
     offsetof(info_args, hash), 1, 0, 0},
};

static int run_info(const cli_call *call, qkv_error *err);

const cli_command cli_command_info = {
    .name = "info",
    .summary = "facts about a model",
    .synopsis = "[-m MODEL] [--json] [--hash]",
    .description =
        "Prints a model's architecture, sizes, heads, position encoding, context, "
        "tensor types, parameters and vocabulary. Of a model that was given by its name, "
        "also which file that is, and of which revision.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_info,
};

/* X(field, key in JSON, label in the table, kind): the kinds are the TABLE_ and JSON_ ones below */
#define INFO_FIELDS(X)                                                                             \
    X(path, "path", "file", TEXT)                                                                  \
    X(name, "name", "name", TEXT)                                                                  \
    X(architecture, "architecture", "architecture", TEXT)                                          \
    X(n_layer, "n_layer", "layers", NUMBER)                                                        \
    X(n_embd, "n_embd", "width", NUMBER)                                                           \
    X(n_head, "n_head", "query heads", NUMBER)                                                     \
    X(n_kv_head, "n_kv_head", "key/value heads", NUMBER)                                           \
    X(head_dim, "head_dim", "head width", NUMBER)                                                  \
    X(n_ff, "n_ff", "feed-forward width", NUMBER)                                                  \
    X(position, "position", "position", TEXT)                                                      \
    X(n_ctx, "n_ctx", "context", NUMBER)                                                           \
    X(window, "window", "sliding window", LENGTH)                                                  \
    X(chunk, "chunk", "chunks of the text", IF_ANY)                                                \
    X(n_windowed, "n_windowed", "layers with it", IF_ANY)                                          \
    X(causal, "causal", "causal", YES_NO)                                                          \
    X(has_sink, "has_sink", "attention sinks", YES_NO)                                             \
    X(n_expert, "n_expert", "experts", IF_ANY)                                                     \
    X(n_expert_used, "n_expert_used", "experts per token", IF_ANY)                                 \
    X(tied_output, "tied_output", "tied output", YES_NO)                                           \
    X(n_vocab, "n_vocab", "vocabulary", NUMBER)                                                    \
    X(tokenizer, "tokenizer", "tokenizer", TEXT)                                                   \
    X(tensor_types, "tensor_types", "tensor types", COUNTS)                                        \
    X(n_params, "n_params", "parameters", NUMBER)                                                  \
    X(n_files, "n_files", "files", NUMBER)                                                         \
    X(file_size, "file_size", "file size", NUMBER)                                                 \
    X(notices, "notices", "notices", IF_SAID)

static void print_row(const char *label, const char *value) {
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, value, strlen(value));
    printf("%-20s%s\n", label, cli_shown(&visible));
    qkv_text_release(&visible);
}

static void print_number(const char *label, uint64_t value) {
    printf("%-20s%" PRIu64 "\n", label, value);
}

/* Does the name tell more than the path? */
static int is_by_name(const qkv_model_place_info *place) {
    return strcmp(place->name, place->path) != 0;
}

/* How a name led to the file. */
static void print_place(const qkv_model_place_info *place) {
    if (!is_by_name(place)) return;
    print_row("given as", place->name);
    if (!place->repository[0]) return;
    qkv_text revision = {0};
    qkv_text_puts(&revision, place->revision);
    if (strcmp(place->revision, place->commit) != 0)
        qkv_text_printf(&revision, " (%s)", place->commit);
    print_row("revision", cli_shown(&revision));
    qkv_text_release(&revision);
}

static void print_table(const qkv_model_info *info, const char *hash) {
#define TABLE_TEXT(field, label) print_row(label, info->field);
#define TABLE_COUNTS(field, label) TABLE_TEXT(field, label)
#define TABLE_NUMBER(field, label) print_number(label, (uint64_t)info->field);
#define TABLE_LENGTH(field, label)                                                                 \
    if (info->field)                                                                               \
        print_number(label, (uint64_t)info->field);                                                \
    else                                                                                           \
        print_row(label, "none");
#define TABLE_IF_ANY(field, label)                                                                 \
    if (info->field) print_number(label, (uint64_t)info->field);
#define TABLE_YES_NO(field, label) print_row(label, info->field ? "yes" : "no");
#define TABLE_IF_SAID(field, label)                                                                \
    if (info->field[0]) print_row(label, info->field);
#define TABLE_FIELD(field, key, label, kind) TABLE_##kind(field, label)
    INFO_FIELDS(TABLE_FIELD)
#undef TABLE_FIELD
#undef TABLE_IF_SAID
#undef TABLE_YES_NO
#undef TABLE_IF_ANY
#undef TABLE_LENGTH
#undef TABLE_NUMBER
#undef TABLE_COUNTS
#undef TABLE_TEXT
    if (hash[0]) print_row("hash", hash);
}

/* "f16 x 43, f32 x 13" as {"f16": 43, "f32": 13} */
static json_t *count_types(const char *types) {
    json_t *counts = json_object();
    while (*types) {
        const size_t n = strcspn(types, ",");
        char name[64], *times;
        snprintf(name, sizeof name, "%.*s", (int)n, types);
        if ((times = strstr(name, " x "))) {
            *times = '\0';
            qkv_json_put(counts, name, json_integer(strtoll(times + 3, NULL, 10)));
        }
        types += n;
        types += strspn(types, ", ");
    }
    return counts;
}

static json_t *make_json(const qkv_model_info *info, const char *hash) {
    json_t *json = json_object();
#define JSON_TEXT(field, key) qkv_json_put(json, key, qkv_json_text(info->field));
#define JSON_COUNTS(field, key) qkv_json_put(json, key, count_types(info->field));
#define JSON_NUMBER(field, key) qkv_json_put(json, key, json_integer((json_int_t)info->field));
#define JSON_LENGTH(field, key)                                                                    \
    qkv_json_put(json, key, info->field ? json_integer((json_int_t)info->field) : json_null());
#define JSON_IF_ANY(field, key) JSON_NUMBER(field, key)
#define JSON_YES_NO(field, key) qkv_json_put(json, key, json_boolean(info->field));
#define JSON_IF_SAID(field, key) /* a list, added below */
#define JSON_FIELD(field, key, label, kind) JSON_##kind(field, key)
    INFO_FIELDS(JSON_FIELD)
#undef JSON_FIELD
#undef JSON_IF_SAID
#undef JSON_YES_NO
#undef JSON_IF_ANY
#undef JSON_LENGTH
#undef JSON_NUMBER
#undef JSON_COUNTS
#undef JSON_TEXT
    if (hash[0]) qkv_json_put(json, "hash", json_string(hash));
    return json;
}

static void add_notices(json_t *json, const qkv_model *model) {
    const char *notice;
    if (!qkv_model_notice(model, 0)) return;
    json_t *list = json_array();
    for (size_t i = 0; (notice = qkv_model_notice(model, i)); i++)
        qkv_json_push(list, qkv_json_text(notice));
    qkv_json_put(json, "notices", list);
}

static void add_place(json_t *json, const qkv_model_place_info *place) {
    if (!is_by_name(place)) return;
    qkv_json_put(json, "given_as", qkv_json_text(place->name));
    if (!place->repository[0]) return;
    qkv_json_put(json, "revision", qkv_json_text(place->revision));
    qkv_json_put(json, "commit", qkv_json_text(place->commit));
}

static int print_json(const qkv_model *model, const qkv_model_place_info *place, const char *hash,
                      qkv_error *err) {
    json_t *json = make_json(qkv_model_get_info(model), hash);
    add_notices(json, model);
    add_place(json, place);
    return cli_print_json(json, err);
}

static int run_info(const cli_call *call, qkv_error *err) {
    const info_args *args = call->args;
    qkv_model_place *found = NULL;
    qkv_model *model = NULL;
    char hash[33] = "";
    int status = cli_model_find(&found, args->model, err);
    const qkv_model_place_info *place = qkv_model_place_get_info(found);
    if (status == QKV_OK) status = cli_model_open(&model, place->path, err);
    if (status == QKV_OK && args->hash) status = qkv_model_hash(model, hash, err);
    if (status == QKV_OK && args->json) {
        status = print_json(model, place, hash, err);
    } else if (status == QKV_OK) {
        print_place(place);
        print_table(qkv_model_get_info(model), hash);
    }
    qkv_model_free(model);
    qkv_model_place_free(found);
    return status;
}
