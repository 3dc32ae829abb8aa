# How help, the list of a group and a manual page are laid out: print_help.c has the command.
"$PRINT_HELP" | sed 's/"qkv [^"]*"/"qkv VERSION"/; /^\.SH EXIT/,$d'
