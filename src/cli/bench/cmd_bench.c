/* qkv bench: how long things take, on models with random weights or on given ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/bench/bench.h"
#include "cli/inputs.h"
#include "cli/messages.h"
#include "qkv/synthetic.h"

typedef struct bench_args {
    cli_list models; /* shapes and files, in the order given */
    cli_list types;
    int64_t tokens;
    int64_t rounds;
    int64_t threads;
    const char *only;
    const char *keep;
    int json;
} bench_args;

static const bench_args defaults = {.tokens = 128, .rounds = 9};

enum { MODEL_SHAPE, MODEL_FILE };

static const cli_option options[] = {
    {0, "shape", "SHAPE", "a model with random weights (default gpt2-124m); may be repeated",
     CLI_LIST, offsetof(bench_args, models), MODEL_SHAPE, 0, 0},
    {'m', "model", "MODEL",
     "a model: a GGUF file, a Hugging Face directory, or a name; may be repeated", CLI_MODELS,
     offsetof(bench_args, models), MODEL_FILE, 0, 0},
    {0, "type", "TYPE",
     "how weights of shapes are stored: f32 (default), f16, bf16, q8_0, q4_K, ...; may be repeated",
     CLI_LIST, offsetof(bench_args, types), 0, 0, 0},
    {'T', "length", "TOKENS", "length of the prompt (default 128)", CLI_INTEGER,
     offsetof(bench_args, tokens), 0, 1, 1 << 20},
    {0, "repeats", "N", "rounds (default 9)", CLI_INTEGER, offsetof(bench_args, rounds), 0, 1,
     10000},
    CLI_THREADS_OPTION(bench_args),
    {0, "only", "LIST", "what to measure, e.g. forward,grid (default: everything)", CLI_TEXT,
     offsetof(bench_args, only), 0, 0, 0},
    {0, "keep", "DIR", "keep models with random weights there, and reuse them", CLI_PATH,
     offsetof(bench_args, keep), 0, 0, 0},
    {0, "json", NULL, "print JSON, with every sample", CLI_FLAG, offsetof(bench_args, json), 1, 0,
     0},
};

static int run_bench(const cli_call *call, qkv_error *err);

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measure speed and memory",
    .synopsis = "[--shape SHAPE]... [-m MODEL]... [--type TYPE]... [-T TOKENS] [--only LIST]",
    .description =
        "Measures every model in turn, round after round, and prints the median, the least and the "
        "most of each measurement, and whether the target ratios hold. Speed does not depend on "
        "the values of the weights, so models with random weights and real shapes are used: "
        "gpt2-124m, smollm-135m, llama-1b, or [FAMILY:]LAYERS,HEADS,KV,D,FF,V[,CTX]. They are "
        "made in a temporary directory (TMPDIR), which needs as much space as the model.\n"
        "\n"
        "Measurements:\n"
        "  load          opening the model\n"
        "  forward       all logits\n"
        "  forward-last  the last token's logits\n"
        "  trunk         the middle layer's pattern\n"
        "  grid          the same, and under {q, k, v} x {5e-1, 1e-3, 1e-10}, all heads\n"
        "  grid-warm     the same in a session that has run it before\n"
        "  sweep         the same edits in every layer, the first token's weight per head\n"
        "  sweep-output  each head of the middle layer set to zero, measured at the output\n"
        "  epsilon       one more factor for q, in a session that has run the grid\n"
        "  token         one more token of a text\n"
        "  token-4       one more token of a text and of three variants\n"
        "  start         the grid, from the start of a process to a written file\n"
        "  memory        the largest resident memory of that process\n"
        "\n"
        "  qkv bench --shape gpt2-124m --shape smollm-135m\n"
        "  qkv bench --shape llama-1b --type q8_0 --type q4_K --only forward,grid\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_bench,
};

/* ---- what is asked for ---- */

static int fail_only(const char *word, size_t length, qkv_error *err) {
    qkv_text names = {0};
    for (int i = 0; i < BENCH_COUNT; i++) {
        qkv_text_printf(&names, "%s%s", i ? ", " : "", bench_names[i]);
    }
    const int status = cli_usage(err, "--only knows no '%.*s'; there are %s", (int)length, word,
                                 names.data ? names.data : "");
    qkv_text_release(&names);
    return status;
}

static int read_only(bench_setting *setting, const char *list, qkv_error *err) {
    for (int i = 0; i < BENCH_COUNT; i++) setting->wanted[i] = !list;
    for (const char *at = list; at;) {
        const size_t n = strcspn(at, ",");
        int id = 0;
        while (id < BENCH_COUNT &&
               (strlen(bench_names[id]) != n || memcmp(bench_names[id], at, n) != 0)) {
            id++;
        }
        if (id == BENCH_COUNT) return fail_only(at, n, err);
        setting->wanted[id] = 1;
        at = at[n] ? at + n + 1 : NULL;
    }
    return QKV_OK;
}

