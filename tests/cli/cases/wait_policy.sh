# Threads spin briefly unless the environment says how; the program is then the same process.
mkfifo pipe
look() {
    env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "$@" qkv tokens -f pipe >/dev/null &
    exec 3>pipe # opened by the reader: it is running
    tr '\0' '\n' </proc/$!/environ | grep -E '^(OMP_WAIT_POLICY|GOMP_SPINCOUNT)=' || echo neither
    tr '\0' ' ' </proc/$!/cmdline
    echo
    cat /proc/$!/comm
    echo river >&3
    exec 3>&-
    wait $!
}
look
look OMP_WAIT_POLICY=passive
look GOMP_SPINCOUNT=7
