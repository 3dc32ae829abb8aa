/*
 * What a command says on standard error beside errors, which main.c prints: notices, warnings and
 * details. All of it goes through here, so that --quiet and --verbose mean the same everywhere.
 */
#ifndef QKV_CLI_MESSAGES_H
#define QKV_CLI_MESSAGES_H

#include "base/fail.h"

/* What --quiet and --verbose say; set once, when the command line is read. */
void cli_set_messages(int quiet, int verbose);
int cli_is_quiet(void);

/* One line each; the format has no line break. */

/* As it is, unless --quiet. */
void cli_notice(const char *format, ...) QKV_PRINTF(1, 2);
/* "qkv: warning: ...", unless --quiet. */
void cli_warn(const char *format, ...) QKV_PRINTF(1, 2);
/* "qkv: ...", with --verbose alone. */
void cli_detail(const char *format, ...) QKV_PRINTF(1, 2);

/* Seconds of a monotonic clock. */
double cli_seconds(void);

#endif