/* Everything a run holds on to. */
typedef struct bench_state {
    bench_setting setting;
    char *scratch;
    const char *directory; /* where models with random weights are: --keep, or scratch */
    bench_case *cases;
    size_t n_cases;
} bench_state;

/* ---- models ---- */

static int exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

/* A file that is there is complete: it took its name only then. */
static int open_shape(bench_state *b, const char *shape, const char *type, qkv_error *err) {
    qkv_text name = {0}, path = {0};
    qkv_text_printf(&name, "%s %s", shape, type);
    qkv_text_printf(&path, "%s/%s-%s.gguf", b->directory, shape, type);
    int status = bench_check_stopped(err);
    if (name.failed || path.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK && !exists(path.data)) {
        if (b->directory == b->scratch) (void)qkv_temporary_note(path.data);
        status = qkv_synthetic_write(path.data, shape, type, 1, err);
        if (status == QKV_OK) cli_notice("wrote %s", path.data);
    }
    if (status == QKV_OK) {
        bench_case *c = &b->cases[b->n_cases++];
        status = bench_case_open(c, &b->setting, name.data, path.data, err);
    }
    qkv_text_release(&path);
    qkv_text_release(&name);
    return status;
}

static int open_model(bench_state *b, const char *given, qkv_error *err) {
    qkv_model_place *place = NULL;
    int status = cli_model_find(&place, given, err);
    if (status == QKV_OK) {
        bench_case *c = &b->cases[b->n_cases++];
        status = bench_case_open(c, &b->setting, given, qkv_model_place_get_info(place)->path, err);
    }
    qkv_model_place_free(place);
    return status;
}

static int open_item(bench_state *b, const cli_item *item, const cli_list *types, qkv_error *err) {
    if (item->tag == MODEL_FILE) return open_model(b, item->value, err);
    if (types->n == 0) return open_shape(b, item->value, "f32", err);
    int status = QKV_OK;
    for (size_t i = 0; i < types->n && status == QKV_OK; i++) {
        status = open_shape(b, item->value, types->items[i].value, err);
    }
    return status;
}

static int open_models(bench_state *b, const bench_args *args, qkv_error *err) {
    static const cli_item standard = {"gpt2-124m", MODEL_SHAPE};
    const cli_item *items = args->models.n ? args->models.items : &standard;
    const size_t n = args->models.n ? args->models.n : 1;
    b->cases = qkv_calloc(n * (args->types.n + 1), sizeof *b->cases);
    if (!b->cases) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = open_item(b, &items[i], &args->types, err);
    }
    return status;
}

static int make_directories(bench_state *b, const bench_args *args, qkv_error *err) {
    const int status = bench_scratch_make(&b->scratch, err);
    if (status != QKV_OK) return status;
    b->setting.scratch = b->scratch;
    b->directory = args->keep ? args->keep : b->scratch;
    if (args->keep && mkdir(args->keep, 0777) != 0 && errno != EEXIST)
        return qkv_fail(err, QKV_ERR_IO, "cannot make the directory %s: %s", args->keep,
                        strerror(errno));
    return QKV_OK;
}

/* ---- measuring ---- */

typedef int (*case_step)(bench_case *c, qkv_error *err);

static int each_case(bench_state *b, case_step step, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < b->n_cases && status == QKV_OK; i++) status = step(&b->cases[i], err);
    return status;
}

static int measure(bench_state *b, qkv_error *err) {
    int status = each_case(b, bench_memory, err);
    if (status == QKV_OK) status = each_case(b, bench_warm_up, err);
    for (size_t i = 0; i < b->setting.n_rounds && status == QKV_OK; i++) {
        status = each_case(b, bench_round, err);
    }
    return status;
}

static int run_bench(const cli_call *call, qkv_error *err) {
    const bench_args *args = call->args;
    bench_state b = {.setting = {.n_tokens = (size_t)args->tokens,
                                 .n_rounds = (size_t)args->rounds,
                                 .n_threads = (int32_t)args->threads}};
    int status = read_only(&b.setting, args->only, err);
    if (status == QKV_OK) status = make_directories(&b, args, err);
    if (status == QKV_OK) status = open_models(&b, args, err);
    if (status == QKV_OK) status = measure(&b, err);
    if (status == QKV_OK && args->json) {
        status = bench_print_json(b.cases, b.n_cases, err);
    } else if (status == QKV_OK) {
        bench_print_table(b.cases, b.n_cases);
    }

    for (size_t i = 0; i < b.n_cases; i++) bench_case_release(&b.cases[i]);
    free(b.cases);
    bench_scratch_remove(b.scratch);
    return status;
}
