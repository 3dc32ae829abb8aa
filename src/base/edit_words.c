#include "base/edit_words.h"

#include <string.h>

#include "base/text.h"

int qkv_edits_say(const char *edits, const char *operation, const char *argument) {
    const size_t length = strlen(argument);
    while ((edits = strstr(edits, operation))) {
        edits += strlen(operation);
        const char end = strncmp(edits, argument, length) == 0 ? edits[length] : '+';
        if (end == '\0' || end == ',' || qkv_is_space(end)) return 1;
    }
    return 0;
}
