/*
 * Help texts and the manual pages, both from the commands' own tables. Terminal text is wrapped
 * here, the manual page is left to roff.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/columns.h"
#include "qkv/plan.h"
#include "qkv/version.h"

enum { WIDTH = 80, OPTION_COLUMN = 26 };

static const char overview[] =
    "Shows what a transformer attends to when its queries, keys or values are changed.";

static const char notation[] =
    "An edit is written SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]:\n"
    "  q@3.h5=scale:1e-3        queries of head 5 in layer 3, times 0.001\n"
    "  k@2-4.g*[0]=mean:head    keys of token 0 in layers 2 to 4: mean over heads\n"
    "  v@*=zero                 all values of all layers\n"
    "  pattern@5.h2[:,0]=set:0  column 0 of the attention weights\n"
    "  resid_post@1[0]{7,9}=zero  channels 7 and 9 of token 0\n"
    "Edits of one variant are joined by ' + '; they read the unedited tensor and apply at once. "
    "Variant 0 is always the unedited baseline.\n"
    "\n"
    "LAYERS and HEADS are 3, 2-4, 0,2,5-7, -1 (the last) or *. Heads carry a letter: h counts query heads, g "
    "key/value heads; on k and v, h3 changes what query head 3 alone sees and g1 changes it for "
    "the whole group. No head part means all heads. TOKENS are [5], [1:], [:4], [2:8], [-1] or "
    "[0,3,5:7]; on scores and pattern [ROWS,COLUMNS]; with patch:NAME also [5<-7], [2:5<-4:7]: "
    "token 5 takes token 7 of the other prompt. CHANNELS, of all other sites, are written "
    "like tokens: {7}, {0:16}, {-1}.\n"
    "\n"
    "Operations:\n"
    "  scale:E               x becomes E * x\n"
    "  set:C, zero           x becomes C, or 0\n"
    "  add:C                 x becomes x + C\n"
    "  add:@FILE#NAME,by=F   F times a vector is added, a tensor of a safetensors file: [width], "
    "[heads,width], or one of these for each token\n"
    "  remove:@FILE#NAME     what points in the vector's direction is taken out\n"
    "  set:@FILE#NAME        x becomes the vector\n"
    "  mean:head             the mean over all heads; also mean:token, mean:dim\n"
    "  mean:others           the mean over all heads but the head itself\n"
    "  mean:set[,per=position]\n"
    "                        the mean over all tokens of --set-prompts, or by position\n"
    "  noise:S[,seed=N]      Gaussian noise of standard deviation S is added\n"
    "  clamp:LO,HI           x is kept between LO and HI\n"
    "  patch:NAME            the value that another prompt has there, see --source\n"
    "  patch:resample[,seed=N]\n"
    "                        that of another prompt, drawn from --set-prompts\n"
    "  mask                  scores become -inf before the softmax\n"
    "  mask:sink=S,recent=R  all but the first S keys and the R most recent ones\n"
    "  mask:sink=S,recent=R,positions=cache\n"
    "                        the same, with positions counted within what is left\n"
    "  mask:band=K           all but the keys less than K away from the query\n"
    "  keep:h2o,budget=B,recent=R[,prompt=P,rule=paper|lm_eval]\n"
    "                        keys that H2O would have dropped become -inf, row by row\n"
    "  keep:snapkv,budget=B[,window=W,kernel=K,pool=avg|max,prompt=P]\n"
    "                        the same by SnapKV, for queries after the prompt\n"
    "  quant:bits=B,axis=channel|token[,group=N,keep=R,per=query,prompt=P]\n"
    "                        rounded to 2^B levels, in groups of N tokens or channels; a\n"
    "                        query sees all so, or what a cache has quantised by then\n"
    "\n"
    "freeze:SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}] keeps the values of the unedited run, while "
    "other edits of the variant change what comes before.\n"
    "\n"
    "A capture is written SITE[@LAYERS[.HEADS]][{CHANNELS}][:REDUCTION]; no layers means all of "
    "them:\n"
    "  pattern@3             attention weights of layer 3, all heads\n"
    "  pattern@0-5.h2        of head 2 in layers 0 to 5\n"
    "  logits[-1]            scores of the token after the last; [TOKENS] as above\n"
    "  resid_post@*{7}       channel 7 alone, of all layers\n"
    "  pattern@*:first       reduced while it is computed, see the reductions\n"
    "A reduced pattern needs no memory for whole maps, however long the prompt. Several reductions "
    "of one layer may be captured.\n";

static const struct {
    const char *names, *text;
} variables[] = {
    {"QKV_MODEL",
     "Without -m the model named by QKV_MODEL is used, and without that the model default.gguf that "
     "comes with qkv."},
    {"HF_HUB_CACHE, HF_HOME",
     "Where the models of Hugging Face's hub are stored: HF_HUB_CACHE, else HF_HOME/hub, else "
     "XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub."},
    {"QKV_CACHE",
     "Where models with short names are stored: QKV_CACHE/models, else XDG_CACHE_HOME/qkv/models, "
     "else ~/.cache/qkv/models."},
};

static const char exit_text[] =
    "0 on success, 1 when something failed, 2 when the command line makes no sense. Messages go to "
    "standard error, one line each. Files appear under their names when they are complete; of "
    "several outputs, those that were written before one failed stay.";

/* ---- wrapped terminal text ---- */

