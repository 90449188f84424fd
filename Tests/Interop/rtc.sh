#!/usr/bin/env bash
# usage: rtc.sh MILLRACE AIORTC_FOLDER [CASE...]
# Runs WebRTC and RTP between MILLRACE and programs that others wrote: Debian's Janus, coturn, Chromium and FFmpeg, and aiortc, which is in
# AIORTC_FOLDER. Prints a line for each case and how many passed; fails when one did not. With names only those cases; `rtc.sh MILLRACE
# AIORTC_FOLDER --list` shows them. Needs root: both sides are in networks of their own, which end with the script.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 "$(dirname "$0")/rtc-peers/cases.py" "$@"
