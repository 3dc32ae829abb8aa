/*
 * A good guest: what belongs to the host's process is after every kind of work as it was before.
 */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <omp.h>

#include "ggml.h"
#include "model/model.h"
#include "qkv/pull.h"
#include "qkv/qkv.h"
#include "study/figure.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "sweep/sweep.h"

void openblas_set_num_threads(int n_threads);
int openblas_get_num_threads(void);

extern char **environ;

enum { SIGNALS = 65, DESCRIPTORS = 256, ENVIRONMENT = 1 << 16 };

/* ---- what there is of the process ---- */

typedef struct process {
    void (*handlers[SIGNALS])(int);
    int flags[SIGNALS];
    uint64_t masks[SIGNALS], blocked; /* a bit for every signal */
    mode_t mask;
    char environment[ENVIRONMENT];
    char locale[1024], directory[4096];
    char descriptors[DESCRIPTORS]; /* 1: open */
    ggml_log_callback log;
    void *log_user;
    int openmp_threads, openmp_dynamic, openmp_levels, blas_threads;
} process;

static uint64_t bits_of(const sigset_t *set) {
    uint64_t bits = 0;
    for (int i = 1; i < SIGNALS; i++) bits |= (uint64_t)(sigismember(set, i) == 1) << (i - 1);
    return bits;
}

static void look_at_signals(process *p) {
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        if (sigaction(i, NULL, &action) != 0) continue;
        p->handlers[i] = action.sa_handler;
        p->flags[i] = action.sa_flags;
        p->masks[i] = bits_of(&action.sa_mask);
    }
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    p->blocked = bits_of(&blocked);
}

static void look_at_files(process *p) {
    p->mask = umask(0);
    umask(p->mask);
    assert_non_null(getcwd(p->directory, sizeof p->directory));
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(directory) && fd < DESCRIPTORS)
            p->descriptors[fd] = 1;
    }
    closedir(directory);
}

static void look(process *p) {
    memset(p, 0, sizeof *p);
    look_at_signals(p);
    look_at_files(p);
    size_t n = 0;
    for (char **entry = environ; *entry; entry++)
        n += (size_t)snprintf(p->environment + n, ENVIRONMENT - n, "%s\n", *entry);
    snprintf(p->locale, sizeof p->locale, "%s", setlocale(LC_ALL, NULL));
    ggml_log_get(&p->log, &p->log_user);
    p->openmp_threads = omp_get_max_threads();
    p->openmp_dynamic = omp_get_dynamic();
    p->openmp_levels = omp_get_max_active_levels();
    p->blas_threads = openblas_get_num_threads();
}

static void expect_unchanged(const process *before) {
    static process now;
    look(&now);
    for (int i = 1; i < SIGNALS; i++) {
        assert_ptr_equal(now.handlers[i], before->handlers[i]);
        assert_int_equal(now.flags[i], before->flags[i]);
        assert_true(now.masks[i] == before->masks[i]);
    }
    assert_true(now.blocked == before->blocked);
    assert_int_equal(now.mask, before->mask);
    assert_string_equal(now.environment, before->environment);
    assert_string_equal(now.locale, before->locale);
    assert_string_equal(now.directory, before->directory);
    assert_memory_equal(now.descriptors, before->descriptors, DESCRIPTORS);
    assert_ptr_equal(now.log, before->log);
    assert_ptr_equal(now.log_user, before->log_user);
    assert_int_equal(now.openmp_threads, before->openmp_threads);
    assert_int_equal(now.openmp_dynamic, before->openmp_dynamic);
    assert_int_equal(now.openmp_levels, before->openmp_levels);
    assert_int_equal(now.blas_threads, before->blas_threads);
}

/* ---- a host with wishes of its own ---- */

static int n_logged;

static void host_log(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)text;
    n_logged += user == &n_logged;
}

static void on_user_signal(int number) {
    (void)number;
}

static int settle_in(void **state) {
    (void)state;
    ggml_log_set(host_log, &n_logged);
    omp_set_num_threads(3);
    openblas_set_num_threads(2);
    umask(027);
    setenv("QKV_TEST_GUEST", "yes", 1);
    signal(SIGUSR1, on_user_signal);
    signal(SIGINT, on_user_signal);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* ---- work ---- */

static const char *const prompt_text = "The river runs past the old mill.";

static void run_and_store(const engine *e) {
    qkv_error err = {0};
    int32_t *tokens = NULL;
    size_t n = 0;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    expect_ok(qkv_tokenize(e->model, &tokens, &n, prompt_text, strlen(prompt_text), 0, &err), &err,
              "tokens");
    expect_ok(qkv_plan_new(&plan, e->model, tokens, n, &err), &err, "plan");
    expect_ok(qkv_plan_add_variant(plan, "q@1=scale:0.5", NULL, &err), &err, "variant");
    expect_ok(qkv_plan_add_capture(plan, "pattern", &err), &err, "capture");
    expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, "run");
    expect_ok(qkv_store_write(result, plan, e->model, scratch_path("r.safetensors"), &err), &err,
              "store");
    qkv_plan_free(plan);
    expect_ok(qkv_plan_new(&plan, e->model, tokens, n, &err), &err, "plan");
    expect_ok(qkv_measure_new(&measure, "all", NULL, &err), &err, "measure");
    expect_ok(qkv_measure_run(measure, &table, e->session, plan, &err), &err, "measuring");
    qkv_table_free(table);
    qkv_measure_free(measure);
    qkv_result_free(result);
    qkv_plan_free(plan);
    qkv_tokens_free(tokens);
}