static size_t columns_of(const char *text, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Words of one line of text, from `column` on; later lines start at `indent`. */
static void print_wrapped(const char *text, size_t length, size_t column, size_t indent) {
    for (size_t i = 0, first = 1; i < length; first = 0) {
        size_t n = 0;
        while (i + n < length && text[i + n] != ' ') n++;
        const size_t width = columns_of(text + i, n);
        if (!first && column + 1 + width > WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        fwrite(text + i, 1, n, stdout);
        column += width;
        i += n + (i + n < length);
    }
    putchar('\n');
}

void cli_print_paragraph(const char *text, size_t indent) {
    printf("%*s", (int)indent, "");
    print_wrapped(text, strlen(text), indent, indent);
}

static void print_text(const char *text) {
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (*text == ' ' || n == 0) {
            printf("%.*s\n", (int)n, text);
        } else {
            print_wrapped(text, n, 0, 0);
        }
        text += n + (text[n] == '\n');
    }
}

/* The help of an option, and its other name. */
static void append_help(qkv_text *out, const cli_option *option) {
    const char *alias = cli_option_alias(option);
    qkv_text_puts(out, option->help);
    if (alias) qkv_text_printf(out, "; also --%s", alias);
}

static void print_option(const cli_option *option) {
    char left[128];
    qkv_text help = {0};
    append_help(&help, option);
    const char letter[] = {'-', option->letter, ',', ' ', '\0'};
    const int length = snprintf(left, sizeof left, "  %s--%s%s%s", option->letter ? letter : "    ",
                                option->name, option->kind == CLI_FLAG ? "" : " ",
                                option->kind == CLI_FLAG ? "" : option->value);
    printf("%s", left);
    size_t column = (size_t)length;
    if (column + 2 > OPTION_COLUMN) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", (int)(OPTION_COLUMN - column), "");
    print_wrapped(cli_shown(&help), help.length, OPTION_COLUMN, OPTION_COLUMN);
    qkv_text_release(&help);
}

static void print_synopsis(const cli_command *command) {
    const char *line = command->synopsis;
    for (const char *lead = "Usage: "; *line; lead = "       ") {
        const size_t n = strcspn(line, "\n");
        const size_t start = strlen(lead) + strlen("qkv ") + strlen(command->name) + 1;
        printf("%sqkv %s ", lead, command->name);
        print_wrapped(line, n, start, start);
        line += n + (line[n] == '\n');
    }
}

void cli_print_help(const cli_command *command) {
    print_synopsis(command);
    putchar('\n');
    print_text(command->description);
    if (command->n_options) printf("\nOptions:\n");
    for (size_t i = 0; i < command->n_options; i++) print_option(&command->options[i]);
    printf("\nCommon options:\n");
    for (size_t i = 0; i < cli_n_common_options; i++) print_option(&cli_common_options[i]);
    printf("  -h, --help%*sshow this help\n", OPTION_COLUMN - 12, "");
}

static void print_command_line(const cli_command *command) {
    printf("  %-18s%s\n", command->name, command->summary);
}

static int is_figure(const cli_command *command) {
    return strncmp(command->name, "figure ", 7) == 0;
}

void cli_print_overview(void) {
    printf("Usage: qkv COMMAND [OPTION]...\n\n");
    print_text(overview);
    printf("\nCommands:\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i]->is_study && !(i && cli_commands[i - 1]->is_study))
            printf("\nStudies:\n");
        if (is_figure(cli_commands[i]) && !(i && is_figure(cli_commands[i - 1])))
            printf("\nFigures:\n");
        print_command_line(cli_commands[i]);
    }
    printf("\n'qkv COMMAND --help' explains one command, 'qkv help notation' how edits are\n"
           "written; 'qkv --version' prints the version.\n\n");
    print_text(variables[0].text);
}

void cli_print_group(const char *group) {
    const size_t n = strlen(group);
    printf("Usage: qkv %s KIND [OPTION]...\n\n", group);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (strncmp(name, group, n) == 0 && name[n] == ' ') print_command_line(cli_commands[i]);
    }
    printf("\n'qkv %s KIND --help' explains one of them.\n", group);
}

