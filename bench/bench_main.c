/* qkv-bench: how long things take, on models with random weights or on given ones. */
#define _GNU_SOURCE /* getopt_long */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/temporary.h"
#include "base/text.h"
#include "bench.h"
#include "cli/cli.h"
#include "model/synthetic.h"
#include "qkv/hub.h"

static const char usage[] =
    "Usage: qkv-bench [--shape SHAPE]... [-m MODEL]... [--type TYPE]... [OPTION]...\n"
    "\n"
    "Measures every model in turn, round after round, and prints the median, the\n"
    "least and the most of each measurement, and whether the target ratios hold.\n"
    "Models with random weights are made in a temporary directory (TMPDIR), which\n"
    "needs as much space as the model.\n"
    "\n"
    "  --shape SHAPE       a model with random weights: gpt2-124m (default),\n"
    "                      smollm-135m, llama-1b, or\n"
    "                      [FAMILY:]LAYERS,HEADS,KV,D,FF,V[,CTX]; may be repeated\n"
    "  -m, --model MODEL   a model: a GGUF file, a Hugging Face directory, or a name;\n"
    "                      may be repeated\n"
    "  --type TYPE         how weights of shapes are stored: f32 (default), f16, bf16,\n"
    "                      q8_0, q4_K, ...; may be repeated\n"
    "  -T, --length N      length of the prompt in tokens (default 128)\n"
    "  -t, --threads N     threads to compute with (default 0: all cores)\n"
    "  --repeats N         rounds (default 9)\n"
    "  --only LIST         what to measure, e.g. forward,grid (default: everything)\n"
    "  --keep DIR          keep models with random weights there, and reuse them\n"
    "  --json              print JSON, with every sample\n"
    "  -h, --help          show this help\n"
    "\n"
    "Measurements:\n";

typedef struct model_word {
    const char *word;
    int is_shape;
} model_word;

typedef struct bench_args {
    model_word *models; /* in the order given */
    const char **types;
    size_t n_models, n_types;
    int64_t tokens, rounds, threads;
    const char *only, *keep;
    int json, help;
} bench_args;

/* Everything a run holds on to. */
typedef struct bench_state {
    bench_args args;
    bench_setting setting;
    char program[4096];
    char *scratch;
    const char *directory; /* where models with random weights are: --keep, or scratch */
    bench_case *cases;
    size_t n_cases;
} bench_state;

/* ---- what is asked for ---- */

static int read_number(int64_t *out, const char *name, const char *word, int64_t min, int64_t max,
                       qkv_error *err) {
    if (qkv_parse_int(word, strlen(word), out) && *out >= min && *out <= max) return QKV_OK;
    return cli_usage(err, "%s wants a whole number from %lld to %lld, not '%s'", name,
                     (long long)min, (long long)max, word);
}

static int read_option(bench_args *args, int option, qkv_error *err) {
    switch (option) {
    case 's':
    case 'm':
        args->models[args->n_models++] = (model_word){optarg, option == 's'};
        break;
    case 'y':
        args->types[args->n_types++] = optarg;
        break;
    case 'T':
        return read_number(&args->tokens, "--length", optarg, 1, 1 << 20, err);
    case 't':
        return read_number(&args->threads, "--threads", optarg, 0, 1024, err);
    case 'r':
        return read_number(&args->rounds, "--repeats", optarg, 1, 10000, err);
    case 'o':
        args->only = optarg;
        break;
    case 'k':
        args->keep = optarg;
        break;
    case 'j':
        args->json = 1;
        break;
    case 'h':
        args->help = 1;
        break;
    default:
        return cli_usage(err, "see 'qkv-bench --help'");
    }
    return QKV_OK;
}

