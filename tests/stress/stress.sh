#!/bin/sh
# What must hold whatever happens, tried again and again for a while:
#
#   kills     sweeps whose processes are killed (-9) at random moments and started again give the rows of one that
#             was left alone, and no process is left behind
#   pairs     of two sweeps started together on a new file at least one succeeds, and the file has all rows
#   disks     a disk that fills up is one clear line; what is on it can be resumed, and no output is half there
#   sessions  whatever the mix of sessions, threads and models, a session gives the bits it gives alone
#   walk      whatever is edited, captured and generated, the numbers are those of the scalar reference
#
#     stress.sh [SECONDS]          default: STRESS_SECONDS, or 300
#
# Prints one line for each kind, and more where something did not hold. Fails then, and when nothing was really
# killed, started together, full, mixed or compared. Environment: QKV, the program; MODELS, the directory with
# default.gguf; STRESS_SESSIONS and STRESS_WALK, the programs for the last kinds. Without them, those of build/.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
export QKV="${QKV:-$root/build/qkv}"
export QKV_MODEL="${MODELS:-$root/models}/default.gguf"
sessions=${STRESS_SESSIONS:-$root/build/tests/stress/stress_sessions}
walk=${STRESS_WALK:-$root/build/tests/stress/stress_walk}
# Threads that wait give up their core soon, as those of qkv do.
export LC_ALL=C.UTF-8 GOMP_SPINCOUNT=1000

# ---- helpers ----

random() { # BELOW
    echo $(($(od -An -N4 -tu4 /dev/urandom) % $1))
}

pause() { # MILLISECONDS
    sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
}

complain() {
    failed=1
    echo "stress: $*"
}

now() { # in milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# A file of results is complete, alone, and has the right rows.
judge_rows() { # RESULTS WHAT
    "$QKV" sweep export "$1" -o rows.csv 2>export.stderr || complain "$2: cannot export: $(cat export.stderr)"
    [ -s export.stderr ] && complain "$2: $(cat export.stderr)"
    cmp whole.csv rows.csv || complain "$2: other rows than those of a sweep left alone"
    for log in "$1-wal" "$1-shm" "$1-journal"; do
        [ -e "$log" ] && complain "$2: a complete file has $log beside it"
    done
    rm -f rows.csv export.stderr
}

# A process that fails says so in one line, with status 1.
judge_failure() { # STATUS STDERR WHAT
    [ "$1" = 1 ] || complain "$3: exit status $1: $(cat "$2")"
    [ "$(grep -c '^qkv: ' "$2")" = 1 ] || complain "$3: not one line of error: $(cat "$2")"
}

sweep() { # PROCESSES RESULTS STDERR
    timeout -k 5 300 "$QKV" sweep -f prompts --epsilon logspace:1e-6,1,5 --metrics sink,tv -t "$1" -o "$2" 2>"$3"
}

# ---- kills ----

is_alive() { # PID; a zombie waits for its parent only
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)
    [ "$state" ] && [ "$state" != Z ]
}

judge_followers() { # PIDS
    for pid in $1; do
        waited=0
        while is_alive "$pid"; do
            [ $waited -lt 600 ] || { complain "kills: process $pid was left behind"; break; }
            pause 100
            waited=$((waited + 1))
        done
    done
}

# The leader's status. It ends soon, whichever process was killed.
await_leader() {
    waited=0
    while is_alive "$leader"; do
        if [ $waited = 6000 ]; then
            complain "kills: the sweep hangs"
            kill -9 "-$leader"
        fi
        pause 20
        waited=$((waited + 1))
    done
    wait "$leader" 2>/dev/null
}

# Kills the leader, a follower or all of them; counts it when it hit somebody at work.
kill_one() { # DELAY; the sweep runs as $leader
    pause "$1"
    followers=$(cat "/proc/$leader/task/$leader/children" 2>/dev/null)
    victim=$(random 3)
    first=${followers%% *}
    case $victim in
    0) kill -9 "$leader" ;;
    1) kill -9 "-$leader" ;;
    *) kill -9 "${first:-$leader}" ;;
    esac 2>/dev/null
    await_leader
    status=$?
    judge_followers "$followers"
    [ $status = 0 ] && return
    kills=$((kills + 1))
    if [ "$victim" = 2 ] && [ "$first" ]; then
        judge_failure $status stderr "kills: a lost process"
        lost=$((lost + 1))
    else
        [ $status = 137 ] || complain "kills: exit status $status: $(cat stderr)"
    fi
}

kill_until_complete() { # END
    status=1
    while [ $status != 0 ] && [ "$(now)" -lt "$1" ]; do
        setsid "$QKV" sweep -f prompts --epsilon logspace:1e-6,1,5 --metrics sink,tv \
            -t "$((1 + $(random 5)))" -o kills.sqlite 2>stderr &
        leader=$!
        kill_one "$((10 + $(random "$((duration / 2))")))"
    done
}

stress_kills() { # END
    kills=0 lost=0 sweeps=0
    while [ "$(now)" -lt "$1" ]; do
        kill_until_complete "$1"
        sweep 3 kills.sqlite stderr || complain "kills: cannot be resumed: $(cat stderr)"
        judge_rows kills.sqlite kills
        sweeps=$((sweeps + 1))
        rm -f kills.sqlite*
    done
    echo "kills: $kills kills in $sweeps sweeps, $lost of them of one process among several"
    [ $kills -gt 0 ] || complain "kills: nothing was killed"
}

