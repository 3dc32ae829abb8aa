/* qkv models: the models on this machine and those that have short names, as a table or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "cli/columns.h"
#include "cli/inputs.h"
#include "qkv/package.h"

typedef struct models_args {
    int json, names;
} models_args;

static const models_args defaults = {0};

static const cli_option options[] = {
    CLI_JSON_OPTION(models_args),
    {0, "names", NULL, "print the names of those on this machine, one to a line, and open none",
     CLI_FLAG, offsetof(models_args, names), 1, 0, 0},
};

static int run_models(const cli_call *call, qkv_error *err);

const cli_command cli_command_models = {
    .name = "models",
    .summary = "the models on this machine, and those to pull by a short name",
    .synopsis = "[--json | --names]",
    .description =
        "Lists the model that comes with qkv, those that were pulled by a short name, and every "
        "model in Hugging Face's cache: what to give with -m, the size of its files, and its "
        "architecture, or why it cannot be opened. Hardly more than headers are read. Then the models "
        "with short names that 'qkv pull' can fetch.\n"
        "\n"
        "A name is org/name, with @REVISION for another one than main, and with :QUANT or "
        ":FILE.gguf for a GGUF file of it. The cache is where HF_HUB_CACHE or HF_HOME say, else "
        "~/.cache/huggingface/hub; models with short names are in QKV_CACHE/models, else "
        "~/.cache/qkv/models.\n"
        "\n"
        "  qkv models\n"
        "  qkv info -m org/name:Q4_K_M\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_models,
};

/* ---- one model ---- */

/* What there is to say about one. */
typedef struct model_row {
    const qkv_model_place_info *place;
    uint64_t size;
    char architecture[64]; /* "" where it cannot be opened */
    char problem[1024];    /* "" where it can */
} model_row;

static void read_row(model_row *row, const qkv_model_place_info *place) {
    qkv_error why = {0};
    qkv_model *model = NULL;
    *row = (model_row){.place = place, .size = place->size};
    snprintf(row->problem, sizeof row->problem, "%s", place->problem);
    if (place->problem[0]) return;
    if (qkv_model_open(&model, place->path, &why) == QKV_OK) {
        const qkv_model_info *info = qkv_model_get_info(model);
        snprintf(row->architecture, sizeof row->architecture, "%s", info->architecture);
        row->size = info->file_size;
    } else {
        snprintf(row->problem, sizeof row->problem, "%s", why.message);
    }
    qkv_model_free(model);
}

/* ---- as a table ---- */

enum { N_COLUMNS = 4, MAX_WIDTH = 60, PACKAGE_WIDTH = 12 };

/* Four cells; the last one may be long. */
static void print_cells(int width, const char *const cells[N_COLUMNS]) {
    qkv_text name = {0}, rest = {0};
    qkv_text_append_visible(&name, cells[0], strlen(cells[0]));
    qkv_text_append_visible(&rest, cells[3], strlen(cells[3]));
    printf("%-*s  %9s  ", width, cli_shown(&name), cells[1]);
    if (rest.length)
        printf("%-12s  %s\n", cells[2], cli_shown(&rest));
    else
        printf("%s\n", cells[2]);
    qkv_text_release(&name);
    qkv_text_release(&rest);
}

/* "638.2 MB"; what is not known is a dash. */
static void format_size(char out[QKV_BYTES_SIZE], uint64_t size) {
    if (size)
        qkv_format_bytes(out, size);
    else
        snprintf(out, QKV_BYTES_SIZE, "-");
}

static void print_row(const model_row *row, int is_default, int width) {
    static const char shipped[] = "comes with qkv, used without -m";
    char size[QKV_BYTES_SIZE];
    format_size(size, row->size);
    const char *const cells[] = {row->place->name, size,
                                 row->architecture[0] ? row->architecture : "-",
                                 is_default && !row->problem[0] ? shipped : row->problem};
    print_cells(width, cells);
}

/* Is a model with this short name on the machine? */
static int is_there(const qkv_model_list *list, const char *name) {
    const qkv_model_place_info *place;
    for (size_t i = 0; (place = qkv_model_list_get(list, i)); i++) {
        if (strcmp(place->name, name) == 0 && !place->problem[0]) return 1;
    }
    return 0;
}

static void print_packages(const qkv_model_list *list) {
    static const char *const head[] = {"to pull", "size", "licence", "from"};
    const qkv_package_info *package;
    int n = 0;
    for (size_t i = 0; (package = qkv_package_get(i)); i++) {
        char size[QKV_BYTES_SIZE];
        if (is_there(list, package->name)) continue;
        format_size(size, package->n_bytes);
        if (n++ == 0) {
            putchar('\n');
            print_cells(PACKAGE_WIDTH, head);
        }
        print_cells(PACKAGE_WIDTH,
                    (const char *const[]){package->name, size, package->licence, package->source});
    }
}