static int read_args(bench_args *args, int argc, char **argv, qkv_error *err) {
    static const struct option options[] = {{"shape", required_argument, NULL, 's'},
                                            {"model", required_argument, NULL, 'm'},
                                            {"type", required_argument, NULL, 'y'},
                                            {"length", required_argument, NULL, 'T'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"repeats", required_argument, NULL, 'r'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    *args = (bench_args){.tokens = 128, .rounds = 9};
    args->models = qkv_calloc((size_t)argc, sizeof *args->models);
    args->types = qkv_calloc((size_t)argc, sizeof *args->types);
    if (!args->models || !args->types) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (int option;
         status == QKV_OK && (option = getopt_long(argc, argv, "m:T:t:h", options, NULL)) != -1;) {
        status = read_option(args, option, err);
    }
    if (status == QKV_OK && optind < argc)
        return cli_usage(err, "unexpected argument '%s'", argv[optind]);
    return status;
}

static int fail_only(const char *word, size_t length, qkv_error *err) {
    qkv_text names = {0};
    for (int i = 0; i < BENCH_COUNT; i++)
        qkv_text_printf(&names, "%s%s", i ? ", " : "", bench_names[i]);
    const int status = names.failed ? qkv_fail_memory(err)
                                    : cli_usage(err, "--only does not know '%.*s'; there are %s",
                                                (int)length, word, names.data);
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
    int status = name.failed || path.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK && !exists(path.data)) {
        if (b->directory == b->scratch) (void)qkv_temporary_note(path.data);
        status = qkv_synthetic_write(path.data, shape, type, 1, err);
        if (status == QKV_OK) fprintf(stderr, "wrote %s\n", path.data);
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
    int status = qkv_model_find(&place, given, err);
    if (status == QKV_OK) {
        bench_case *c = &b->cases[b->n_cases++];
        status = bench_case_open(c, &b->setting, given, qkv_model_place_get_info(place)->path, err);
    }
    qkv_model_place_free(place);
    return status;
}

static int open_word(bench_state *b, const model_word *model, qkv_error *err) {
    const bench_args *args = &b->args;
    if (!model->is_shape) return open_model(b, model->word, err);
    if (args->n_types == 0) return open_shape(b, model->word, "f32", err);
    int status = QKV_OK;
    for (size_t i = 0; i < args->n_types && status == QKV_OK; i++)
        status = open_shape(b, model->word, args->types[i], err);
    return status;
}

static int open_models(bench_state *b, qkv_error *err) {
    static const model_word standard = {"gpt2-124m", 1};
    const model_word *models = b->args.n_models ? b->args.models : &standard;
    const size_t n = b->args.n_models ? b->args.n_models : 1;
    b->cases = qkv_calloc(n * (b->args.n_types + 1), sizeof *b->cases);
    if (!b->cases) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) status = open_word(b, &models[i], err);
    return status;
}

static int make_directories(bench_state *b, qkv_error *err) {
    const char *keep = b->args.keep;
    const int status = bench_scratch_make(&b->scratch, err);
    if (status != QKV_OK) return status;
    b->setting.scratch = b->scratch;
    b->directory = keep ? keep : b->scratch;
    if (keep && mkdir(keep, 0777) != 0 && errno != EEXIST)
        return qkv_fail(err, QKV_ERR_IO, "cannot make the directory %s: %s", keep, strerror(errno));
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

/* ---- the program ---- */

static void print_help(void) {
    fputs(usage, stdout);
    for (int i = 0; i < BENCH_COUNT; i++) printf("  %-18s  %s\n", bench_names[i], bench_whats[i]);
}

/* qkv lies beside this program. */
static int find_program(bench_state *b, qkv_error *err) {
    static const char name[] = "qkv";
    const ssize_t n = readlink("/proc/self/exe", b->program, sizeof b->program - sizeof name);
    b->program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(b->program, '/');
    memcpy(slash ? slash + 1 : b->program, name, sizeof name);
    b->setting.program = b->program;
    if (access(b->program, X_OK) == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "cannot find the program %s: run make first", b->program);
}

static int run_bench(bench_state *b, qkv_error *err) {
    const bench_args *args = &b->args;
    b->setting.n_tokens = (size_t)args->tokens;
    b->setting.n_rounds = (size_t)args->rounds;
    b->setting.n_threads = (int32_t)args->threads;
    int status = read_only(&b->setting, args->only, err);
    if (status == QKV_OK) status = find_program(b, err);
    if (status == QKV_OK) status = make_directories(b, err);
    if (status == QKV_OK) status = open_models(b, err);
    if (status == QKV_OK) status = measure(b, err);
    if (status == QKV_OK && args->json) return bench_print_json(b->cases, b->n_cases, err);
    if (status == QKV_OK) bench_print_table(b->cases, b->n_cases);
    return status;
}

static void release(bench_state *b) {
    for (size_t i = 0; i < b->n_cases; i++) bench_case_release(&b->cases[i]);
    free(b->cases);
    bench_scratch_remove(b->scratch);
    free(b->args.models);
    free(b->args.types);
}

int main(int argc, char **argv) {
    bench_state b = {0};
    qkv_error err = {0};
    cli_set_wait_policy(argv); /* as qkv does */
    cli_catch_signals();
    int status = read_args(&b.args, argc, argv, &err);
    if (status == QKV_OK && b.args.help) {
        print_help();
    } else if (status == QKV_OK) {
        status = run_bench(&b, &err);
    }
    release(&b);
    if (status == QKV_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = qkv_fail(&err, QKV_ERR_IO, "cannot write standard output");
    if (status != QKV_OK) fprintf(stderr, "qkv-bench: %s\n", err.message);
    return status == QKV_OK ? EXIT_SUCCESS : status == CLI_USAGE ? 2 : EXIT_FAILURE;
}
