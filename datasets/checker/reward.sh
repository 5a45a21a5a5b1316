#!/bin/sh
# reward.sh [WORKSPACE]: sub-scores as JSON, then the reward as the last line. Without an argument the workspace is the
# directory that reward/ was copied into. -I and -S keep Python away from anything the workspace or its user may hold.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
exec /usr/bin/python3 -I -S -B "$here/check.py" "${1:-$here/..}" --reward
