/* Prints the help, the list of its group and the manual page of a made-up command, which the case
 * help_format compares. */
#include <stdio.h>

#include "cli/cli.h"

typedef struct forecast_args {
    const char *place;
    int64_t days;
    int unit, plain;
    cli_list epsilons;
} forecast_args;

static const forecast_args defaults = {0};

/* Not in the order of the alphabet, nor of the letters: help keeps that of the table. */
static const cli_option options[] = {
    {'p', "place", "NAME", "where it rains", CLI_TEXT, offsetof(forecast_args, place), 0, 0, 0},
    {0, "days", "N",
     "for how many days, which is a sentence that does not fit on one line and is "
     "wrapped \xe2\x80\x93 at spaces",
     CLI_INTEGER, offsetof(forecast_args, days), 0, 1, 10},
    {0, "a", NULL, "a flag has no value", CLI_FLAG, offsetof(forecast_args, plain), 1, 0, 0},
    {'u', "temperature-unit", "celsius|kelvin|fahrenheit", "the words of a choice are shown",
     CLI_CHOICE, offsetof(forecast_args, unit), 0, 0, 0},
    {0, "epsilon", "LIST", "an option with another name", CLI_LIST,
     offsetof(forecast_args, epsilons), 0, 0, 0},
};

static const cli_command forecast = {
    .name = "rain forecast",
    .summary = "say whether it rains",
    .synopsis = "[--place NAME] [--days N] [--temperature-unit celsius|kelvin|fahrenheit] "
                "[--epsilon LIST]\n"
                "--a",
    .description =
        "A paragraph is wrapped at eighty columns, wherever the lines of the source end: this "
        "one has more than that.\n"
        "\n"
        "  qkv rain forecast --place 'North \\ South'   # lines with a space at the start stay\n"
        ".A full stop at the start of a line is not a request to roff.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
};

static const cli_command other = {.name = "rain report", .summary = "say whether it rained"};

static const cli_command *const all[] = {&forecast, &other};
const cli_command *const *cli_commands = all;
size_t cli_n_commands = 2;

int main(void) {
    cli_print_help(&forecast);
    puts("----");
    cli_print_group("rain");
    puts("----");
    cli_print_manual(&forecast);
    return ferror(stdout) != 0;
}
