/*
 * qkv generate: texts on the terminal while they grow.
 *
 * One text is streamed as it comes. Several stand side by side where the terminal is wide enough: a line
 * is printed as soon as all columns have it. Otherwise the baseline is streamed and the variants follow.
 * The first token of a variant that is not the baseline's stands between « and ».
 */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/columns.h"
#include "cli/generate.h"

/* Narrower columns are hard to read. */
#define LEAST_WIDTH 26
#define GAP 3

static size_t terminal_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

/* A variant's text up to `end`, with the mark. */
static void append_branch(qkv_text *out, const cli_branch *branch, size_t end) {
    const char *text = branch->text.data;
    if (branch->mark_end <= branch->mark || branch->mark_end > end) {
        cli_append_printable(out, text, end);
        return;
    }
    cli_append_printable(out, text, branch->mark);
    qkv_text_puts(out, "«");
    cli_append_printable(out, text + branch->mark, branch->mark_end - branch->mark);
    qkv_text_puts(out, "»");
    cli_append_printable(out, text + branch->mark_end, end - branch->mark_end);
}

static void print_difference(const cli_branch *branch) {
    if (branch->differs == branch->n)
        printf("as the baseline");
    else
        printf("differs from new token %zu on", branch->differs + 1);
}

/* ---- side by side ---- */

static size_t character_bytes(const char *at) {
    size_t n = 1;
    while ((at[n] & 0xc0) == 0x80) n++;
    return n;
}

/* Where the line that begins at *at ends, so that it fits; *at moves to the next one. Returns its bytes, or
 * -1 where it is not complete yet. */
static long next_line(const char *text, size_t length, size_t width, size_t *at, int is_last) {
    size_t i = *at, blank = 0, columns = 0;
    for (; i < length; i += character_bytes(text + i), columns++) {
        const size_t begin = *at;
        if (text[i] == '\n' || (columns == width && blank > begin) || columns == width) {
            const size_t end = text[i] != '\n' && blank > begin ? blank : i;
            *at = end < length && (text[end] == '\n' || text[end] == ' ') ? end + 1 : end;
            return (long)(end - begin);
        }
        if (text[i] == ' ') blank = i;
    }
    if (!is_last || *at >= length) return -1;
    const long n = (long)(length - *at);
    *at = length;
    return n;
}

static void print_cell(const char *text, size_t bytes, size_t width, int is_last_column) {
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i += character_bytes(text + i)) columns++;
    printf("%.*s", (int)bytes, text);
    if (!is_last_column) printf("%*s", (int)(width - columns + GAP), "");
}

/* Prints rows that all texts have, or all that are left. Returns 0 when there was none. */
static int print_row(cli_show *show, const cli_generation *it, const qkv_text *texts, int is_last) {
    int missing = 0, present = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t v = 0; v < it->n_branches; v++) {
            const int done = is_last || !it->branches[v].going;
            size_t at = 0, begin = 0;
            long bytes = 0;
            for (size_t row = 0; row <= show->rows && bytes >= 0; row++) {
                begin = at;
                bytes = next_line(texts[v].data, texts[v].length, show->width, &at, done);
            }
            present |= bytes >= 0;
            missing |= bytes < 0 && !done;
            if (pass)
                print_cell(texts[v].data + begin, bytes > 0 ? (size_t)bytes : 0, show->width,
                           v + 1 == it->n_branches);
        }
        if (missing || !present) return 0;
    }
    putchar('\n');
    show->rows++;
    return 1;
}

static void show_columns(cli_show *show, const cli_generation *it, int is_last) {
    qkv_text *texts = calloc(it->n_branches, sizeof *texts);
    int failed = !texts;
    for (size_t v = 0; texts && v < it->n_branches; v++) {
        qkv_text_puts(&texts[v], "");
        append_branch(&texts[v], &it->branches[v], it->branches[v].shown);
        failed |= texts[v].failed;
    }
    while (!failed && print_row(show, it, texts, is_last)) {}
    for (size_t v = 0; texts && v < it->n_branches; v++) qkv_text_release(&texts[v]);
    free(texts);
}

static void print_headings(const cli_show *show, const cli_generation *it) {
    for (size_t v = 0; v < it->n_branches; v++) {
        const char *name = v ? it->variants->items[v - 1].value : "baseline";
        const size_t n = strlen(name) < show->width ? strlen(name) : show->width;
        print_cell(name, n, show->width, v + 1 == it->n_branches);
    }
    putchar('\n');
}

/* ---- one below the other ---- */

static void stream_baseline(cli_show *show, const cli_generation *it) {
    const cli_branch *branch = &it->branches[0];
    qkv_text out = {0};
    if (branch->shown > show->printed)
        cli_append_printable(&out, branch->text.data + show->printed,
                             branch->shown - show->printed);
    fputs(cli_shown(&out), stdout);
    qkv_text_release(&out);
    if (branch->shown > show->printed) show->printed = branch->shown;
}

static void print_variants(const cli_generation *it) {
    for (size_t v = 1; v < it->n_branches; v++) {
        const cli_branch *branch = &it->branches[v];
        qkv_text out = {0};
        append_branch(&out, branch, branch->text.length);
        printf("\n%s: ", it->variants->items[v - 1].value);
        print_difference(branch);
        printf("\n%s\n", cli_shown(&out));
        qkv_text_release(&out);
    }
}

/* ---- all ---- */

static void begin(cli_show *show, const cli_generation *it) {
    const size_t all = terminal_width(), n = it->n_branches;
    show->begun = 1;
    if (n < 2) return;
    if (all >= n * (LEAST_WIDTH + GAP)) show->width = all / n - GAP;
    if (show->width)
        print_headings(show, it);
    else
        puts("baseline:");
}

void cli_show_token(void *user, const cli_generation *it, int is_last) {
    cli_show *show = user;
    if (!show->begun) begin(show, it);
    if (show->width) {
        show_columns(show, it, is_last);
        for (size_t v = 1; v < it->n_branches && is_last; v++) {
            printf("%s%s: ", v == 1 ? "\n" : "", it->variants->items[v - 1].value);
            print_difference(&it->branches[v]);
            putchar('\n');
        }
    } else {
        stream_baseline(show, it);
        if (is_last) putchar('\n');
        if (is_last) print_variants(it);
    }
    fflush(stdout);
}

json_t *cli_branch_json(const cli_generation *it, size_t variant) {
    static const char *const finishes[] = {[CLI_FINISH_LENGTH] = "length",
                                           [CLI_FINISH_END] = "end",
                                           [CLI_FINISH_STOP] = "stop",
                                           [CLI_FINISH_INTERRUPTED] = "interrupted"};
    const cli_branch *branch = &it->branches[variant];
    json_t *ids = json_array(), *logs = json_array();
    for (size_t i = 0; i < branch->n; i++) {
        qkv_json_push(ids, json_integer(branch->ids[i]));
        qkv_json_push(logs, json_real(branch->log_probabilities[i]));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:s, s:o}", "variant", (json_int_t)variant, "edits",
                     qkv_json_text(variant ? it->variants->items[variant - 1].value : ""), "text",
                     qkv_json_string(branch->text.data, branch->text.length), "ids", ids,
                     "log_probabilities", logs, "finish", finishes[branch->finish], "differs_at",
                     branch->differs == branch->n ? json_null()
                                                  : json_integer((json_int_t)branch->differs));
}
