/*
 * qkv patch: what of one prompt, put into a run of another, brings its answer back.
 *
 * With results (-o x.sqlite) it is a sweep, which processes share, and which goes on after it was
 * stopped; the study then reads them. Without, the study computes in this process.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/messages.h"
#include "cli/mpi_transport.h"
#include "cli/patch.h"
#include "cli/study.h"
#include "cli/sweep.h"
#include "qkv/sweep_blocks.h"

typedef struct patch_args {
    cli_study study;
    const char *model;
    const char *clean, *corrupt, *pairs;
    int parse_special;
    cli_list sites, metrics;
    const char *by, *align, *positions, *layers, *heads, *shard;
    int direction;
    int64_t top;
    int explain;
} patch_args;

static const patch_args defaults = {.study = CLI_STUDY_DEFAULTS, .direction = CLI_AUTO};

#define DIRECTIONS "denoise|noise|both"
#define AT(field) offsetof(patch_args, field)

static const cli_option options[] = {
    CLI_MODEL_OPTION(patch_args),
    {0, "clean", "TEXT", "the prompt that gives the answer", CLI_TEXT, AT(clean), 0, 0, 0},
    {0, "corrupt", "TEXT", "the prompt that does not", CLI_TEXT, AT(corrupt), 0, 0, 0},
    {0, "pairs", "FILE",
     "several pairs instead, whose means are taken: .csv, .tsv or .jsonl with clean, corrupt and, "
     "where wanted, answer and wrong",
     CLI_PATH, AT(pairs), 0, 0, 0},
    {0, "parse-special", NULL, "names of special tokens in prompts become those tokens", CLI_FLAG,
     AT(parse_special), 1, 0, 0},
    {0, "site", "SITES",
     "what is patched: resid_pre, attn_out, mlp_out, resid_post, z, q, k, v, q_in, k_in, v_in "
     "(default resid_pre,z); may be repeated",
     CLI_LIST, AT(sites), 0, 0, 0},
    {0, "by", "position|head",
     "sites with heads: one position at all heads, one head at all positions (default), or "
     "position,head for both",
     CLI_TEXT, AT(by), 0, 0, 0},
    {0, "metric", "METRIC",
     "logit_diff:A/B, logit:A, prob:A or kl, of the tokens with these texts; may be repeated",
     CLI_LIST, AT(metrics), 0, 0, 0},
    {0, "direction", DIRECTIONS,
     "run the corrupt prompt and patch in the clean one (default), the other way round, or both",
     CLI_CHOICE, AT(direction), 0, 0, 0},
    {0, "align", "prefix|suffix|MAP",
     "prompts of different length: which positions stand for one another, counted from the "
     "beginning, from the end, or as a map clean=corrupt, e.g. 0-3=0-3,5=6",
     CLI_TEXT, AT(align), 0, 0, 0},
    {0, "positions", "LIST", "positions of the clean prompt, e.g. 2-5,9 (default: all)", CLI_TEXT,
     AT(positions), 0, 0, 0},
    {0, "layers", "LAYERS", "layers, e.g. 3 or 0-5,7 (default: all)", CLI_TEXT, AT(layers), 0, 0,
     0},
    {0, "heads", "HEADS", "query heads, in the same notation", CLI_TEXT, AT(heads), 0, 0, 0},
    {0, "top", "N", "how many of the largest effects are printed (default 10)", CLI_INTEGER,
     AT(top), 0, 1, 1000000},
    {0, "shard", "I/N", "compute only part I of N, into results of its own", CLI_TEXT, AT(shard), 0,
     0, 0},
    {0, "explain", NULL, "check everything, print the estimate, and compute nothing", CLI_FLAG,
     AT(explain), 1, 0, 0},
    CLI_STUDY_OPTIONS(patch_args),
};

static int run_patch(const cli_call *call, qkv_error *err);

const cli_command cli_command_patch = {
    .name = "patch",
    .summary = "which layers, positions and heads carry an answer from one prompt to another",
    .synopsis = "[-m MODEL] (--clean TEXT --corrupt TEXT | --pairs FILE) --metric METRIC... "
                "[--site SITES]... [--by position|head] [--direction " DIRECTIONS "] "
                "[--align prefix|suffix|MAP] [--json] [-o OUT]... [--shard I/N]",
    .description =
        "Activation patching. Runs one prompt with a piece of the other put in, for every layer and "
        "every position or head, and reads a metric from the logits behind the last token. Every "
        "value is put on the scale on which the corrupt prompt is 0 and the clean one 1: recovery = "
        "(m - m_corrupt) / (m_clean - m_corrupt). Denoising runs the corrupt prompt with a piece of "
        "the clean one: a high recovery means that the piece is enough. Noising runs the clean one "
        "with a piece of the corrupt one: a low recovery means that the piece was needed.\n"
        "\n"
        "Each text of a metric must be one token. Blanks before a word belong to it: ' river' and "
        "'river' are different tokens. '\\/' is a slash, and @N at the end looks behind token N of "
        "the prompt (negative: from the end) instead of the last. kl is the KL from the clean "
        "prompt's distribution, in nats.\n"
        "\n"
        "OUT.sqlite holds the results as they are computed: after any interruption the same command "
        "goes on, -t processes share the work, and so do those of mpirun; --shard computes a part, "
        "and 'qkv sweep merge' joins parts. OUT.csv has every cell. The picture 'positions' has "
        "layers and tokens, 'heads' layers and heads.\n"
        "\n"
        "  qkv patch --clean 'The river runs past the city, and people swim in the' \\\n"
        "      --corrupt 'The church runs past the city, and people swim in the' \\\n"
        "      --metric 'logit_diff: river/ church' -o patch.png -o patch.sqlite\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_patch,
};

/* ---- options ---- */

