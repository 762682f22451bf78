#!/bin/sh
set -eu

if [ "${1-}" = "--" ]; then
    shift
fi
printf 'Hello, %s!\n' "$1"
