/*
 * What becomes of the files that an output replaces: permissions, links, descriptors; what is on
 * the disk before a name changes; and what a signal leaves behind.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE /* syscall */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char home[] = "/tmp/qkv-output-XXXXXX";

static int enter(void **state) {
    (void)state;
    return mkdtemp(home) && chdir(home) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    return chdir("/") == 0 && rmdir(home) == 0 ? 0 : -1; /* fails when a test left something */
}

/* ---- calls that are watched ---- */

static char events[16]; /* f: a file is synced, d: a directory, r: a name changes */

static void note(char event) {
    const size_t n = strlen(events);
    if (n + 1 < sizeof events) events[n] = event;
}

/* In place of libc's, for the library in this program. */
int fsync(int fd) {
    struct stat st;
    note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
    note('r');
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- helpers ---- */

static void put(const char *path, const char *content) {
    qkv_output out;
    qkv_error err = {0};
    if (qkv_output_open(&out, path, &err) != QKV_OK) fail_msg("%s", err.message);
    fputs(content, out.stream);
    if (qkv_output_finish(&out, &err) != QKV_OK) fail_msg("%s", err.message);
}

static void expect_content(const char *path, const char *content) {
    char *data = NULL;
    size_t size;
    assert_int_equal(qkv_read_file(&data, &size, path, 1000, NULL), QKV_OK);
    assert_string_equal(data, content);
    free(data);
}

static unsigned mode_of(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static int is_link(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static int n_files(void) {
    int n = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* ---- permissions ---- */

static void permissions_are_kept(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0666, 0400};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        put("a", "old");
        assert_int_equal(chmod("a", modes[i]), 0);
        put("a", "new");
        assert_int_equal(mode_of("a"), modes[i]);
        expect_content("a", "new");
        unlink("a");
    }
}

static void a_new_file_follows_the_umask(void **state) {
    (void)state;
    const mode_t before = umask(027);
    put("a", "");
    assert_int_equal(mode_of("a"), 0640);
    assert_int_equal(umask(before), 027);
    unlink("a");
}

/* ---- links and descriptors ---- */

static void links_stay_links(void **state) {
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(symlink("d/second", "first"), 0);
    assert_int_equal(symlink("target", "d/second"), 0);
    put("first", "one"); /* leads to nowhere yet */
    put("first", "two");
    assert_true(is_link("first") && is_link("d/second") && !is_link("d/target"));
    expect_content("d/target", "two");
    assert_int_equal(n_files(), 2);
    assert_int_equal(unlink("d/target") | unlink("d/second") | unlink("first") | rmdir("d"), 0);
}

static void links_in_a_circle_are_refused(void **state) {
    (void)state;
    qkv_output out;
    qkv_error err = {0};
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_int_equal(qkv_output_open(&out, "a", &err), QKV_ERR_IO);
    assert_true(is_link("a") && is_link("b"));
    assert_int_equal(unlink("a") | unlink("b"), 0);
}

/* A file that is open already is written on, as the shell's >> asks for. */
static void descriptors_are_written_on(void **state) {
    (void)state;
    char path[32];
    put("log", "before, ");
    const int fd = open("log", O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    put(path, "here, ");
    assert_int_equal(write(fd, "after", 5), 5);
    close(fd);
    expect_content("log", "before, here, after");
    qkv_error err = {0};
    qkv_output out;
    assert_int_equal(qkv_output_open(&out, path, &err), QKV_ERR_IO); /* it is closed */
    unlink("log");
}

static void names_may_be_as_long_as_names_are(void **state) {
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    put(name, "text");
    expect_content(name, "text");
    assert_int_equal(n_files(), 1);
    unlink(name);
}

/* ---- the disk ---- */

static void content_is_on_disk_before_the_name(void **state) {
    (void)state;
    memset(events, 0, sizeof events);
    put("a", "text");
    assert_string_equal(events, "frd");
    memset(events, 0, sizeof events);
    put("/dev/null", "text");
    assert_string_equal(events, "");
    unlink("a");
}

/* ---- signals ---- */

static void end_by_signal(int number) {
    qkv_temporaries_remove();
    signal(number, SIG_DFL);
    raise(number);
}

/* Writes half a file and is ended. */
static void write_half(int number) {
    qkv_output out[3];
    signal(number, end_by_signal);
    /* A directory goes with the files in it, whichever was noted first. */
    if (mkdir("d", 0777) != 0 || qkv_temporary_note("d") < 0 || qkv_temporary_note("d/f") < 0)
        _exit(1);
    if (close(open("d/f", O_WRONLY | O_CREAT, 0666)) != 0) _exit(1);
    for (int i = 0; i < 3; i++) {
        if (qkv_output_open(&out[i], i ? "b" : "a", NULL) != QKV_OK) _exit(1);
        fputs("half", out[i].stream);
        fflush(out[i].stream);
    }
    qkv_output_finish(&out[1], NULL); /* this one is whole */
    /* A child inherits the list, and nothing in it is the child's. */
    if (fork() == 0) {
        qkv_temporaries_remove();
        _exit(0);
    }
    wait(NULL);
    if (n_files() != 4) _exit(2);
    raise(number);
    _exit(3);
}

static void a_signal_leaves_nothing_half_written(void **state) {
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) write_half(numbers[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) fail_msg("it ended with %d", WEXITSTATUS(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        assert_int_equal(n_files(), 1);
        expect_content("b", "half");
        unlink("b");
    }
}

/* The list is bounded; what has no room in it is written all the same, and slots come back. */
static void more_outputs_than_the_list_holds(void **state) {
    (void)state;
    enum { MANY = 100 };
    qkv_output out[MANY];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++)
            assert_int_equal(qkv_output_open(&out[i], "a", NULL), QKV_OK);
        for (int i = 0; i < MANY; i++) qkv_output_abandon(&out[i]);
    }
    assert_int_equal(n_files(), 0);
    const int slot = qkv_temporary_note("x");
    assert_true(slot >= 0);
    qkv_temporary_forget(slot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permissions_are_kept),
        cmocka_unit_test(a_new_file_follows_the_umask),
        cmocka_unit_test(links_stay_links),
        cmocka_unit_test(links_in_a_circle_are_refused),
        cmocka_unit_test(descriptors_are_written_on),
        cmocka_unit_test(names_may_be_as_long_as_names_are),
        cmocka_unit_test(content_is_on_disk_before_the_name),
        cmocka_unit_test(a_signal_leaves_nothing_half_written),
        cmocka_unit_test(more_outputs_than_the_list_holds),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
