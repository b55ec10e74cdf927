# What the scripts of this repository share; they source it and stand in the top directory then.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Programs that make file systems are there, and not in the PATH of everybody.
export PATH="$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin"

have() { command -v "$1" >/dev/null 2>&1; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    exit "${2:-1}"
}

# step NAME COMMAND...: runs it between two lines, of which the second says how long it took.
step() {
    local name=$1 start=$SECONDS status
    shift
    printf '==> %s\n' "$name"
    if "$@"; then status=0; else status=$?; fi
    printf '==> %s: exit status %d after %d s\n' "$name" "$status" "$((SECONDS - start))"
    return "$status"
}

# left_over: what a test may have forgotten, one thing a line.
left_over() {
    sed 's/^/mount: /' /proc/self/mounts
    local bound process
    for bound in /sys/block/loop*/loop/backing_file; do
        [ -e "$bound" ] && printf 'loop device: %s %s\n' "$bound" "$(cat "$bound" 2>/dev/null || true)"
    done
    for process in /proc/[0-9]*; do
        case $(basename "$(readlink "$process/exe" 2>/dev/null || true)") in
            untorn* | atomicdir*) printf 'process: %s %s\n' "${process#/proc/}" \
                "$(tr '\0' ' ' 2>/dev/null <"$process/cmdline" || true)" ;;
        esac
    done
    find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'untorn-*' -printf 'temporary file: %p\n'
}

# nothing_left BEFORE: fails when something is left over that the text BEFORE does not name.
nothing_left() {
    local left
    # What the kernel takes down by itself may need a moment.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        left=$(left_over | grep -Fxv -e "$1" || true)
        [ -n "$left" ] || return 0
        sleep 0.5
    done
    printf 'left behind:\n%s\n' "$left"
    return 1
}