static int check_args(const patch_args *args, qkv_error *err) {
    if (args->pairs && (args->clean || args->corrupt))
        return cli_usage(err, "give --pairs, or --clean and --corrupt, not both");
    if (!args->pairs && !(args->clean && args->corrupt))
        return cli_usage(err, "give two prompts with --clean and --corrupt, or many with --pairs");
    if (args->metrics.n == 0)
        return cli_usage(err, "give a metric, e.g. --metric 'logit_diff: river/ church'");
    if (args->explain && args->study.outputs.n)
        return cli_usage(err, "--explain computes nothing: leave out -o");
    return QKV_OK;
}

/* A list as one text. */
static char *joined(const cli_list *list, const char *between) {
    qkv_text text = {0};
    for (size_t i = 0; i < list->n; i++)
        qkv_text_printf(&text, "%s%s", i ? between : "", list->items[i].value);
    if (text.failed) qkv_text_release(&text);
    return text.data;
}

/* The options of the study. */
static json_t *study_options(const patch_args *args, const patch_pairs *pairs) {
    cli_study_job job = {.options = json_object()};
    char *sites = joined(&args->sites, ","), *metrics = joined(&args->metrics, "\n");
    char *answers = pairs->answers ? json_dumps(pairs->answers, JSON_COMPACT) : NULL;
    cli_study_set_text(&job, "site", sites);
    cli_study_set_text(&job, "metric", metrics);
    cli_study_set_text(&job, "answers", answers);
    cli_study_set_text(&job, "by", args->by);
    cli_study_set_text(&job, "align", args->align);
    cli_study_set_text(&job, "positions", args->positions);
    cli_study_set_text(&job, "layers", args->layers);
    cli_study_set_text(&job, "heads", args->heads);
    cli_study_set_number(&job, "top", (double)args->top);
    if (args->direction != CLI_AUTO)
        cli_study_set_word(&job, "direction", DIRECTIONS, args->direction);
    free(sites);
    free(metrics);
    free(answers);
    return job.options;
}

/* ---- the sweep ---- */

/* What the study would make of the same options and prompts. */
static json_t *sweep_of(const patch_args *args, const patch_pairs *pairs, const json_t *study) {
    static const char *const same[] = {"by", "align", "positions", "layers", "heads", "direction"};
    json_t *list = json_array(), *metrics = json_array(), *spec = json_object();
    for (size_t i = 0; i + 1 < pairs->prompts.n; i += 2) {
        json_t *pair = json_pack("{s:s, s:s}", "clean", pairs->prompts.items[i].value, "corrupt",
                                 pairs->prompts.items[i + 1].value);
        static const char *const keys[] = {"answer", "wrong"};
        for (size_t k = 0; k < 2; k++) {
            json_t *text = json_array_get(json_array_get(pairs->answers, i / 2), k);
            if (json_is_string(text)) json_object_set(pair, keys[k], text);
        }
        json_array_append_new(list, pair);
    }
    for (size_t i = 0; i < args->metrics.n; i++)
        json_array_append_new(metrics, json_string(args->metrics.items[i].value));
    json_object_set_new(spec, "pairs", list);
    json_object_set_new(spec, "metrics", metrics);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        json_t *value = json_object_get(study, same[i]);
        if (value) json_object_set(spec, same[i], value);
    }
    json_t *site = json_object_get(study, "site");
    if (site) json_object_set(spec, "targets", site);
    if (args->parse_special) json_object_set_new(spec, "parse_special", json_true());
    return spec;
}

