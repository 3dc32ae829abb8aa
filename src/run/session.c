/* Sessions: backends, threads, and the computation of one graph. */
#define _POSIX_C_SOURCE 200809L
#include "run/session.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/text.h"
#include "ggml-cpu.h"
#include "run/openmp_threads.h"
#include "run/run.h"

/* For attention maps, batches and the trunk: small beside the weights of any real model. */
#define DEFAULT_BUDGET ((size_t)256 << 20)

typedef void (*set_threads_fn)(ggml_backend_t backend, int n_threads);

static void set_threads(ggml_backend_t backend, int n_threads) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    set_threads_fn set = NULL;
    memcpy(&set, &found, sizeof set); /* ISO C does not convert object to function pointers */
    if (set) set(backend, n_threads);
}

/* What the processor can do, as ggml lists it; ends with an entry without a name. */
static const struct ggml_backend_feature *list_features(ggml_backend_dev_t device) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(device);
    void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
    ggml_backend_get_features_t get = NULL;
    memcpy(&get, &found, sizeof get);
    return get ? get(reg) : NULL;
}

/* ggml finds its backends at the first call, and puts KMP_BLOCKTIME, a hint to another OpenMP than ours,
 * into the environment. That is the host's, and its children's. It makes its list of features at the first
 * call, too: here, before several threads can ask for it. */
static void find_backends(void) {
    const int was_set = getenv("KMP_BLOCKTIME") != NULL;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (cpu) (void)list_features(cpu);
    if (!was_set) unsetenv("KMP_BLOCKTIME");
}

/* All products are operations of our own (run/graph/product.h), which run on the CPU. */
/* "CPU AVX2 FMA": what the processor can do decides how sums are rounded. */
static int name_backend(qkv_session *session, qkv_error *err) {
    const struct ggml_backend_feature *f = list_features(ggml_backend_get_device(session->backend));
    qkv_text name = {0};
    qkv_text_puts(&name, ggml_backend_name(session->backend));
    for (; f && f->name; f++) {
        if (strcmp(f->value, "1") == 0) qkv_text_printf(&name, " %s", f->name);
    }
    const int failed = name.failed;
    if (!failed) qkv_format(session->backend_name, sizeof session->backend_name, "%s", name.data);
    qkv_text_release(&name);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int start_backend(qkv_session *session, qkv_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_backends);
    session->backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    if (!session->backend) return qkv_fail(err, QKV_ERR_BACKEND, "ggml has no CPU backend");
    return name_backend(session, err);
}

/* OpenMP's limit (OMP_THREAD_LIMIT) cannot be lifted. */
static int choose_n_threads(int32_t wanted, int *n_threads, qkv_error *err) {
    const int limit = omp_get_thread_limit();
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted < 0 || wanted > 1024)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%d threads; give 1 to 1024, or 0 for all cores",
                        wanted);
    if (wanted > limit)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%d threads, and OMP_THREAD_LIMIT allows %d", wanted,
                        limit);
    *n_threads = wanted ? wanted : cores > limit ? limit : cores > 0 ? (int)cores : 1;
    return QKV_OK;
}

int qkv_session_new(qkv_session **out, const qkv_model *model, const qkv_session_options *options,
                    qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, model);
    qkv_session_options how = QKV_SESSION_OPTIONS_INIT;
    int n_threads = 1;
    int status = qkv_sized_read(&how, sizeof how, options, "qkv_session_options", err);
    if (status == QKV_OK) status = choose_n_threads(how.n_threads, &n_threads, err);
    if (status != QKV_OK) return status;
    qkv_session *session = qkv_calloc(1, sizeof *session);
    if (!session) return qkv_fail_memory(err);
    session->model = qkv_model_retain(model);
    session->memory_budget = how.memory_budget ? how.memory_budget : DEFAULT_BUDGET;
    session->n_threads = n_threads;
    qkv_ggml_log_enter();
    status = start_backend(session, err);
    qkv_ggml_log_leave();
    if (status != QKV_OK) {
        qkv_session_free(session);
        return status;
    }
    *out = session;
    return QKV_OK;
}

void qkv_session_free(qkv_session *session) {
    if (!session) return;
    qkv_trunk_release(&session->trunk);
    qkv_set_means_release(&session->means);
    if (session->scheduler) ggml_backend_sched_free(session->scheduler);
    if (session->backend) ggml_backend_free(session->backend);
    qkv_model_free(session->model);
    free(session);
}

