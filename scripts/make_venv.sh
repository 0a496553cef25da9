#!/bin/sh
# Makes the virtual environment $1 anew, with the Python named by $2 or the first fit one that is found.
set -eu

venv=$1
wanted=${2:-}
unfit=

if [ -n "$wanted" ]; then
    set -- "$wanted"
else
    set -- python3 python3.14 python3.13 python3.12 python3.11 python
fi

for python in "$@"; do
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        continue
    fi
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
