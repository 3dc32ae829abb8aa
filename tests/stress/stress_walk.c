/*
 * A random walk over models, prompts, sites, operations, selectors, captures, reductions, batches, threads,
 * sessions and texts: what the library gives is what the scalar reference gives; what no edit reaches keeps
 * its bits; a variant is in a batch what it is alone.
 *
 *     stress_walk SECONDS [SEED [STEP]]
 *
 * A step follows from the seed and its number alone. With STEP, just that one is run, in this process, and
 * told in full. Otherwise steps run in a process of their own, so that one which crashes is told too. Prints
 * one line, and some for every step that fails, up to ten; fails then, and when nothing was compared.
 */
#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "qkv/generate.h"
#include "reference/ref_cases.h"
#include "reference/ref_other.h"
#include "run/run.h"
#include "support/expectations.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "walk_judge.h"

enum { MOST_MODELS = 256, SHOWN = 10, MOST_SHAKY = 2 };

/* What the families do not have: windows, long prompts, one layer, other types. */
static const tiny_options tiny[] = {
    {"llama", .n_kv_head = 2, .window = 4},
    {"llama", .n_kv_head = 1, .window = 3, .untied = 1},
    {"llama", .n_kv_head = 2, .head_dim = 12, .qkv_bias = 1},
    {"phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG, .rope_context = 8},
    {"llama", .n_layer = 1, .n_head = 2, .n_kv_head = 1, .n_ctx = 9},
    {"llama", .n_kv_head = 2, .type = GGML_TYPE_Q8_0, .n_ctx = 12},
    {"llama", .n_kv_head = 2, .n_ctx = WALK_TOKENS},
    {"llama", .window = 40, .n_ctx = WALK_TOKENS},
    {"gpt2", .n_ctx = WALK_TOKENS},
};

static walk_model models[MOST_MODELS];
static size_t n_models;

/* What the process that walks tells the one that waits. */
typedef struct report {
    uint64_t step;
    long steps, variants, refused, tensors, shaky, texts;
} report;

/* ---- models ---- */

static void add_model(const char *path) {
    if (n_models == MOST_MODELS) abort(); /* a list that has grown */
    snprintf(models[n_models++].path, sizeof models->path, "%s", path);
}

/* Files only: a process that is forked must find no threads. */
static void list_models(void) {
    char path[512];
#define ADD_FAMILY(name, flags)                                                                    \
    if ((flags)&HAS_GGUF) add_model(vector_model(#name));
    VECTOR_LIST(ADD_FAMILY)
#undef ADD_FAMILY
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        snprintf(path, sizeof path, "walk%zu.gguf", i);
        add_model(tiny_model(&tiny[i], path));
    }
}

static walk_model *open_model(size_t index) {
    walk_model *w = &models[index];
    qkv_error err = {0};
    if (w->ref) return w;
    expect_ok(qkv_model_open(&w->eng.model, w->path, &err), &err, w->path);
    w->eng.info = qkv_model_get_info(w->eng.model);
    w->ref = ref_model_load(w->path);
    return w;
}

static void close_models(void) {
    for (size_t i = 0; i < n_models; i++) {
        qkv_model_free(models[i].eng.model);
        if (models[i].ref) ref_model_free(models[i].ref);
    }
}

/* ---- plans ---- */

static qkv_session *open_session(const walk_case *c, const qkv_session_options *options) {
    qkv_error err = {0};
    qkv_session *session = NULL;
    expect_ok(qkv_session_new(&session, c->model->eng.model, options, &err), &err, "session");
    return session;
}

static qkv_plan *plan_of(const walk_case *c, const char *const *variants) {
    const engine_run run = {c->tokens, (size_t)c->T, variants, c->captured, c->other};
    return engine_plan(&c->model->eng, &run);
}

static qkv_result *run_plan(qkv_session *session, const qkv_plan *plan) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    if (qkv_session_run(session, &result, plan, &err) != QKV_OK) walk_fail("run: %s", err.message);
    return result;
}

/* Runs what the session is to have run before. */
static void make_history(const walk_case *c, qkv_session *session) {
    const engine_run prepare = {c->tokens, (size_t)c->T, NULL, NULL, NULL};
    const engine_run other = {c->other, (size_t)c->T, NULL, c->captured, NULL};
    qkv_plan *plan = NULL;
    qkv_error err = {0};
    if (c->history == WALK_NEW) return;
    if (c->history == WALK_PREPARED) {
        plan = engine_plan(&c->model->eng, &prepare);
        expect_ok(qkv_plan_add_capture(plan, "resid_pre@0", &err), &err, "capture");
        (void)qkv_plan_prepare(plan, c->prepared, &err); /* which some captures cannot be */
    }
    if (c->history == WALK_REPEATED) plan = plan_of(c, c->texts);
    if (c->history == WALK_OTHER) plan = engine_plan(&c->model->eng, &other);
    qkv_result_free(run_plan(session, plan));
    qkv_plan_free(plan);
}

/* What it is said to take is what it takes. */
static void check_estimate(const qkv_run_stats *estimate, const qkv_result *result) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    qkv_result_get_stats(result, &stats);
    if (stats.n_passes != estimate->n_passes || stats.n_matmul != estimate->n_matmul ||
        stats.n_attention != estimate->n_attention)
        walk_fail("%" PRIu64 " passes and %" PRIu64 " products were announced, %" PRIu64
                  " and %" PRIu64 " computed",
                  estimate->n_passes, estimate->n_matmul, stats.n_passes, stats.n_matmul);
}