const char *qkv_session_backend(const qkv_session *session) {
    return session ? session->backend_name : NULL;
}

const char *qkv_session_ggml(const qkv_session *session) {
    return session ? ggml_version() : NULL;
}

size_t qkv_session_memory(const qkv_session *session) {
    return session ? session->memory_budget : 0;
}

const qkv_model *qkv_session_model(const qkv_session *session) {
    return session ? session->model : NULL;
}

int qkv_session_get_stats(const qkv_session *session, qkv_run_stats *stats) {
    if (!session || !stats) return 0;
    return qkv_sized_write(stats, &session->stats, sizeof *stats, "qkv_run_stats", NULL) == QKV_OK;
}

/* ---- watching ---- */

/* ggml asks after every operation. */
static bool is_stopped(void *steps) {
    return qkv_steps_part(steps) != 0;
}

int qkv_session_set_progress(qkv_session *session, const qkv_progress *progress, qkv_error *err) {
    if (!session) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no session to watch");
    const int status = qkv_steps_set(&session->steps, progress, err);
    if (status != QKV_OK) return status;
    ggml_backend_cpu_set_abort_callback(
        session->backend, session->steps.host.step ? is_stopped : NULL, &session->steps);
    return QKV_OK;
}

int qkv_session_report(qkv_session *session, const char *what, double done, double total,
                       qkv_error *err) {
    if (!session || !what) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is nothing to report");
    qkv_steps *steps = &session->steps;
    int stop;
    if (steps->n_levels) {
        stop = qkv_steps_inside(steps, done, total);
    } else {
        qkv_steps_begin(steps, what, total);
        stop = qkv_steps_reach(steps, done, 0);
        qkv_steps_end(steps, 0);
    }
    return stop ? qkv_fail_cancelled(err) : QKV_OK;
}

int qkv_session_begin_work(qkv_session *session, const char *what, double total, qkv_error *err) {
    if (!session || !what || !(total >= 0))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "work needs a session, a name and how much it is");
    qkv_steps_begin(&session->steps, what, total);
    return QKV_OK;
}

int qkv_session_reach(qkv_session *session, double done, double next, qkv_error *err) {
    if (!session || !session->steps.n_levels)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "no work has begun: qkv_session_begin_work");
    return qkv_steps_reach(&session->steps, done, next) ? qkv_fail_cancelled(err) : QKV_OK;
}

int qkv_session_end_work(qkv_session *session, int status) {
    if (session && session->steps.n_levels) qkv_steps_end(&session->steps, status == QKV_OK);
    return status;
}

/* ---- inputs ---- */