# ---- pairs ----

stress_pairs() { # END
    pairs=0 refused=0
    while [ "$(now)" -lt "$1" ]; do
        sweep "$((1 + $(random 2)))" pairs.sqlite stderr.1 &
        one=$!
        # At once, while the file is made, or at any time.
        case $((pairs % 3)) in
        1) pause "$(random 40)" ;;
        2) pause "$(random "$duration")" ;;
        esac
        sweep "$((1 + $(random 2)))" pairs.sqlite stderr.2 &
        two=$!
        wait $one
        status_one=$?
        wait $two
        status_two=$?
        pairs=$((pairs + 1))
        if [ $status_one != 0 ]; then judge_failure $status_one stderr.1 pairs; fi
        if [ $status_two != 0 ]; then judge_failure $status_two stderr.2 pairs; fi
        if [ $status_one != 0 ] && [ $status_two != 0 ]; then
            complain "pairs: both failed: $(cat stderr.1) -- $(cat stderr.2)"
            rm -f pairs.sqlite*
            continue
        fi
        [ $((status_one + status_two)) = 0 ] || refused=$((refused + 1))
        judge_rows pairs.sqlite pairs
        rm -f pairs.sqlite*
    done
    echo "pairs: $pairs pairs started together, one of them refused in $refused"
    [ $pairs -gt 0 ] || complain "pairs: nothing was started"
}

# ---- disks ----

# An output is there as a whole or not at all.
judge_output() { # DIRECTORY
    if "$QKV" run --tokens 5,6,7,8,9 --capture 'pattern@*' -o "$1/run.safetensors" 2>stderr; then
        cmp whole.safetensors "$1/run.safetensors" || complain "disks: an output is not what it should be"
    else
        judge_failure $? stderr "disks: run"
        [ "$(find "$1" -name 'run*')" = "" ] || complain "disks: left behind: $(ls "$1")"
    fi
    rm -f "$1"/run*
}

# A sweep into a directory that may have too little room.
fill_disk() { # DIRECTORY
    sweep "$((1 + $(random 3)))" "$1/full.sqlite" stderr
    status=$?
    was_full=0
    if [ $status != 0 ]; then
        was_full=1
        judge_failure $status stderr disks
    fi
    judge_output "$1"
}

resume_disk() { # DIRECTORY
    sweep 2 "$1/full.sqlite" stderr || complain "disks: cannot be resumed: $(cat stderr)"
    judge_rows "$1/full.sqlite" disks
    rm -f "$1"/full.sqlite*
}

count_disk() { # OUTCOME: 1 for a full one, and 2 when something did not hold
    disks=$((disks + 1))
    full=$((full + $1 % 2))
    [ "$1" -lt 2 ] || failed=1
}

limited_file() {
    (
        trap '' XFSZ
        ulimit -f "$((1 + $(random "$((size / 600))")))" # in blocks of 512 bytes: always too few
        failed=0
        fill_disk .
        exit $((2 * failed + was_full))
    )
    count_disk $?
    resume_disk .
}

# In a mount namespace of its own, whose mounts end with it.
small_disk() {
    mkdir -p disk
    room=$((40 + $(random "$((size / 700))")))
    mount -t tmpfs -o size=${room}k none disk || exit 4
    failed=0
    fill_disk disk
    mount -o remount,size=100m disk
    resume_disk disk
    exit $((2 * failed + was_full))
}

small_disk_apart() {
    unshare -m "$here/stress.sh" --small-disk "$size"
    count_disk $?
}

can_mount() {
    unshare -m sh -c 'mkdir -p disk && mount -t tmpfs -o size=40k none disk' 2>/dev/null
}

stress_disks() { # END
    disks=0 full=0 how="a limited file size"
    if can_mount; then how="a small file system and $how"; fi
    while [ "$(now)" -lt "$1" ]; do
        limited_file
        case $how in *system*) small_disk_apart ;; esac
    done
    echo "disks: $full of $disks were full, by $how"
    [ $full -gt 0 ] || complain "disks: nothing was full"
}

# ---- all of it ----

# What a sweep and a run give that are left alone, and how long and large the sweep is.
prepare() {
    i=0
    while [ $i -lt 24 ]; do
        echo "On day $i the boat left the harbour at noon and came back before the rain began."
        i=$((i + 1))
    done >prompts
    start=$(now)
    sweep 1 whole.sqlite stderr || { cat stderr; exit 1; }
    duration=$(($(now) - start))
    size=$(wc -c <whole.sqlite)
    "$QKV" sweep export whole.sqlite -o whole.csv &&
        "$QKV" run --tokens 5,6,7,8,9 --capture 'pattern@*' -o whole.safetensors || exit 1
}

if [ "${1-}" = --small-disk ]; then
    size=$2
    small_disk
fi
seconds=${1:-${STRESS_SECONDS:-300}}
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
prepare
share() { # PERCENT: when a part ends that begins now
    echo $(($(now) + seconds * 10 * $1))
}
stress_kills "$(share 35)"
stress_pairs "$(share 15)"
stress_disks "$(share 15)"
timeout -k 5 $((seconds + 300)) "$sessions" $((seconds * 20 / 100)) . || complain "sessions: exit status $?"
timeout -k 5 $((seconds + 300)) "$walk" $((seconds * 15 / 100)) || complain "walk: exit status $?"
exit $failed