static void check_plan(walk_truth *truth, dice *d) {
    const walk_case *c = truth->of;
    const qkv_session_options simple = {.size = sizeof simple, .n_threads = 1};
    qkv_run_stats estimate = QKV_RUN_STATS_INIT;
    qkv_error err = {0};
    qkv_session *session = open_session(c, &c->session);
    make_history(c, session);
    qkv_plan *plan = plan_of(c, c->texts);
    expect_ok(qkv_session_estimate(session, &estimate, plan, &err), &err, "estimate");
    qkv_result *result = run_plan(session, plan);
    check_estimate(&estimate, result);
    walk_judge_result(truth, plan, result);
    qkv_session_free(session);
    /* One of them alone, or the baseline. */
    const size_t v = (size_t)dice_below(d, c->n_variants + 1);
    const char *const only[] = {v ? c->texts[v - 1] : NULL, NULL};
    qkv_plan *small = plan_of(c, only);
    session = open_session(c, &simple);
    qkv_result *alone = run_plan(session, small);
    walk_judge_same(c, result, v, alone, v > 0, "what it is alone");
    walk_judge_same(c, result, 0, alone, 0, "what it is with other variants");
    qkv_result_free(alone);
    qkv_result_free(result);
    qkv_plan_free(small);
    qkv_plan_free(plan);
    qkv_session_free(session);
}

/* ---- rows that are shown ---- */

typedef struct watched {
    const walk_case *of;
    float *maps; /* variant x layer x head */
    uint8_t *came;
} watched;

static size_t map_index(const walk_case *c, size_t variant, int layer, int head) {
    const ref_model *m = c->model->ref;
    return (variant * (size_t)m->n_layer + (size_t)layer) * (size_t)m->H + (size_t)head;
}

static void take_rows(void *user, const qkv_rows *rows) {
    watched *w = user;
    const size_t T = (size_t)w->of->T,
                 at = map_index(w->of, rows->variant, rows->layer, rows->head);
    for (int64_t r = 0; r < rows->n_rows; r++)
        memcpy(w->maps + (at * T + (size_t)(rows->first_row + r)) * T,
               rows->data + r * rows->n_keys, (size_t)rows->n_keys * sizeof *w->maps);
    w->came[at] = 1;
}

