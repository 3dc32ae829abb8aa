# The C blocks of README's section "From C" as one program: includes first, the rest as the body of main.
#
#     awk -f readme.awk README.md > readme.c
#
# What went wrong in it fails the program.
/^## / { in_section = $0 == "## From C" }
/^```/ { in_block = in_section && $0 == "```c"; next }
in_block && /^#include/ { print; next }
in_block { line[++n] = $0 }
END {
    if (!n) {
        print FILENAME ": its section \"From C\" has no C" > "/dev/stderr"
        exit 1
    }
    print "int main(void) {"
    for (i = 1; i <= n; i++) print line[i]
    print "if (err.status) fprintf(stderr, \"%s\\n\", err.message);\nreturn err.status ? 1 : 0;\n}"
}
