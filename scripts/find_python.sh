#!/bin/sh
# Prints version and path of the best supported Python interpreter, or says in one sentence what is missing.
#   scripts/find_python.sh [PYTHON]    only that one is considered: a path, a command or a version like 3.12
set -u

supported="3.11 3.10 3.12 3.13"

# Prints version, path and what is wrong with the interpreter, if anything. Runs on any Python.
probe='
import platform, sys
version = "%d.%d" % sys.version_info[:2]
wrong = ""
if version not in sys.argv[1].split():
    wrong = "not supported"
elif sys.version_info < (3, 12) and platform.machine().lower() not in ("x86_64", "amd64"):
    wrong = "no TensorFlow Text 2.15 for " + platform.machine()
else:
    try:
        import ensurepip, venv
    except ImportError:
        wrong = "without its venv module"
print("|".join([version, sys.executable, wrong]))
'

candidates_of_version() {
    echo "python$1"
    for path in "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$1".*/bin/python3; do
        if [ -x "$path" ]; then echo "$path"; fi
    done
}

candidates() {
    case "$1" in
        3.[0-9] | 3.[0-9][0-9]) candidates_of_version "$1" ;;
        ?*) echo "$1" ;;
        *)
            for version in $supported; do candidates_of_version "$version"; done
            echo python3
            echo python
            ;;
    esac
}

list=$(candidates "${1:-}")
best="" best_rank=99 found=""
IFS='
'
for candidate in $list; do
    # A pyenv shim of a version that is not selected exists on the PATH but does not run.
    answer=$("$candidate" -c "$probe" "$supported" 2>/dev/null) || continue
    version=${answer%%|*} wrong=${answer##*|}
    path=${answer#*|} path=${path%|*}
    if [ -n "$wrong" ]; then
        found="$found${found:+, }$version ($path: $wrong)"
        continue
    fi
    before=${supported%%"$version"*} # Its length is the version's rank.
    if [ "${#before}" -lt "$best_rank" ]; then
        best="$version $path" best_rank=${#before}
    fi
    if [ "$best_rank" = 0 ]; then break; fi
done

if [ -n "$best" ]; then
    echo "$best"
    exit 0
fi
if [ -n "${1:-}" ] && [ -z "$found" ]; then found="$1, which does not run as a Python"; fi
echo "No supported Python was found (found: ${found:-none}): install Python 3.11 (3.12 on ARM processors) with its" \
    "venv module, or name one of version 3.10 to 3.13, as in: make test PYTHON=/path/to/python3.12" >&2
exit 1