static void check_rows(walk_truth *truth, dice *d) {
    const walk_case *c = truth->of;
    const ref_model *m = c->model->ref;
    const size_t n = map_index(c, c->n_variants + 1, 0, 0), T = (size_t)c->T;
    watched w = {c, calloc(n * T * T, sizeof *w.maps), calloc(n, 1)};
    const engine_run run = {c->tokens, T, c->texts, NULL, c->other};
    char what[32];
    qkv_error err = {0};
    qkv_result *result = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.user = &w;
    observer.rows = take_rows;
    observer.compare = (int)dice_below(d, 2);
    if (!w.maps || !w.came) abort();
    int layer = (int)dice_below(d, (uint64_t)m->n_layer);
    while (!ref_layer_has_site(m, QKV_SITE_PATTERN, layer)) layer = (layer + 1) % m->n_layer;
    snprintf(what, sizeof what, "pattern@%d.h%d", layer, (int)dice_below(d, (uint64_t)m->H));
    if (dice_below(d, 2)) snprintf(what, sizeof what, "pattern@*");
    qkv_session *session = open_session(c, &c->session);
    qkv_plan *plan = engine_plan(&c->model->eng, &run);
    expect_ok(qkv_plan_observe(plan, what, &err), &err, what);
    if (qkv_session_observe(session, &result, plan, &observer, &err) != QKV_OK)
        walk_fail("observing %s: %s", what, err.message);
    for (size_t v = 0; v <= c->n_variants; v++)
        for (int il = 0; il < m->n_layer; il++)
            for (int h = 0; h < m->H; h++) {
                const size_t at = map_index(c, v, il, h);
                if (w.came[at]) walk_judge_rows(truth, v, il, h, w.maps + at * T * T);
            }
    qkv_result_free(result);
    qkv_plan_free(plan);
    qkv_session_free(session);
    free(w.maps);
    free(w.came);
}

/* ---- texts ---- */

typedef struct text {
    qkv_generator_options how;
    const char *names[2];
    const int32_t *tokens[2];
    size_t lengths[2];
    int32_t *far;
    qkv_edit_data *data;
    const char *texts[WALK_VARIANTS];
    size_t numbers[WALK_VARIANTS + 1]; /* of the case's variants */
} text;

/* Which prompt is drawn depends on the prompt, here a beginning of the other. */
static int is_drawn(const walk_case *c, size_t variant) {
    for (size_t i = 0; i < c->variants[variant].n; i++)
        if (c->variants[variant].edits[i].op == REF_RESAMPLE && c->n_prompt < c->T) return 1;
    return 0;
}

/* The variants that can be had in a text. */
static void open_text(text *t, const walk_case *c) {
    int n_far = 0;
    *t = (text){.how = QKV_GENERATOR_OPTIONS_INIT, .names = {"src", "far"}};
    t->data = engine_data(&c->model->eng, c->texts, c->tokens, (size_t)c->T);
    t->far = ref_set_prompt(REF_FAR, c->tokens, c->T, c->model->ref->V, &n_far);
    t->tokens[0] = c->other;
    t->tokens[1] = t->far;
    t->lengths[0] = (size_t)c->n_prompt;
    t->lengths[1] = (size_t)n_far;
    t->how.max_new = (size_t)(c->T - c->n_prompt);
    t->how.source_names = t->names;
    t->how.source_tokens = t->tokens;
    t->how.source_lengths = t->lengths;
    t->how.n_sources = n_far <= c->model->eng.info->n_ctx ? 2 : 1;
    t->how.data = t->data;
    t->how.recompute = c->recompute;
    size_t n = 0;
    for (size_t v = 0; v < c->n_variants; v++) {
        qkv_generator *gen = NULL;
        t->how.variants = &c->texts[v];
        t->how.n_variants = 1;
        if (!is_drawn(c, v) && qkv_generator_new(&gen, c->model->eng.model, c->tokens,
                                                 (size_t)c->n_prompt, &t->how, NULL) == QKV_OK) {
            t->texts[n++] = c->texts[v];
            t->numbers[n] = v + 1;
        }
        qkv_generator_free(gen);
    }
    t->how.variants = t->texts;
    t->how.n_variants = n;
}

/* Is the text so far as the beginning of the whole? What is computed anew looks at the tokens so far, and
 * models with angles for long prompts turn by others. */
static int is_beginning(const walk_case *c, int n) {
    const ref_rope *rope = &c->model->ref->rope;
    if (n == c->T) return 1;
    return !c->recompute && !(rope->long_divisor && n <= rope->context && c->T > rope->context);
}

