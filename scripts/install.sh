#!/bin/sh
# Makes a virtual environment with the packages of some files, unless it has them already.
#   scripts/install.sh INTERPRETER VENV [FILES]     default: those below
set -eu

interpreter=$1
venv=$2
files=${3:-requirements.txt requirements-parquet.txt} # The tests read Parquet files, too.
stamp="$venv/requirements.installed" # A copy of what was installed, written last.

if cat $files | cmp -s - "$stamp" && "$venv/bin/python" -c "" 2>/dev/null; then
    exit 0
fi
rm -f "$stamp"
if ! "$venv/bin/python" -c "import pip" 2>/dev/null; then
    rm -rf "$venv"
    "$interpreter" -m venv "$venv"
fi
echo "Installing the packages of $files into $venv (a minute or two)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    $(printf -- '--requirement %s ' $files)
cat $files >"$stamp.new"
mv "$stamp.new" "$stamp"