/* A tensor that nothing kept depends on is not in the graph and has no memory. */
static void set_input(struct ggml_tensor *tensor, const void *data) {
    if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

/* Columns of [D, T·B] whose logits are wanted, variant by variant. */
static void list_rows(const qkv_graph *g, int32_t *rows) {
    size_t n = 0, n_rows = (size_t)g->in_rows->ne[0];
    for (int64_t b = 0; b < g->n_batch; b++) {
        for (int64_t t = 0; t < g->n_tokens && n < n_rows; t++) {
            if (g->logit_rows[t]) rows[n++] = (int32_t)(b * g->n_tokens + t);
        }
    }
}

static int set_made_inputs(const qkv_graph *g, qkv_error *err) {
    size_t T = (size_t)(g->n_before + g->n_tokens), cells = 1;
    int64_t position = g->step ? g->step->position : g->n_before;
    for (int i = 0; i < QKV_MASK_COUNT; i++) {
        size_t n = (size_t)ggml_nelements(g->in_mask[i]);
        if (n > cells) cells = n;
    }
    float *mask = malloc(cells * sizeof *mask);
    int32_t *numbers = malloc(T * (size_t)g->n_batch * sizeof *numbers);
    if (!mask || !numbers) {
        free(mask);
        free(numbers);
        return qkv_fail_memory(err);
    }
    for (int i = 0; i < QKV_MASK_COUNT; i++) {
        if (!g->in_mask[i]->buffer) continue;
        if (g->step)
            qkv_mask_fill_step(g, mask, i);
        else
            qkv_mask_fill(g, mask, i == QKV_MASK_WINDOW ? g->model->hp.window : 0);
        set_input(g->in_mask[i], mask);
    }
    for (size_t i = 0; i < T; i++) numbers[i] = (int32_t)i;
    set_input(g->in_position_before, numbers);
    for (size_t i = 0; i < T; i++) numbers[i] = (int32_t)(position + (int64_t)i);
    set_input(g->in_position, numbers);
    if (g->in_rows) {
        list_rows(g, numbers);
        set_input(g->in_rows, numbers);
    }
    free(mask);
    free(numbers);
    return QKV_OK;
}

/* Which of two texts a token belongs to: what follows the first separator is of the second segment. So
 * tokens alone decide, and whatever is kept for them holds. */
static int set_segments(const qkv_graph *g, const int32_t *tokens, qkv_error *err) {
    if (!g->in_token_type) return QKV_OK;
    int32_t *segments = qkv_calloc((size_t)g->n_tokens, sizeof *segments);
    if (!segments) return qkv_fail_memory(err);
    const int32_t separator =
        g->model->info.has_segments ? qkv_vocab_separator(g->model->vocab) : -1;
    for (int64_t i = 1; i < g->n_tokens; i++) {
        segments[i] = segments[i - 1] || (separator >= 0 && tokens[i - 1] == separator);
    }
    set_input(g->in_token_type, segments);
    free(segments);
    return QKV_OK;
}

static int set_given_inputs(const qkv_graph *g, const qkv_inputs *inputs, qkv_error *err) {
    set_input(g->in_tokens, inputs->tokens);
    set_input(g->in_resid, inputs->resid);
    set_input(g->in_q, inputs->q);
    set_input(g->in_k, inputs->k);
    set_input(g->in_v, inputs->v);
    for (int64_t il = 0; g->in_before && il < g->model->hp.n_layer; il++) {
        set_input(g->in_before[2 * il], inputs->before[il].k);
        set_input(g->in_before[2 * il + 1], inputs->before[il].v);
    }
    for (int i = 0; i < QKV_ROPE_COUNT; i++) {
        const qkv_rope *rope = &g->model->hp.rope[i];
        int is_long =
            g->step ? g->step->is_long : g->is_long || g->n_before + g->n_tokens > rope->long_from;
        is_long = is_long && rope->long_divisors;
        set_input(g->in_divisors[i], is_long ? rope->long_divisors : rope->divisors);
    }
    return set_segments(g, inputs->tokens, err);
}

/* ---- computing ---- */

/* Below this much work per pass, waking and joining threads costs more than it saves. */
#define FLOP_FOR_THREADS 1e8
/* One token through a model: weights are read, and threads read more of them at a time. Measured: see
 * docs/performance.md. */
#define BYTES_FOR_THREADS 3e7

/* No result depends on how many there are. */
static void choose_threads(qkv_session *session, const qkv_graph *g) {
    const qkv_cost cost = qkv_graph_cost(g);
    const int small = cost.flop < FLOP_FOR_THREADS && cost.bytes < BYTES_FOR_THREADS;
    int n = small ? 1 : session->n_threads;
    set_threads(session->backend, n);
}

/* What ggml's scheduler takes per node at most: it makes room for a split at every node, with many
 * inputs each, and does not look whether it got it. */
#define SCHEDULER_BYTES_PER_NODE (64 * ggml_tensor_overhead() + 2048)

static int prepare_scheduler(qkv_session *session, const qkv_graph *g, qkv_error *err) {
    size_t nodes = qkv_graph_max_nodes(g);
    if (session->scheduler && nodes <= session->scheduler_nodes) {
        ggml_backend_sched_reset(session->scheduler);
        return QKV_OK;
    }
    if (session->scheduler) ggml_backend_sched_free(session->scheduler);
    session->scheduler = NULL;
    if (!qkv_memory_allows(nodes * SCHEDULER_BYTES_PER_NODE)) return qkv_fail_memory(err);
    session->scheduler = ggml_backend_sched_new(&session->backend, NULL, 1, nodes, false, false);
    session->scheduler_nodes = session->scheduler ? nodes : 0;
    return session->scheduler ? QKV_OK : qkv_fail_memory(err);
}

typedef struct computation {
    qkv_session *session;
    struct ggml_cgraph *graph;
    enum ggml_status status;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int has_ended;
} computation;

/* The CPU backend throws where it cannot have its working memory. */
static int allows_working_memory(const computation *c) {
    return qkv_memory_allows(ggml_graph_plan(c->graph, c->session->n_threads, NULL).work_size);
}

static void compute(computation *c) {
    qkv_openmp_settings before;
    c->status = GGML_STATUS_ALLOC_FAILED;
    if (!allows_working_memory(c) || !qkv_openmp_enter(&before, c->session->n_threads)) return;
    if (qkv_is_forked()) set_threads(c->session->backend, 1);
    c->status = ggml_backend_sched_graph_compute(c->session->scheduler, c->graph);
    qkv_openmp_leave(before);
}

static void *compute_in_thread(void *data) {
    computation *c = data;
    qkv_ggml_log_enter();
    compute(c);
    qkv_ggml_log_leave();
    pthread_mutex_lock(&c->lock);
    c->has_ended = 1;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The callback is called in the caller's thread, which only waits here. */
static void wait_for_end(computation *c) {
    pthread_mutex_lock(&c->lock);
    while (!c->has_ended) qkv_steps_wait(&c->session->steps, &c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* ggml asks after each of them, and not after nodes that only look at others. */
static int count_operations(struct ggml_cgraph *graph) {
    int n = 0;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const enum ggml_op op = ggml_graph_node(graph, i)->op;
        n += op != GGML_OP_NONE && op != GGML_OP_RESHAPE && op != GGML_OP_TRANSPOSE &&
             op != GGML_OP_VIEW && op != GGML_OP_PERMUTE;
    }
    return n;
}

/* A team of OpenMP's inside a team of the program's gets one thread. A new thread is in no team. */
static enum ggml_status compute_outside_teams(qkv_session *session, const qkv_graph *g) {
    computation c = {.session = session,
                     .graph = g->cgraph,
                     .status = GGML_STATUS_FAILED,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .ended = PTHREAD_COND_INITIALIZER};
    session->steps.parts = count_operations(c.graph);
    if (session->n_threads == 1 || !omp_in_parallel()) {
        compute(&c);
        return c.status;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, compute_in_thread, &c) != 0) return GGML_STATUS_FAILED;
    wait_for_end(&c);
    pthread_join(thread, NULL);
    return c.status;
}

/* Gives the graph memory, unless it has just been computed and nothing else since. */
static int allocate(qkv_session *session, qkv_graph *g, qkv_error *err) {
    static atomic_ullong n_allocations;
    if (g->allocation && g->allocation == session->allocation) {
        qkv_graph_rewind(g);
        return QKV_OK;
    }
    session->allocation = g->allocation = 0;
    int status = prepare_scheduler(session, g, err);
    if (status != QKV_OK) return status;
    choose_threads(session, g);
    /* The allocator takes a graph for the previous one when the numbers and sizes of their nodes
     * agree, and would then reuse an assignment of memory in which other tensors are alive.
     * Reserving first makes it look. */
    if (!ggml_backend_sched_reserve(session->scheduler, g->cgraph) ||
        !ggml_backend_sched_alloc_graph(session->scheduler, g->cgraph))
        return qkv_fail_memory(err);
    session->allocation = g->allocation = atomic_fetch_add(&n_allocations, 1) + 1;
    return QKV_OK;
}

int qkv_session_compute(qkv_session *session, qkv_graph *g, const qkv_inputs *inputs,
                        qkv_error *err) {
    int status = allocate(session, g, err);
    if (status == QKV_OK) status = set_made_inputs(g, err);
    if (status == QKV_OK) status = set_given_inputs(g, inputs, err);
    if (status != QKV_OK) return status;
    enum ggml_status computed = compute_outside_teams(session, g);
    if (g->custom_error.status != QKV_OK)
        return qkv_fail(err, g->custom_error.status, "%s", g->custom_error.message);
    if (qkv_steps_stopped(&session->steps)) return qkv_fail_cancelled(err);
    if (computed == GGML_STATUS_ALLOC_FAILED || atomic_load(&g->ran_short))
        return qkv_fail_memory(err);
    if (computed != GGML_STATUS_SUCCESS)
        return qkv_fail(err, QKV_ERR_BACKEND, "ggml could not compute the graph");
    return QKV_OK;
}

size_t qkv_session_buffer_size(const qkv_session *session) {
    if (!session->scheduler) return 0;
    return ggml_backend_sched_get_buffer_size(session->scheduler, session->backend);
}
