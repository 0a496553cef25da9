#!/bin/sh
# A PostgreSQL for tests on 127.0.0.1:$1, in a new folder that is printed; it trusts whoever connects from this machine.
# `--stop FOLDER` ends it, `--crash FOLDER` ends it as a power cut would and starts it again. The server refuses to run as root, so root starts it as the
# user that its package made.
set -eu

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || bin=$(dirname "$(command -v initdb)")

as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && su postgres -s /bin/sh -c "$1")
    else
        sh -c "$1"
    fi
}

if [ "$1" = "--stop" ]; then
    as_server "'$bin/pg_ctl' -D '$2' -m immediate stop >/dev/null"
    rm -rf "$2"
    exit
fi

if [ "$1" = "--crash" ]; then
    as_server "'$bin/pg_ctl' -D '$2' -m immediate -w -l '$2/log' restart >/dev/null"
    exit
fi

folder=$(as_server "mktemp -d /tmp/postgres-for-tests.XXXXXX")
as_server "'$bin/initdb' -D '$folder' -U postgres -A trust -E UTF8 --locale=C.UTF-8 >/dev/null"
as_server "'$bin/pg_ctl' -D '$folder' -l '$folder/log' -w -o '-p $1 -h 127.0.0.1 -k $folder' start >/dev/null"
echo "$folder"