/* Takes the results' name out of the outputs, which the study writes. */
static int take_results(cli_study *how, const char **results, qkv_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < how->outputs.n; i++) {
        const char *path = how->outputs.items[i].value;
        const int is_one = !cli_is_stdout(path) && strcmp(qkv_path_suffix(path), "sqlite") == 0;
        if (is_one && *results) return cli_usage(err, "there is one file of results: %s", *results);
        if (is_one)
            *results = path;
        else
            how->outputs.items[n++] = how->outputs.items[i];
    }
    how->outputs.n = n;
    return QKV_OK;
}

/* Prompts that give the same are told before there is a file: the first block holds their values. */
static int check_prompts(const sweep_work *work, qkv_error *err) {
    const qkv_session_options how = cli_session_options(1, work->job->memory);
    qkv_session *session = NULL;
    double *values = qkv_calloc(2 * qkv_sweep_n_metrics(work->sweep), sizeof *values);
    int status = values ? cli_session_new(&session, work->model, &how, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_sweep_compute(work->sweep, session, 0, values, err);
    cli_session_free(session);
    free(values);
    return status;
}

static int run_sweep(const sweep_job *job, json_t *spec, int *leads, qkv_error *err) {
    sweep_work work = {0};
    int status = sweep_work_begin(&work, job, spec, err);
    if (status == QKV_OK && job->output && access(job->output, F_OK) != 0)
        status = check_prompts(&work, err);
    if (status == QKV_OK) status = sweep_work_run(&work, err);
    *leads = sweep_work_leads(&work);
    sweep_work_release(&work);
    return status;
}

/* ---- all of it ---- */

static int check_results(const patch_args *args, const char *results, const sweep_job *job,
                         qkv_error *err) {
    if (job->n_shards && (!results || args->study.outputs.n > 1))
        return cli_usage(err, "a part is not drawn: give --shard one file of results, -o "
                              "PART.sqlite, and draw when they are merged");
    if (!results && cli_mpi_is_wanted() && !args->explain)
        return cli_usage(err, "under mpirun give a file of results, -o RESULTS.sqlite");
    return QKV_OK;
}

static int run_both(const cli_call *call, const patch_args *args, cli_study *how,
                    const patch_pairs *pairs, qkv_error *err) {
    const char *results = NULL;
    int leads = 1;
    cli_study_job job = {.kind = "patch",
                         .how = how,
                         .model = args->model,
                         .prompts = &pairs->prompts,
                         .parse_special = args->parse_special,
                         .shows_progress = 1,
                         .options = study_options(args, pairs)};
    int status = job.options ? take_results(how, &results, err) : qkv_fail_memory(err);
    sweep_job sweep = {.name = "patch",
                       .model = args->model,
                       .output = results,
                       .threads = how->threads,
                       .memory = how->memory,
                       .explain = args->explain};
    if (status == QKV_OK)
        status = sweep_shard_read(args->shard, &sweep.shard, &sweep.n_shards, err);
    if (status == QKV_OK) status = check_results(args, results, &sweep, err);
    if (status == QKV_OK && (results || args->explain)) {
        json_t *spec = sweep_of(args, pairs, job.options);
        status = run_sweep(&sweep, spec, &leads, err);
        json_decref(spec);
    }
    job.results = results;
    if (status == QKV_OK && leads && !args->explain && !sweep.n_shards)
        return cli_study_run(call, &job, err);
    json_decref(job.options);
    return status;
}

static int run_patch(const cli_call *call, qkv_error *err) {
    const patch_args *args = call->args;
    patch_pairs pairs = {0};
    cli_study how = args->study;
    int status = check_args(args, err);
    if (status == QKV_OK) status = cli_study_check(&how, err);
    how.outputs.items = qkv_calloc(args->study.outputs.n, sizeof *how.outputs.items);
    if (status == QKV_OK && !how.outputs.items) status = qkv_fail_memory(err);
    if (status == QKV_OK && how.outputs.n)
        memcpy(how.outputs.items, args->study.outputs.items,
               how.outputs.n * sizeof *how.outputs.items);
    if (status == QKV_OK)
        status = args->pairs ? patch_pairs_read(&pairs, args->pairs, err)
                             : patch_pairs_add(&pairs, args->clean, args->corrupt, err);
    if (status == QKV_OK) status = run_both(call, args, &how, &pairs, err);
    patch_pairs_release(&pairs);
    free(how.outputs.items);
    return status;
}
