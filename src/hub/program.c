/*
 * The program is in a process group of its own, so that all of it can be ended, and reads nothing
 * from the terminal. Where it has gone is asked while its output is read: a grandchild that keeps the
 * pipes open does not keep us.
 */
#define _GNU_SOURCE /* pipe2, environ */
#include "hub/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ERRORS = 64 << 10, PIECE = 64 << 10, WAIT = 100, PATIENCE = 20 };

enum { OUT, ERRORS, N_PIPES };

typedef struct running {
    qkv_program *program;
    pid_t pid;
    struct pollfd pipes[N_PIPES]; /* fd < 0: closed */
    char piece[PIECE];
} running;

/* ---- starting ---- */

typedef struct start {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int pipes[N_PIPES][2];
} start;

/* Signals are as in a fresh program, whatever the host has done with them. */
static int set_signals(posix_spawnattr_t *how) {
    static const int usual[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGALRM, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    int code = posix_spawnattr_setsigmask(how, &set);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) sigaddset(&set, usual[i]);
    if (!code) code = posix_spawnattr_setsigdefault(how, &set);
    return code ? code
                : posix_spawnattr_setflags(how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
}

static int spawn(running *r, start *s) {
    const char *input = r->program->input ? r->program->input : "/dev/null";
    int code = posix_spawn_file_actions_addopen(&s->files, 0, input, O_RDONLY, 0);
    if (!code) code = posix_spawn_file_actions_adddup2(&s->files, s->pipes[OUT][1], 1);
    if (!code) code = posix_spawn_file_actions_adddup2(&s->files, s->pipes[ERRORS][1], 2);
    if (!code) code = set_signals(&s->how);
    if (!code)
        code = posix_spawnp(&r->pid, r->program->argv[0], &s->files, &s->how,
                            (char *const *)r->program->argv, environ);
    return code;
}

static void close_pipe(int pipe[2], int end) {
    if (pipe[end] >= 0) close(pipe[end]);
    pipe[end] = -1;
}

/* The ends of pipes must not be 0 to 2, which a host may have closed: they would be written over. */
static int lift(int *fd) {
    if (*fd > STDERR_FILENO) return 0;
    const int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (lifted < 0) return errno;
    close(*fd);
    *fd = lifted;
    return 0;
}

static int make_pipes(start *s) {
    int code = 0;
    for (int i = 0; i < N_PIPES && !code; i++) {
        if (pipe2(s->pipes[i], O_CLOEXEC) != 0) return errno;
        code = lift(&s->pipes[i][0]);
        if (!code) code = lift(&s->pipes[i][1]);
        if (!code && fcntl(s->pipes[i][0], F_SETFL, O_NONBLOCK) != 0) code = errno;
    }
    return code;
}

static int begin(running *r) {
    start s = {.pipes = {{-1, -1}, {-1, -1}}};
    int code = posix_spawn_file_actions_init(&s.files);
    if (code) return code;
    code = posix_spawnattr_init(&s.how);
    if (!code) {
        code = make_pipes(&s);
        if (!code) code = spawn(r, &s);
        posix_spawnattr_destroy(&s.how);
    }
    posix_spawn_file_actions_destroy(&s.files);
    for (int i = 0; i < N_PIPES; i++) {
        close_pipe(s.pipes[i], 1);
        if (code) close_pipe(s.pipes[i], 0);
        r->pipes[i] = (struct pollfd){.fd = s.pipes[i][0], .events = POLLIN};
    }
    return code;
}

/* ---- its output ---- */

static int hand_over(running *r, int which, size_t n, qkv_error *err) {
    qkv_program *p = r->program;
    if (which == OUT) return p->take ? p->take(p->user, r->piece, n, err) : QKV_OK;
    const size_t room = MOST_ERRORS - p->errors.length;
    qkv_text_append(&p->errors, r->piece, n < room ? n : room);
    return p->errors.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* Reads what the pipe holds now. */
static int read_pipe(running *r, int which, qkv_error *err) {
    struct pollfd *pipe = &r->pipes[which];
    int status = QKV_OK;
    while (pipe->fd >= 0 && status == QKV_OK) {
        const ssize_t n = read(pipe->fd, r->piece, sizeof r->piece);
        if (n > 0) {
            status = hand_over(r, which, (size_t)n, err);
            if (status == QKV_OK && qkv_steps_tick(r->program->steps))
                status = qkv_fail_cancelled(err);
        } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        } else {
            close(pipe->fd);
            pipe->fd = -1;
        }
    }
    return status;
}

static int read_pipes(running *r, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < N_PIPES && status == QKV_OK; i++) status = read_pipe(r, i, err);
    return status;
}

/* ---- its end ---- */

/* A host that ignores SIGCHLD gets no status: what came out is judged by what it is. */
static int has_ended(running *r) {
    int status = 0;
    const pid_t pid = waitpid(r->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) return 0;
    if (pid == r->pid)
        r->program->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 1;
}

static void end_it(running *r) {
    kill(-r->pid, SIGTERM);
    for (int i = 0; i < PATIENCE; i++) {
        if (has_ended(r)) return;
        poll(NULL, 0, WAIT);
    }
    kill(-r->pid, SIGKILL);
    while (!has_ended(r)) poll(NULL, 0, WAIT);
}

static int watch(running *r, qkv_error *err) {
    int status = QKV_OK, ended = 0;
    while (status == QKV_OK && !ended) {
        const int silent = r->pipes[OUT].fd < 0 && r->pipes[ERRORS].fd < 0;
        poll(r->pipes, N_PIPES, silent ? WAIT / 10 : WAIT);
        ended = has_ended(r);
        status = read_pipes(r, err);
        if (status == QKV_OK && qkv_steps_tick(r->program->steps)) status = qkv_fail_cancelled(err);
    }
    if (!ended) end_it(r);
    for (int i = 0; i < N_PIPES; i++) {
        if (r->pipes[i].fd >= 0) close(r->pipes[i].fd);
    }
    return status;
}

int qkv_program_run(qkv_program *program, int *missing, qkv_error *err) {
    running r = {.program = program};
    program->code = 0;
    const int code = begin(&r);
    *missing = code == ENOENT;
    if (code)
        return qkv_fail(err, QKV_ERR_IO, "cannot run %s: %s", program->argv[0], strerror(code));
    return watch(&r, err);
}
