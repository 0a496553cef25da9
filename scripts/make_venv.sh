#!/bin/sh
# Makes the virtual environment $1, with the Python named by $2 or the first fit one that is found. One that was made at
# this very place and is fit stays as it is; one that was copied or moved here is made anew.
set -eu

venv=$1
wanted=${2:-}
unfit=

is_fit() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -z "$wanted" ] && grep -qsF "$(pwd)/$venv" "$venv/bin/activate" && is_fit "$venv/bin/python"; then
    exit 0
fi

if [ -n "$wanted" ]; then
    set -- "$wanted"
else
    set -- python3 python3.14 python3.13 python3.12 python3.11 python
fi

for python in "$@"; do
    is_fit "$python" || continue
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        unfit=${unfit:-$python}
        continue
    fi
    rm -rf "$venv"
    "$python" -m venv "$venv"
    echo "$venv: $("$venv/bin/python" --version)"
    exit 0
done

if [ -n "$unfit" ]; then
    echo "$unfit cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv" >&2
elif [ -n "$wanted" ]; then
    echo "$wanted is not a Python 3.11 or newer." >&2
else
    echo "No Python 3.11 or newer was found. Install one, or name it: make demo PYTHON=/path/to/python3" >&2
fi
exit 1