/* What stands after the name of a reduction that pools. */
static const char *side_of(int reduction) {
    return reduction == QKV_REDUCTION_MEAN || reduction == QKV_REDUCTION_MAX ? "=N" : "";
}

void cli_print_names(void) {
    for (size_t i = 0; i < cli_n_commands; i++) puts(cli_commands[i]->name);
}

void cli_print_notation(void) {
    print_text(notation);
    printf("\nReductions:\n");
    for (int i = QKV_REDUCTION_NONE + 1; i < QKV_REDUCTION_COUNT; i++) {
        char name[32];
        const char *what = qkv_reduction_description((qkv_reduction)i);
        snprintf(name, sizeof name, "%s%s", qkv_reduction_name((qkv_reduction)i), side_of(i));
        printf("  %-22s", name);
        print_wrapped(what, strlen(what), 24, 24);
    }
    printf("\nSites (T tokens, H query heads, G key/value heads, d head width, D model\n"
           "width, F neurons, V vocabulary; the last index runs fastest):\n");
    for (int i = 0; i < QKV_SITE_COUNT; i++) {
        const qkv_site site = (qkv_site)i;
        printf("  %-12s%-8s%s\n", qkv_site_name(site), qkv_site_shape(site),
               qkv_site_description(site));
    }
}

/* ---- roff ---- */

static void roff_escape(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const int line_start = i == 0 || text[i - 1] == '\n';
        if (line_start && (text[i] == '.' || text[i] == '\'')) fputs("\\&", stdout);
        if (text[i] == '\\') {
            fputs("\\e", stdout);
        } else if (text[i] == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(text[i]);
        }
    }
}

static void roff_text(const char *text) {
    int verbatim = 0;
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (verbatim != (*text == ' ')) {
            verbatim = !verbatim;
            puts(verbatim ? ".nf" : ".fi");
        }
        if (n == 0) {
            puts(".PP");
        } else {
            roff_escape(text, n);
            putchar('\n');
        }
        text += n + (text[n] == '\n');
    }
    if (verbatim) puts(".fi");
}

static void roff_option(const cli_option *option) {
    printf(".TP\n");
    if (option->letter) printf("\\fB\\-%c\\fR, ", option->letter);
    printf("\\fB\\-\\-");
    roff_escape(option->name, strlen(option->name));
    printf("\\fR");
    if (option->kind != CLI_FLAG) {
        printf(" \\fI");
        roff_escape(option->value, strlen(option->value));
        printf("\\fR");
    }
    putchar('\n');
    qkv_text help = {0};
    append_help(&help, option);
    roff_escape(cli_shown(&help), help.length);
    qkv_text_release(&help);
    putchar('\n');
}