static void draw(const engine *e) {
    static const char *const formats[] = {"png", "svg", "pdf", "html"};
    qkv_error err = {0};
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    qkv_figure *figure = NULL;
    options.report = 1;
    expect_ok(qkv_figure_make(&figure, e->session, QKV_FIGURE_MODIFY, &options, &err), &err,
              "figure");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *bytes = NULL;
        size_t n_bytes = 0;
        expect_ok(qkv_figure_render(figure, formats[i], &bytes, &n_bytes, &err), &err, formats[i]);
        qkv_bytes_free(bytes);
    }
    qkv_figure_free(figure);
}

static void sweep(const engine *e) {
    qkv_error err = {0};
    qkv_sweep *sweep = NULL;
    qkv_sweep_writer *results = NULL;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    const char *path = scratch_path("s.sqlite");
    expect_ok(qkv_sweep_new(&sweep, e->model,
                            "{\"prompts\": \"one two\", \"layers\": \"0\", \"epsilon\": \"0.5\","
                            " \"metrics\": \"tv\"}",
                            &err),
              &err, "sweep");
    expect_ok(qkv_sweep_writer_open(&results, sweep, path, NULL, &err), &err, path);
    expect_ok(qkv_sweep_run(sweep, e->session, results, NULL, NULL, &err), &err, "sweeping");
    expect_ok(qkv_sweep_writer_close(results, &err), &err, "closing");
    expect_ok(qkv_sweep_export(path, scratch_path("s.csv"), &summary, &err), &err, "export");
    qkv_sweep_free(sweep);
    unlink(path);
}

static void work(int n_threads) {
    engine e;
    qkv_error err = {0};
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", n_threads);
    run_and_store(&e);
    draw(&e);
    sweep(&e);
    engine_close(&e);
    const qkv_convert_options options = {.size = sizeof options, .type = "q8_0"};
    expect_ok(
        qkv_model_convert(QKV_TEST_MODELS "/default.gguf", scratch_path("c.gguf"), &options, &err),
        &err, "converting");
}

/* From a hub that is not there: no program listens on a port that was just taken and given back. */
static void pull(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    char endpoint[64];
    qkv_error err = {0};
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("HF_ENDPOINT", endpoint, 1);
    setenv("HF_HUB_CACHE", scratch_path("cache"), 1);
    setenv("NO_PROXY", "*", 1);
    static process before;
    look(&before);
    assert_int_equal(qkv_pull("org/name", NULL, &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "127.0.0.1"));
    expect_unchanged(&before);
    unsetenv("HF_ENDPOINT");
    unsetenv("HF_HUB_CACHE");
    unsetenv("NO_PROXY");
    close(fd);
}

static void leaves_the_process_alone_when_fetching(void **state) {
    (void)state;
    pull();
    pull(); /* libcurl has started */
}

static void leaves_the_process_alone(void **state) {
    (void)state;
    static process before;
    look(&before);
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        work(n_threads);
        expect_unchanged(&before);
    }
}

/* Also after failures. */
static void failures_too(void **state) {
    (void)state;
    static process before;
    static const char bad[] = "GGUF\x03\0\0\0\xff\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0 cut off";
    qkv_model *model = NULL;
    qkv_error err = {0};
    const char *path = scratch_write("bad.gguf", bad, sizeof bad - 1);
    look(&before);
    n_logged = 0;
    assert_int_equal(qkv_model_open(&model, path, &err), QKV_ERR_FORMAT);
    assert_int_equal(qkv_model_convert(path, scratch_path("no.gguf"), NULL, &err), QKV_ERR_FORMAT);
    assert_int_equal(n_logged, 0); /* what ggml says about it is in the message */
    expect_unchanged(&before);
}

/* ---- ggml's log ---- */

/* Makes ggml say something, as another user of it would. */
static void provoke(void) {
    static const char bad[] = "nothing";
    struct gguf_init_params params = {.no_alloc = true};
    struct gguf_context *context = gguf_init_from_buffer(bad, sizeof bad, params);
    assert_null(context);
}

static void *provoke_in_thread(void *unused) {
    provoke();
    return unused;
}

/* While the library computes, the host's other threads still reach its log. */
static int provoke_beside(void *user, const char *what, double done, double total) {
    (void)what;
    (void)done;
    (void)total;
    pthread_t thread;
    if ((*(int *)user)++) return 0;
    assert_int_equal(pthread_create(&thread, NULL, provoke_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return 0;
}

static void log_of_the_host(void **state) {
    (void)state;
    engine e;
    qkv_error err = {0};
    int n_calls = 0;
    qkv_progress progress = QKV_PROGRESS_INIT;
    progress.step = provoke_beside;
    progress.user = &n_calls;
    n_logged = 0;
    provoke();
    const int each = n_logged;
    assert_true(each > 0);
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_session_set_progress(e.session, &progress, &err), &err, "progress");
    run_and_store(&e);
    assert_true(n_calls > 0);
    assert_int_equal(n_logged, 2 * each);
    provoke();
    assert_int_equal(n_logged, 3 * each);
    engine_close(&e);
}

/* ---- the hash ---- */

static void *ask_for_hash(void *model) {
    static _Thread_local char hash[33];
    assert_int_equal(qkv_model_hash(model, hash, NULL), QKV_OK);
    return NULL;
}

/* All of a model is read once, however often it is asked for. */
static void hash_is_computed_once(void **state) {
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    engine e;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    assert_int_equal(qkv_model_hash_n_computed(e.model->hash), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_hash, e.model), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    run_and_store(&e);
    sweep(&e);
    assert_int_equal(qkv_model_hash_n_computed(e.model->hash), 1);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_the_process_alone),
        cmocka_unit_test(leaves_the_process_alone_when_fetching),
        cmocka_unit_test(failures_too),
        cmocka_unit_test(log_of_the_host),
        cmocka_unit_test(hash_is_computed_once),
    };
    return cmocka_run_group_tests(tests, settle_in, remove_scratch);
}
