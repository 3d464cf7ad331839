#!/bin/sh
# Prints the path of the best supported Python interpreter, or says in one sentence what is missing.
#   scripts/find_python.sh [INTERPRETER]    with an argument, only that one is considered
set -u

supported="3.11 3.10 3.9 3.12 3.13"
probe='import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])'

candidates() {
    if [ -n "${1:-}" ]; then
        echo "$1"
        return
    fi
    for version in $supported; do
        echo "python$version"
        ls -dr "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3 2>/dev/null
    done
    echo python3
    echo python
}

# Interpreters that run and can make virtual environments, as VERSION=PATH. A pyenv shim of a version that is not
# selected exists on the PATH but does not run.
found=""
for candidate in $(candidates "${1:-}"); do
    version=$("$candidate" -c "$probe" 2>/dev/null) || continue
    found="$found $version=$(command -v "$candidate")"
done

for wanted in $supported; do
    for interpreter in $found; do
        case "$interpreter" in
            "$wanted="*)
                echo "${interpreter#*=}"
                exit 0
                ;;
        esac
    done
done

echo "No supported Python was found (found:${found:- none}): install Python 3.11 with its venv module, or name an" \
    "interpreter of version 3.9 to 3.13, as in: make test PYTHON=/path/to/python3.11" >&2
exit 1