static void roff_synopsis(const cli_command *command) {
    const char *line = command->synopsis;
    puts(".nh");
    while (*line) {
        const size_t n = strcspn(line, "\n");
        printf("\\fBqkv %s\\fR ", command->name);
        roff_escape(line, n);
        line += n + (line[n] == '\n');
        puts(*line ? "\n.br" : "");
    }
    puts(".hy");
}

/* "qkv\-figure\-modify": the name of a command's page. */
static void roff_page_name(const cli_command *command) {
    fputs("qkv\\-", stdout);
    for (const char *c = command->name; *c; c++) {
        if (*c == ' ')
            fputs("\\-", stdout);
        else
            putchar(*c);
    }
}

static void roff_exit_status(void) {
    printf(".SH EXIT STATUS\n");
    roff_text(exit_text);
    putchar('\n');
}

static void print_command_page(const cli_command *command) {
    printf(".TH ");
    roff_page_name(command);
    printf(" 1 \"\" \"qkv %s\" \"User Commands\"\n.SH NAME\n", qkv_version());
    roff_page_name(command);
    printf(" \\- ");
    roff_escape(command->summary, strlen(command->summary));
    printf("\n.SH SYNOPSIS\n");
    roff_synopsis(command);
    printf(".SH DESCRIPTION\n");
    roff_text(command->description);
    printf(".SH OPTIONS\n");
    for (size_t i = 0; i < command->n_options; i++) roff_option(&command->options[i]);
    for (size_t i = 0; i < cli_n_common_options; i++) roff_option(&cli_common_options[i]);
    printf(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow a short form of this page\n");
    roff_exit_status();
    printf(
        ".SH SEE ALSO\n\\fBqkv\\fR(1): the notation of edits and captures, sites, environment\n");
}

static void print_program_page(void) {
    printf(".TH QKV 1 \"\" \"qkv %s\" \"User Commands\"\n", qkv_version());
    printf(".SH NAME\nqkv \\- attention patterns under edited queries, keys and values\n");
    printf(".SH SYNOPSIS\n\\fBqkv\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n");
    printf(".SH DESCRIPTION\n");
    roff_text(overview);
    printf("\nEvery command has a page of its own.\n");
    printf(".SH COMMANDS\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        printf(".TP\n\\fB");
        roff_page_name(cli_commands[i]);
        printf("\\fR(1)\n");
        roff_escape(cli_commands[i]->summary, strlen(cli_commands[i]->summary));
        putchar('\n');
    }
    printf(".SH NOTATION\n");
    roff_text(notation);
    printf(".SH REDUCTIONS\nWhat a captured pattern can be reduced to while it is computed: "
           "\\fBpattern@3:first\\fR.\n");
    for (int i = QKV_REDUCTION_NONE + 1; i < QKV_REDUCTION_COUNT; i++) {
        const char *what = qkv_reduction_description((qkv_reduction)i);
        printf(".TP\n\\fB%s%s\\fR\n", qkv_reduction_name((qkv_reduction)i), side_of(i));
        roff_escape(what, strlen(what));
        putchar('\n');
    }
    printf(".SH SITES\nT tokens, H query heads, G key/value heads, d head width, D model width, "
           "F neurons, V vocabulary; the last index runs fastest.\n");
    for (int i = 0; i < QKV_SITE_COUNT; i++) {
        const char *what = qkv_site_description((qkv_site)i);
        printf(".TP\n\\fB%s\\fR [%s]\n", qkv_site_name((qkv_site)i), qkv_site_shape((qkv_site)i));
        roff_escape(what, strlen(what));
        putchar('\n');
    }
    printf(".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        printf(".TP\n\\fB%s\\fR\n", variables[i].names);
        roff_text(variables[i].text);
        putchar('\n');
    }
    roff_exit_status();
}

void cli_print_manual(const cli_command *command) {
    if (command)
        print_command_page(command);
    else
        print_program_page();
}
