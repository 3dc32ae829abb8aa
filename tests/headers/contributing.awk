# The file of C that CONTRIBUTING.md shows.
/^```/ { inside = $0 == "```c"; next }
inside { print }