static void check_text(walk_truth *truth, dice *d) {
    const walk_case *c = truth->of;
    int32_t next[WALK_VARIANTS + 1];
    int ended[WALK_VARIANTS + 1] = {0};
    qkv_error err = {0};
    qkv_generator *gen = NULL;
    text t;
    open_text(&t, c);
    qkv_session *session = open_session(c, &c->session);
    expect_ok(
        qkv_generator_new(&gen, c->model->eng.model, c->tokens, (size_t)c->n_prompt, &t.how, &err),
        &err, "text");
    for (int token = c->n_prompt - 1; token < c->T; token++) {
        const int is_first = token == c->n_prompt - 1;
        size_t going = 0;
        for (size_t v = 0; v <= t.how.n_variants; v++) {
            if (!is_first && dice_below(d, 40) == 0) ended[v] = 1;
            next[v] = ended[v] ? QKV_NO_NEXT : c->tokens[token];
            going += !ended[v];
        }
        if (!going) break;
        if (qkv_session_feed(session, gen, is_first ? NULL : next, &err) != QKV_OK)
            walk_fail("token %d: %s", token, err.message);
        for (size_t v = 0; v <= t.how.n_variants && is_beginning(c, token + 1); v++)
            if (!ended[v])
                walk_judge_logits(truth, t.numbers[v], token, qkv_generator_logits(gen, v));
    }
    qkv_generator_free(gen);
    qkv_session_free(session);
    qkv_edit_data_free(t.data);
    free(t.far);
}

/* ---- steps ---- */

static void take_step(uint64_t seed, uint64_t step, int told, report *sum) {
    static walk_case c;
    walk_truth truth = {0};
    dice d = {qkv_random_mix(seed, step)};
    walk_draw(&c, open_model(walk_choose_model(&d, n_models)), &d);
    if (told) {
        walk_print(&c);
        fflush(stdout);
    }
    walk_truth_open(&truth, &c);
    check_plan(&truth, &d);
    if (dice_below(&d, 4) == 0) check_rows(&truth, &d);
    if (c.n_prompt) check_text(&truth, &d);
    sum->steps++;
    sum->variants += (long)c.n_variants;
    sum->refused += c.refused;
    sum->texts += c.n_prompt > 0;
    sum->tensors += truth.tensors;
    sum->shaky += truth.shaky;
    walk_truth_close(&truth);
}

_Noreturn static void walk(uint64_t seed, time_t end, report *sum) {
    do take_step(seed, ++sum->step, 0, sum);
    while (time(NULL) < end);
    close_models();
    exit(0);
}

/* Waits for a process that walks; 0 when it has failed. */
static int walk_apart(uint64_t seed, time_t end, report *sum) {
    int status = 1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) walk(seed, end, sum);
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    if (status == 0) return 1;
    printf("walk: step %" PRIu64 " of seed %" PRIu64 " fails (%s %d); again: stress_walk 0 %" PRIu64
           " %" PRIu64 "\n",
           sum->step, seed, WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), seed, sum->step);
    return 0;
}

static int walk_for(int seconds, uint64_t seed) {
    const time_t end = time(NULL) + seconds;
    report *sum =
        mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0;
    if (sum == MAP_FAILED) abort();
    printf("walk: seed %" PRIu64 "\n", seed);
    do failures += !walk_apart(seed, end, sum);
    while (failures < SHOWN && time(NULL) < end);
    const int unsure = sum->shaky * 100 > sum->tensors * MOST_SHAKY;
    printf("walk: %ld steps, %ld variants (%ld more refused), %ld texts, %ld tensors compared (%ld "
           "within rounding of another choice), %d steps wrong\n",
           sum->steps, sum->variants, sum->refused, sum->texts, sum->tensors, sum->shaky, failures);
    if (unsure) printf("walk: too few tensors have one right value\n");
    const int nothing = sum->tensors == 0;
    munmap(sum, sizeof *sum);
    return failures || unsure || nothing;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: stress_walk SECONDS [SEED [STEP]]\n");
        return 2;
    }
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10)
                                   : (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    int failed = 0;
    list_models();
    if (argc == 4) {
        report sum = {0};
        take_step(seed, strtoull(argv[3], NULL, 10), 1, &sum);
        close_models();
    } else {
        failed = walk_for(atoi(argv[1]), seed);
    }
    scratch_remove();
    return failed;
}