/* ---- as JSON ---- */

static json_t *packages_json(const qkv_model_list *list) {
    const qkv_package_info *package;
    json_t *json = json_array();
    for (size_t i = 0; (package = qkv_package_get(i)); i++) {
        qkv_json_push(json,
                      json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b}", "name", package->name,
                                "description", package->description, "licence", package->licence,
                                "source", package->source, "size", (json_int_t)package->n_bytes,
                                "fetched", (json_int_t)package->n_fetched, "is_here",
                                is_there(list, package->name)));
    }
    return json;
}

static json_t *text_or_null(const char *text) {
    return text[0] ? qkv_json_text(text) : json_null();
}

static json_t *row_json(const model_row *row) {
    json_t *json = json_object();
    qkv_json_put(json, "name", qkv_json_text(row->place->name));
    qkv_json_put(json, "path", text_or_null(row->place->path));
    qkv_json_put(json, "repository", text_or_null(row->place->repository));
    qkv_json_put(json, "revision", text_or_null(row->place->revision));
    qkv_json_put(json, "commit", text_or_null(row->place->commit));
    qkv_json_put(json, "size", json_integer((json_int_t)row->size));
    qkv_json_put(json, "architecture", text_or_null(row->architecture));
    qkv_json_put(json, "problem", text_or_null(row->problem));
    return json;
}

/* ---- all of them ---- */

/* The default model, where there is one, and then those that have names. */
typedef struct shelf {
    qkv_model_place *shipped; /* or NULL */
    qkv_model_list *list;
} shelf;

static int shelf_open(shelf *s, qkv_error *err) {
    char *path = NULL;
    int status = QKV_OK;
    *s = (shelf){0};
    if (cli_default_model(&path, NULL) == QKV_OK) status = qkv_model_find(&s->shipped, path, err);
    free(path);
    return status == QKV_OK ? qkv_model_list_new(&s->list, err) : status;
}

static void shelf_release(shelf *s) {
    qkv_model_place_free(s->shipped);
    qkv_model_list_free(s->list);
}

/* NULL past the end. */
static const qkv_model_place_info *shelf_get(const shelf *s, size_t i) {
    if (s->shipped && i == 0) return qkv_model_place_get_info(s->shipped);
    return qkv_model_list_get(s->list, s->shipped ? i - 1 : i);
}

/* Rows are printed as models are opened, so that a large cache shows at once. */
static void print_table(const shelf *s) {
    static const char *const head[] = {"name", "size", "architecture", ""};
    const qkv_model_place_info *place;
    size_t width = strlen(head[0]);
    for (size_t i = 0; (place = shelf_get(s, i)); i++) {
        const size_t length = strlen(place->name);
        if (length > width) width = length < MAX_WIDTH ? length : MAX_WIDTH;
    }
    print_cells((int)width, head);
    for (size_t i = 0; (place = shelf_get(s, i)); i++) {
        model_row row;
        read_row(&row, place);
        print_row(&row, s->shipped && i == 0, (int)width);
        fflush(stdout);
    }
}

static int print_json(const shelf *s, qkv_error *err) {
    const qkv_model_place_info *place;
    json_t *models = json_array(), *json = json_object();
    for (size_t i = 0; (place = shelf_get(s, i)); i++) {
        model_row row;
        read_row(&row, place);
        qkv_json_push(models, row_json(&row));
    }
    qkv_json_put(json, "models", models);
    qkv_json_put(json, "to_pull", packages_json(s->list));
    return cli_print_json(json, err);
}

/* What -m takes: names, without the model that is used anyway, and those that cannot be opened. */
static void print_names(const shelf *s) {
    const qkv_model_place_info *place;
    for (size_t i = s->shipped ? 1 : 0; (place = shelf_get(s, i)); i++) {
        if (!place->problem[0]) cli_print_line(place->name);
    }
}

static int run_models(const cli_call *call, qkv_error *err) {
    const models_args *args = call->args;
    shelf s;
    if (args->json && args->names) return cli_usage(err, "give --json or --names, not both");
    int status = shelf_open(&s, err);
    if (status == QKV_OK && args->json)
        status = print_json(&s, err);
    else if (status == QKV_OK && args->names)
        print_names(&s);
    else if (status == QKV_OK) {
        print_table(&s);
        print_packages(s.list);
    }
    shelf_release(&s);
    return status;
}
