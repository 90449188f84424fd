#!/usr/bin/env bash
# usage: room.sh MILLRACE [CASE...]
# Opens rooms of MILLRACE in headless Chromium, and in Firefox where that is installed, on loopback: a bot, people who hear each other,
# connections that break. Prints a line for each case with what was measured, and how many passed; fails when one did not. With names
# only those cases; `room.sh MILLRACE --list` shows them. LONG=1 adds five minutes of two people and a bot (MILLRACE_MINUTES=n: others).
# PICTURE=FILE writes the page as it looks after two turns.
set -euo pipefail
here=$(dirname "$0")
PYTHONPATH="$here/rtc-peers" PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/room-peers/room_cases.py" "$@"
