# The example of a public header as a C program: the first indented block of its first comment.
#
#     awk -f extract.awk include/qkv/NAME.h > NAME.c
#
# An example that has a main of its own is taken as it is; others are the body of one, in which `err` is there. What went
# wrong in it fails the program.
/^ \*\// { exit }
/^ \*     / && !ended {
    for (; blank > 0; blank--) line[++n] = ""
    line[++n] = substr($0, 8)
    next
}
/^ \*$/ && n && !ended { blank++; next }
n { ended = 1 }
END {
    if (!n) {
        print FILENAME ": its first comment has no example" > "/dev/stderr"
        exit 1
    }
    for (i = 1; i <= n; i++) {
        if (line[i] ~ /^#include/) has_includes = 1
        if (line[i] ~ /^int main\(/) has_main = 1
    }
    if (!has_includes)
        print "#define QKV_UNSTABLE\n#include <qkv/qkv.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    if (!has_main) print "int main(void) {\nqkv_error err = {0};"
    for (i = 1; i <= n; i++) print line[i]
    if (!has_main) print "if (err.status) fprintf(stderr, \"%s\\n\", err.message);\nreturn err.status ? 1 : 0;\n}"
}
