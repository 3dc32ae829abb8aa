/* Fields of the library's options as the command line calls them, in messages. */
#include <string.h>

#include "cli/cli.h"

void cli_append_named(qkv_text *out, const char *message) {
    while (*message) {
        const size_t before = strcspn(message, "`");
        qkv_text_append(out, message, before);
        message += before;
        if (!*message) return;
        const size_t name = strspn(message + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (name == 0 || message[1 + name] != '`') {
            qkv_text_append(out, message++, 1);
            continue;
        }
        qkv_text_puts(out, "--");
        for (size_t i = 1; i <= name; i++) {
            qkv_text_append(out, message[i] == '_' ? "-" : &message[i], 1);
        }
        message += name + 2;
    }
}

int cli_name_fields(int status, qkv_error *err) {
    qkv_text named = {0};
    if (status == QKV_OK) return status;
    cli_append_named(&named, err->message);
    if (!named.failed && named.length) qkv_fail_with(err, status, "%s", named.data);
    qkv_text_release(&named);
    return status;
}
