/* qkv next on the terminal: a table for each variant, or the losses of all variants side by side. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/columns.h"
#include "cli/next.h"

typedef int get_token(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token);

const char *cli_next_variant(const cli_next *it, size_t variant) {
    return variant ? it->variants->items[variant - 1].value : "baseline";
}

static size_t token_width(const cli_next *it, int32_t token) {
    qkv_text text = {0};
    cli_append_token(&text, it->model, token);
    const size_t columns = text.data ? cli_columns(text.data) : 0;
    qkv_text_release(&text);
    return columns;
}

static void print_token(const cli_next *it, int32_t token, size_t width) {
    qkv_text text = {0};
    cli_append_token(&text, it->model, token);
    cli_print_padded(text.data ? text.data : "", width);
    qkv_text_release(&text);
}

/* ---- one position ---- */

/* The same for all variants, so that their tables can be compared. */
static size_t widest_token(const cli_next *it) {
    static get_token *const lists[] = {qkv_next_get, qkv_next_get_of};
    size_t widest = 5;
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    for (size_t l = 0; l < 2; l++) {
        for (size_t v = 0; v < qkv_next_n_variants(it->next); v++) {
            for (size_t i = 0; lists[l](it->next, v, i, &t); i++) {
                const size_t width = token_width(it, t.token);
                if (width > widest) widest = width;
            }
        }
    }
    return widest;
}

/* Small numbers keep their digits. */
static int is_small(double value) {
    return value != 0 && value < 1e-4 && value > -1e-4;
}

static void print_moved(int64_t change) {
    char moved[32] = "=";
    if (change)
        snprintf(moved, sizeof moved, "%s %" PRId64, change < 0 ? "up" : "down",
                 change < 0 ? -change : change);
    printf("  %11s", moved);
}

static size_t print_list(const cli_next *it, size_t variant, get_token *get, size_t width) {
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    size_t i = 0;
    for (; get(it->next, variant, i, &t); i++) {
        printf("%6" PRId64 "  ", t.rank);
        print_token(it, t.token, width);
        qkv_print(stdout, is_small(t.probability) ? "  %11.2e" : "  %11.4f", t.probability);
        if (variant) {
            qkv_print(stdout, is_small(t.probability_change) ? "  %+9.1e" : "  %+9.4f",
                      t.probability_change);
            print_moved(t.rank_change);
        }
        putchar('\n');
    }
    return i;
}

static void print_diffs(const cli_next *it, size_t variant) {
    double diff, change;
    for (size_t i = 0; qkv_next_get_diff(it->next, variant, i, &diff, &change); i++) {
        printf("        logit of ");
        print_token(it, it->diff[2 * i], 0);
        printf(" minus ");
        print_token(it, it->diff[2 * i + 1], 0);
        qkv_print(stdout, ": %.4f", diff);
        if (variant) qkv_print(stdout, " (%+.4f)", change);
        putchar('\n');
    }
}

static int has_tokens(const cli_next *it) {
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    return qkv_next_get(it->next, 0, 0, &t) || qkv_next_get_of(it->next, 0, 0, &t);
}

static void print_variant(const cli_next *it, size_t variant, size_t width) {
    qkv_text name = {0};
    qkv_text_append_visible(&name, cli_next_variant(it, variant),
                            strlen(cli_next_variant(it, variant)));
    printf("\n%s", name.data ? name.data : "");
    qkv_text_release(&name);
    if (variant) qkv_print(stdout, "  KL %.4g", qkv_next_kl(it->next, variant));
    putchar('\n');
    if (has_tokens(it)) {
        printf("%6s  ", "rank");
        cli_print_padded("token", width);
        printf(variant ? "  %11s  %9s  %11s\n" : "  %11s\n", "probability", "change", "moved");
    }
    const size_t n = print_list(it, variant, qkv_next_get, width);
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    if (n && qkv_next_get_of(it->next, variant, 0, &t)) printf("%6s\n", "of");
    print_list(it, variant, qkv_next_get_of, width);
    print_diffs(it, variant);
}

static void print_position(const cli_next *it) {
    const int64_t at = qkv_next_position(it->next);
    const size_t width = widest_token(it);
    printf("behind token %" PRId64 ", ", at);
    print_token(it, it->prompt->tokens[at], 0);
    putchar('\n');
    for (size_t v = 0; v < qkv_next_n_variants(it->next); v++) print_variant(it, v, width);
}

/* ---- all positions ---- */

static void print_legend(const cli_next *it) {
    for (size_t v = 1; v < qkv_next_n_variants(it->next); v++) {
        printf("v%zu  ", v);
        cli_print_line(cli_next_variant(it, v));
    }
    if (qkv_next_n_variants(it->next) > 1) putchar('\n');
}

static void print_loss_head(const cli_next *it, size_t width) {
    printf("%8s  ", "position");
    cli_print_padded("token", width);
    printf("  %9s", "loss");
    for (size_t v = 1; v < qkv_next_n_variants(it->next); v++) {
        char name[32];
        snprintf(name, sizeof name, "v%zu", v);
        printf("  %9s  %9s  %9s", name, "change", "KL");
    }
    putchar('\n');
}

static void print_losses(const cli_next *it, size_t index) {
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    for (size_t v = 0; qkv_next_get_loss(it->next, v, index, &loss); v++) {
        qkv_print(stdout, "  %9.4f", loss.loss);
        if (v) qkv_print(stdout, "  %+9.4f  %9.3g", loss.loss_change, loss.kl);
    }
    putchar('\n');
}

static void print_means(const cli_next *it, size_t width) {
    const double base = qkv_next_mean_loss(it->next, 0);
    printf("%8s  %*s", "mean", (int)width, "");
    for (size_t v = 0; v < qkv_next_n_variants(it->next); v++) {
        const double mean = qkv_next_mean_loss(it->next, v);
        qkv_print(stdout, "  %9.4f", mean);
        if (v)
            qkv_print(stdout,
                      v + 1 < qkv_next_n_variants(it->next) ? "  %+9.4f           " : "  %+9.4f",
                      mean - base);
    }
    putchar('\n');
}

static void print_all(const cli_next *it) {
    size_t width = 5;
    for (size_t i = 0; i < it->prompt->n_tokens; i++) {
        const size_t columns = token_width(it, it->prompt->tokens[i]);
        if (columns > width) width = columns;
    }
    print_legend(it);
    print_loss_head(it, width);
    for (size_t i = 0; i < it->prompt->n_tokens; i++) {
        printf("%8zu  ", i);
        print_token(it, it->prompt->tokens[i], width);
        if (i)
            print_losses(it, i - 1);
        else
            printf("  %9s\n", "-");
    }
    print_means(it, width);
}

void cli_next_print(const cli_next *it) {
    if (qkv_next_position(it->next) < 0)
        print_all(it);
    else
        print_position(it);
}
