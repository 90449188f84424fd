# Everything a checkout can do, from a fresh Debian 12 with Swift 6.3 on. `make` alone lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# SwiftPM locks its build folder: two targets at once would only wait for each other.
.NOTPARALLEL:
# A recipe is one script, so that its variables and conditions hold from line to line.
.ONESHELL:

# Recordings for the quality tests. A test that needs one and finds none reports itself skipped.
export MILLRACE_CORPUS ?= ../shared

# SwiftPM hands the package's traits to the compiler in the order of a set. With a seed at random that is another order in every second
# build, and then everything is compiled again.
export SWIFT_DETERMINISTIC_HASHING := 1
# Tests must not depend on the order of a set.
SWIFT_TEST := env --unset=SWIFT_DETERMINISTIC_HASHING swift test

# Debian's packages, each with what it is needed for.
PACKAGES :=
PACKAGES += g++                   # start files and libstdc++, which Swift links; the C++ rivals of benchmarks/
PACKAGES += pkg-config            # how SwiftPM finds the libraries
PACKAGES += libopus-dev           # Opus
PACKAGES += libogg-dev            # Ogg
PACKAGES += libmpg123-dev         # MP3 as it comes
PACKAGES += libavformat-dev       # containers: FLAC, MP3, MP4 and the rest
PACKAGES += libavcodec-dev        # what they contain
PACKAGES += libavutil-dev         # errors, layouts, frames
PACKAGES += libswresample-dev     # sample formats
PACKAGES += libswscale-dev        # picture sizes and pixel formats
PACKAGES += libavdevice-dev       # screen and camera
PACKAGES += libjpeg62-turbo-dev   # JPEG under a byte budget
PACKAGES += libspeexdsp-dev       # noise suppression; echo cancellation to fall back on
PACKAGES += libpulse-dev          # sound servers: PulseAudio, PipeWire
PACKAGES += libasound2-dev        # sound cards without a server
PACKAGES += libsamplerate0-dev    # follows one device's clock with another's
PACKAGES += libnice-dev           # WebRTC: ICE,
PACKAGES += libssl-dev            # DTLS, and the ciphers and digests of all services,
PACKAGES += libsrtp2-dev          # SRTP,
PACKAGES += libusrsctp-dev        # and SCTP below data channels
PACKAGES += xvfb                  # a screen to capture, for tests
PACKAGES += x11-xserver-utils     # paints that screen
PACKAGES += ffmpeg                # what other programs make of our files, and we of theirs, for tests
PACKAGES += sox                   # the same once more
PACKAGES += python3-pip           # fetches the voice detector's weights
PACKAGES += opus-tools            # opusinfo: a second opinion on what the demo wrote
PACKAGES += alsa-utils            # a voice recorded at 48 kHz
PACKAGES += espeak-ng             # the voice of the services' doubles
PACKAGES += pocketsphinx-testdata # sentences read for LibriVox, at 16 kHz

# What `make bench` measures Millrace beside, when it is there. Nothing else needs any of it.
PEERS :=
PEERS += libboost-dev              # boost::lockfree::spsc_queue
PEERS += libreaderwriterqueue-dev  # moodycamel's ReaderWriterQueue
PEERS += libgstreamer1.0-dev       # GStreamer
PEERS += gstreamer1.0-plugins-base # its resampler, Opus and Ogg
PEERS += gstreamer1.0-plugins-good # its WAV reader and level meter

# Servers that tests of `make test` start for themselves on loopback, and clients of ours. Nothing else needs any of it. (Debian's nginx also
# starts as a web server of the machine where nothing else has port 80; the tests have no use for that one.)
TEST_PACKAGES :=
TEST_PACKAGES += nginx             # pushes and pulls streams:
TEST_PACKAGES += libnginx-mod-rtmp # its RTMP module
TEST_PACKAGES += libnginx-mod-stream # TLS before it
TEST_PACKAGES += curl              # asks the HTTP server
TEST_PACKAGES += python3           # the same, and answers the HTTP client

# What `make test-devices` runs devices on: a sound server without hardware, and ALSA's way to it. Nothing else needs any of it.
DEVICE_PACKAGES :=
DEVICE_PACKAGES += pulseaudio        # the sound server
DEVICE_PACKAGES += pulseaudio-utils  # what plays to it and records from it beside Millrace
DEVICE_PACKAGES += libasound2-plugins # ALSA through the sound server

# What `make interop-metrics` reads the page of metrics with. Nothing else needs it. (Debian's package also has the server, which starts
# where something like systemd does.)
METRICS_PACKAGES :=
METRICS_PACKAGES += prometheus       # promtool
METRICS_PACKAGES += curl             # what most look with

# What `make interop-rtc` talks to. Nothing else needs any of it. (Debian's janus and coturn have services that start where something like
# systemd does; the tests start their own.)
RTC_PACKAGES :=
RTC_PACKAGES += janus              # a conference server: rooms, bridges, streams
RTC_PACKAGES += coturn             # a TURN server
RTC_PACKAGES += chromium           # a browser
RTC_PACKAGES += ffmpeg             # plain RTP
RTC_PACKAGES += iproute2           # networks of their own for both sides
RTC_PACKAGES += python3            # runs the peers

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

# Folders with Swift of this project. Missing ones are left out, and so are build folders below them.
SWIFT_PLACES := $(wildcard Package.swift Sources Tests Examples benchmarks)
SWIFT_FILES = $(shell find $(SWIFT_PLACES) -name '.build*' -prune -o -type f -name '*.swift' -print)

# Every library of the package has documentation; the folder names are the module names.
MODULES := $(notdir $(wildcard Sources/Millrace*))

MILLRACE := .build/release/millrace
VOICE_48K := /usr/share/sounds/alsa/Front_Center.wav
VOICE_16K := /usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav

# Seconds of fuzzing a target at most, inputs of a target at most (-1: any), and the seed that repeats a run (0: another each time).
SECONDS ?= 30
RUNS ?= -1
SEED ?= 0
# How long to measure mouth to ear, and parameters of the graph to try.
MINUTES ?= 10
WITH ?=
# The port of the page of metrics of the demo's dialogue; 0: a free one.
METRICS ?= 0
# Bench suites, or empty for all; where to keep the figures, and kept ones to compare with.
SUITE ?=
SAVE ?=
AGAINST ?=

# Hands the output of `swift test` on as it comes, and fails when no test ran: a filter that has come to match
# nothing must not pass.
MUST_RUN := awk '{ print; fflush() } /Test run with [1-9]/ { ran = 1 } END { if (!ran) print "no test ran"; exit !ran }'

# Ends tests that hang, where nobody looks on who could: a limit of the machine would end everything without saying what hung. At a
# terminal it would keep Ctrl-C from the tests.
IN_TIME := $(shell test -t 0 || echo timeout --kill-after=10 1500)

.PHONY: help
help: ## show this list
	@echo "make TARGET, where TARGET is"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

# $(1) are Debian packages; those that are missing get installed.
define install
if ! command -v dpkg-query >/dev/null; then
  echo "make: this is not Debian; install the counterparts of: $(strip $(1))"
  exit 0
fi
missing=()
for package in $(1); do
  # A removed package whose configuration stayed is known to dpkg, but not installed. One line an architecture.
  dpkg-query --show --showformat='$${db:Status-Status}\n' "$$package" 2>/dev/null | grep -qx installed ||
    missing+=("$$package")
done
if (( $${#missing[@]} == 0 )); then exit 0; fi
echo "installing $${missing[*]}"
$(SUDO) apt-get update --quiet
# The recommended packages are players and sound servers, of which nothing here makes use.
$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$${missing[@]}"
endef

.PHONY: deps
deps: ## install the Debian packages that are missing
	@$(call install,$(PACKAGES))

.PHONY: models
models: deps ## get the weights of the voice activity detector (pinned, checked, once) into ~/.cache/millrace/models
	@Models/silero-vad.py

.PHONY: build
build: deps ## build the runner, release, into .build/release/millrace
	@# One file that needs no Swift on the machine it is copied to, only Debian's C libraries.
	swift build --configuration release --static-swift-stdlib --product millrace

# $(1) goes up as Opus in an Ogg file and comes back as WAV; what was written is looked at by another program.
define round_trip
	@voice="$(1)"
	if [[ ! -r $$voice ]]; then echo "make: error: cannot read the recording \"$$voice\"; name another with INPUT=file" >&2; exit 2; fi
	name=$$(basename "$$voice"); name=$${name%.*}
	up=out/$$name-uplink.opus; back=out/$$name-return.wav
	mkdir -p out
	# What an earlier run left must not stand in for what this one writes.
	rm -f "$$up" "$$back"
	$(MILLRACE) run graphs/voice-uplink.json --set "input=$$voice" --set "output=$$up"
	$(MILLRACE) run graphs/voice-return.json --set "input=$$up" --set "output=$$back"
	for file in "$$up" "$$back"; do
	  if [[ ! -s $$file ]]; then echo "make: error: \"$$file\" was not written" >&2; exit 1; fi
	done
	if command -v opusinfo >/dev/null; then opusinfo "$$up"; fi
	ls -l "$$up" "$$back"
endef

# A dialogue with the service's double, in real time and without devices: a file with $(1) in it is the microphone, another the
# loudspeaker. It is ended after a minute at the latest.
define dialogue
	@voice="$(1)"
	if [[ ! -r $$voice ]]; then echo "make: error: cannot read the recording \"$$voice\"" >&2; exit 2; fi
	mkdir -p out
	written=(out/dialogue.wav out/dialogue.txt out/dialogue.html out/dialogue.jsonl out/turns.json)
	rm -f "$${written[@]}" out/microphone.wav out/metrics.txt out/metrics.new
	: >out/dialogue.log
	# Somebody who speaks has said nothing before, and listens afterwards.
	sox "$$voice" --channels 1 --rate 48000 out/microphone.wav pad 0.5 2
	timeout --kill-after=10 60 $(MILLRACE) talk graphs/bailian-voice.json --plain \
	  --double --scenario graphs/scenarios/front-center.json \
	  --set microphone=file --set input=out/microphone.wav --set rate=48000 \
	  --set loudspeaker=file --set output=out/dialogue.wav --set log=out/dialogue.jsonl --set linger=3000 \
	  --transcript out/dialogue.txt --report out/dialogue.html --otel out/turns.json --metrics $(METRICS) \
	  </dev/null 2> >(tee out/dialogue.log >&2) &
	dialogue=$$!
	# What Prometheus would get of it, twice a second until it is over.
	while kill -0 $$dialogue 2>/dev/null; do
	  page=$$(sed -n 's/^metrics: //p' out/dialogue.log)
	  if [[ -n $$page ]] && command -v curl >/dev/null; then
	    ! curl --silent --fail --max-time 5 "$$page" >out/metrics.new || mv out/metrics.new out/metrics.txt
	  fi
	  sleep 0.5
	done
	wait $$dialogue
	for file in "$${written[@]}"; do
	  if [[ ! -s $$file ]]; then echo "make: error: \"$$file\" was not written" >&2; exit 1; fi
	done
	if ! grep -q '^bot: ' out/dialogue.txt; then echo "make: error: nothing was answered" >&2; exit 1; fi
	echo "what was said, out/dialogue.txt:"
	cat out/dialogue.txt
	if [[ -s out/metrics.txt ]]; then
	  echo "from its page of metrics while it ran, out/metrics.txt:"
	  grep -E '^millrace_(runs|node_packets_taken_total|run_first_packet_seconds)[{]' out/metrics.txt | tail -n 12
	fi
	echo "its turns as OpenTelemetry JSON: out/turns.json"
	echo "what was heard: out/dialogue.wav; every time of it, to look at: out/dialogue.html"
	ls -l "$${written[@]}"
endef

.PHONY: demo
demo: build models ## run recorded voices up and back, and a dialogue with a service's double, into out/ (INPUT=file for your own)
ifdef INPUT
	$(call round_trip,$(INPUT))
else
	$(call round_trip,$(VOICE_48K))
	$(call round_trip,$(VOICE_16K))
	$(call dialogue,$(VOICE_48K))
endif

# Where the page of `make demo-web` is, on this machine; the simulated service has the port after it. CHECK=1: not to be looked at, only
# asked for.
PORT ?= 8080
CHECK ?=

.PHONY: demo-web
demo-web: build models $(if $(CHECK),room-deps) ## talk with a bot in the browser, without an account (PORT=8080; CHECK=1 only asks for the page)
	@page=http://127.0.0.1:$(PORT)/
	listens() { (exec 3<>/dev/tcp/127.0.0.1/$(PORT)) 2>/dev/null; }
	run=($(MILLRACE) run graphs/web-bot.json --quiet --set port=$(PORT) --set servicePort=$$(($(PORT) + 1)))
	if listens; then echo "make: error: port $(PORT) is in use; name another with PORT=number" >&2; exit 2; fi
	# Waits for what a command finds while the program runs, a minute at most.
	until_there() {
	  for _ in {1..600}; do
	    if "$$@"; then return; fi
	    if [[ -n "$${bot:-}" ]] && ! kill -0 "$$bot" 2>/dev/null; then break; fi
	    sleep 0.1
	  done
	  return 1
	}
	show() {
	  until_there listens || return 0
	  echo "the bot is at $$page; Ctrl-C ends it"
	  if [[ -n "$${BROWSER:-}" ]]; then "$$BROWSER" "$$page"
	  elif [[ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]] && command -v xdg-open >/dev/null; then xdg-open "$$page"
	  fi >/dev/null 2>&1
	}
	if [[ -z "$(CHECK)" ]]; then
	  show &
	  trap 'kill $$! 2>/dev/null || true' EXIT
	  "$${run[@]}"
	  exit
	fi
	# The page answers when nodes are still being created; who asks the program to end then has nothing started.
	events=$$(mktemp -d)
	has_started() { grep -qs '"node":"room".*"listening"' "$$events/log"; }
	timeout --foreground --kill-after=10 90 "$${run[@]}" --set log="$$events/log" &
	bot=$$!
	trap 'kill $$bot 2>/dev/null || true; rm -r "$$events"' EXIT
	until_there listens
	until_there has_started
	for path in "" room.js; do
	  curl --silent --show-error --fail --max-time 10 --output /dev/null --write-out '%{http_code} %{url} %{size_download} bytes\n' "$$page$$path"
	done
	kill $$bot
	wait $$bot

# Tests that talk with sockets, programs, devices and terminals in real time. They mostly wait; those that compute run before them and
# apart, few at a time: beside a thousand that keep every core busy each answer would come seconds late.
TALKING_TESTS := Millrace(Net|WebSocket|RTC|RTCSignal|RTCNodes|Room|Bailian|IVH|Tuya|TuyaDouble|Conformance|Dialog|Doubles|Devices|Runner|Server|Service)Tests
TALKING_TESTS := $(TALKING_TESTS)|EchoServiceTests|MillraceTests\.(Talk|Bailian|Avatar|Tuya|RTMP|Control|Signal|Top|Duration)
TALKING_TESTS := $(TALKING_TESTS)|MillraceVideoTests\.(RTMP|Stream|Secure|VideoCapture)
TALKING_TESTS := $(TALKING_TESTS)|MillraceFlowTests\.(Process|Stalled)
# So many at once that their waits overlap.
TALKING_AT_ONCE := 12
# Hundreds that wait for programs at the same time cost the test library more than what they wait for.
COMPUTING_AT_ONCE := 8
# A sanitizer makes each test ten times as expensive: all of them at once would spend their time on each other.
SANITIZED_AT_ONCE := 8
SANITIZED_TEST = $(IN_TIME) $(SWIFT_TEST) --skip-build --parallel --disable-xctest \
  --experimental-maximum-parallelization-width $(SANITIZED_AT_ONCE)

.PHONY: test-deps
test-deps: deps
	@$(call install,$(TEST_PACKAGES))

.PHONY: test
test: test-deps models ## run all tests
	@# Without XCTest, of which there are none: its empty summary would hide the real one.
	swift build --build-tests
	failed=0
	# Every wait in the tests is bounded; so is the whole.
	$(IN_TIME) $(SWIFT_TEST) --skip-build --parallel --experimental-maximum-parallelization-width $(COMPUTING_AT_ONCE) \
	  --disable-xctest --skip '$(TALKING_TESTS)' | $(MUST_RUN) || failed=1
	$(IN_TIME) $(SWIFT_TEST) --skip-build --parallel --experimental-maximum-parallelization-width $(TALKING_AT_ONCE) \
	  --disable-xctest --filter '$(TALKING_TESTS)' | $(MUST_RUN) || failed=1
	exit $$failed

.PHONY: test-nodes
test-nodes: build ## run every service node against the double of its service
	@timeout --kill-after=10 850 $(MILLRACE) test-node

.PHONY: device-deps
device-deps: deps
	@$(call install,$(DEVICE_PACKAGES))

# Every wait in these tests is bounded; so is the whole.
.PHONY: test-devices
test-devices: device-deps ## run devices on a sound server without hardware
	@swift build --build-tests
	MILLRACE_DEVICES=1 MILLRACE_PROGRAM="$$(swift build --show-bin-path)/millrace" timeout --kill-after=10 1300 \
	  $(SWIFT_TEST) --skip-build --disable-xctest --filter MillraceDeviceRigTests.DeviceRigTests | $(MUST_RUN)

.PHONY: mouth-to-ear
mouth-to-ear: device-deps build ## measure mouth to ear (MINUTES=10; WITH="frame=5 latency=6" sets parameters of the graph)
	@swift build --build-tests
	MILLRACE_MINUTES=$(MINUTES) MILLRACE_SET="$(WITH)" MILLRACE_PROGRAM="$$PWD/$(MILLRACE)" \
	  $(SWIFT_TEST) --skip-build --disable-xctest --filter MillraceDeviceRigTests.LongRigTests | $(MUST_RUN)

.PHONY: bench-streams
bench-streams: test-deps ## measure how late the pictures of a live stream are, on a server on this machine
	@# Tests built for release are built otherwise than the program: in a folder of their own, and these alone.
	MILLRACE_PARTS=video MILLRACE_FIGURES=1 timeout --kill-after=10 900 \
	  $(SWIFT_TEST) --configuration release -Xswiftc -enable-testing --scratch-path .build-streams --disable-xctest \
	  --filter RTMPPullFigures | $(MUST_RUN)

# A Python of its own in the build folder: nothing of this is needed to build or to run Millrace.
PEER_PYTHON := .build/interop
RECORDINGS = $(VOICE_16K) $(VOICE_48K) $(wildcard $(MILLRACE_CORPUS)/audio/vad/*.flac $(MILLRACE_CORPUS)/audio/speech/*.flac)

.PHONY: interop-vad
interop-vad: build models ## compare the voice detector with ONNX Runtime, step by step, on recordings
	@mkdir -p $(PEER_PYTHON)/wheel
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON) --upgrade \
	  onnxruntime==1.31.1 numpy==2.4.6
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --dest $(PEER_PYTHON)/wheel --requirement Models/silero-vad.txt
	PYTHONPATH=$(PEER_PYTHON) Tests/Interop/vad.py $(MILLRACE) $(PEER_PYTHON)/wheel/*.whl $(RECORDINGS)

.PHONY: interop-jpeg
interop-jpeg: build ## have Pillow check every JPEG that the release program makes of videos, photographs and unusual pictures
	@mkdir -p $(PEER_PYTHON)
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON) --upgrade pillow==13.0.0 numpy==2.4.6
	PYTHONPATH=$(PEER_PYTHON) timeout --kill-after=10 300 \
	  Tests/Interop/jpeg.py $(MILLRACE) $(wildcard $(MILLRACE_CORPUS)/video)

.PHONY: interop-bailian
interop-bailian: build ## run the vendor's own SDK through dialogues with the double of Bailian
	@mkdir -p $(PEER_PYTHON)/dashscope
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON)/dashscope --upgrade \
	  dashscope==2.0.2
	PYTHONPATH=$(PEER_PYTHON)/dashscope timeout --kill-after=10 900 \
	  Tests/Interop/bailian.py $(MILLRACE) $(VOICE_16K)

# Another implementation and ours, each as the other's client and server.
.PHONY: interop-net
interop-net: deps ## check the WebSockets against the package websockets of PyPI
	@mkdir -p $(PEER_PYTHON)
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON) --upgrade websockets==17.4
	swift build --product net-peer
	PYTHONPATH=$(PEER_PYTHON) timeout --kill-after=10 300 \
	  Tests/Interop/net.py .build/debug/net-peer Tests/TestNet/Certificates

.PHONY: rtc-deps
rtc-deps: deps
	@$(call install,$(RTC_PACKAGES))

# Debian's Janus, coturn and FFmpeg, Chromium, and aiortc of PyPI, each on another network than the program.
.PHONY: interop-rtc
interop-rtc: rtc-deps build ## check WebRTC and RTP against Janus, aiortc, Chromium, FFmpeg and coturn
	@mkdir -p $(PEER_PYTHON)/aiortc
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON)/aiortc --upgrade \
	  aiortc==1.16.0 aiohttp==3.14.5
	timeout --kill-after=10 600 Tests/Interop/rtc.sh $(MILLRACE) "$$PWD/$(PEER_PYTHON)/aiortc"

# What `make interop-room` and `make demo-web CHECK=1` look at rooms with. Firefox needs a sound server for its sound.
ROOM_PACKAGES := chromium firefox-esr pulseaudio curl python3

.PHONY: room-deps
room-deps: deps
	@$(call install,$(ROOM_PACKAGES))

# Bounded: a minute or less a case.
.PHONY: interop-room
interop-room: room-deps build models ## check the page of a room in Chromium and Firefox, with a bot and with people (LONG=1: five minutes, too)
	@timeout --kill-after=10 $(if $(LONG),1500,840) Tests/Interop/room.sh $(MILLRACE)

.PHONY: metrics-deps
metrics-deps: deps
	@$(call install,$(METRICS_PACKAGES))

.PHONY: interop-metrics
interop-metrics: metrics-deps build models ## have Prometheus and OpenTelemetry read a dialogue's metrics and turns, and ten thousand ask at once
	@mkdir -p $(PEER_PYTHON)/otel
	python3 -m pip install --quiet --disable-pip-version-check --target $(PEER_PYTHON)/otel --upgrade \
	  opentelemetry-proto==1.45.2
	timeout --kill-after=10 600 Tests/Interop/metrics.sh $(MILLRACE) "$$PWD/$(PEER_PYTHON)/otel" $(VOICE_48K)

# The examples are packages of their own, as any user of Millrace would write them. Two of them leave out Millrace's default traits, so
# that all of it is compiled otherwise for them: in a folder of their own, so that going to and fro does not rebuild everything. The third is built
# into the folder of `swift build`, where what it stands on is compiled already.
EXAMPLES_BUILD ?= .build-examples
EXAMPLES := --scratch-path $(EXAMPLES_BUILD) --package-path Examples

.PHONY: examples
examples: examples-without-traits example-bot ## build the examples, which are packages of their own, and run them

.PHONY: examples-without-traits
examples-without-traits: metrics-deps
	@swift build $(EXAMPLES)/PhoneNodes --build-tests
	$(SWIFT_TEST) $(EXAMPLES)/PhoneNodes --skip-build --disable-xctest | $(MUST_RUN)
	swift build $(EXAMPLES)/SpeechServer
	timeout --kill-after=10 300 Tests/Interop/speech-server.sh $(EXAMPLES_BUILD)/debug/SpeechServer

.PHONY: example-bot
example-bot: deps
	@swift build --scratch-path .build --package-path Examples/PushToBot
	timeout --kill-after=10 120 Tests/Interop/push-to-bot.sh .build/debug/push-to-bot

# A build without microphones, loudspeakers, pictures and calls, in a folder of its own.
.PHONY: traits
traits: deps ## build the runner without the parts a server can do without, and look that it does without their libraries
	@swift build --disable-default-traits --product millrace --scratch-path .build-traits
	program=.build-traits/debug/millrace
	if ldd $$program | grep -E 'libpulse|libasound|libjpeg|libsamplerate|libnice|libsrtp2|libusrsctp'; then
	  echo "make: error: the build without traits still needs these libraries" >&2; exit 1
	fi
	if $$program nodes | grep -E '^ *(audio\.(capture|play)|video\.|image\.|rtmp\.|rtc\.)'; then
	  echo "make: error: the build without traits still has these nodes" >&2; exit 1
	fi
	$$program run graphs/voice-uplink.json --quiet --set input=$(VOICE_48K) --set output=.build-traits/uplink.opus
	opusinfo .build-traits/uplink.opus

.PHONY: lint
lint: ## check format and words
	@swift format lint --strict --parallel $(SWIFT_FILES)
	.ci/words

.PHONY: format
format: ## put all Swift files into the one format
	@swift format format --in-place --parallel $(SWIFT_FILES)

.PHONY: bench
bench: deps ## measure and print the figures (SUITE="ring hop" some of them; SAVE=file, AGAINST=file)
	@swift run --configuration release --package-path benchmarks millrace-bench $(SUITE) \
	  $(if $(SAVE),--save '$(SAVE)') $(if $(AGAINST),--against '$(AGAINST)')

.PHONY: bench-peers
bench-peers: ## install what make bench measures Millrace beside: C++ rings, GStreamer
	@# The compiler looked for their headers once and remembers the answer.
	touch benchmarks/Sources/CPeerRings/rings.cpp benchmarks/Sources/CPeerGStreamer/*.c benchmarks/Package.swift
	$(call install,$(PEERS))

.PHONY: reference
reference: build ## write the page of every node into Documentation/reference
	@rm -rf Documentation/reference
	$(MILLRACE) nodes --markdown -o Documentation/reference

.PHONY: reference-check
reference-check: build
	@# The pages are made from the contracts; a contract that changed has to bring its page along.
	fresh=$$(mktemp --directory)
	trap 'rm -rf "$$fresh"' EXIT
	$(MILLRACE) nodes --markdown -o "$$fresh/reference" >/dev/null
	diff --recursive --brief Documentation/reference "$$fresh/reference" ||
	  { echo "make: error: Documentation/reference is out of date; run make reference" >&2; exit 1; }

.PHONY: api
api: deps ## write the page of the whole public API, Documentation/api.md; fails on names without documentation
	@swift build
	.ci/api-page -o Documentation/api.md

.PHONY: api-check
api-check: deps
	@swift build
	.ci/api-page --check Documentation/api.md

.PHONY: docs
docs: deps ## build the documentation of every library into .build/docs, warnings as errors
	@mkdir -p .build/docs
	refused=()
	for module in $(MODULES); do
	  swift package --allow-writing-to-directory .build/docs generate-documentation \
	    --target "$$module" --warnings-as-errors --output-path ".build/docs/$$module.doccarchive" ||
	    refused+=("$$module")
	done
	if (( $${#refused[@]} > 0 )); then echo "make: error: refused: $${refused[*]}" >&2; exit 1; fi

.PHONY: fuzz
fuzz: deps ## feed the parsers broken input (SECONDS=30 and RUNS=1000000 a target at most; SEED=1 repeats a run)
	@SEED=$(SEED) RUNS=$(RUNS) Tests/Fuzz/run.sh $(SECONDS)

# Streams and screens have threads of their own.
VIDEO_THREADS := MillraceVideoTests.(RTMPPullTests|RTMPPushTests|VideoCaptureTests)

# What asks for more memory than there is gets a refusal under the sanitizers, as without them.
tsan tsan-net: export TSAN_OPTIONS := allocator_may_return_null=1:suppressions=$(CURDIR)/.ci/thread-sanitizer

# The sanitizers build into folders of their own, so that going to and fro does not rebuild everything.
.PHONY: tsan
tsan: test-deps ## run the tests of core, engine, devices, and threads of streams and screens under ThreadSanitizer
	@# Only the parts that share memory between threads: the rest builds for minutes under the sanitizer.
	MILLRACE_PARTS=threads swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	MILLRACE_PARTS=threads $(SANITIZED_TEST) --sanitize=thread \
	  --scratch-path .build-tsan --filter 'MillraceCoreTests|MillraceEngineTests|MillraceTestingTests|MillraceAppTests|MillraceDevicesTests|$(VIDEO_THREADS)' | \
	  $(MUST_RUN)

# Sockets and services stand on NIO, which builds for minutes under the sanitizer: apart from what a check of the whole has time for.
.PHONY: tsan-net
tsan-net: test-deps ## run the tests of sockets, dialogues, services and calls under ThreadSanitizer
	@failed=0
	for part in net rtc room; do
	  echo "== $$part"
	  MILLRACE_PARTS=$$part swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	  MILLRACE_PARTS=$$part $(SANITIZED_TEST) --sanitize=thread --scratch-path .build-tsan | $(MUST_RUN) || failed=1
	done
	exit $$failed

# What AddressSanitizer goes over, one part of the package after the other: each builds and runs within minutes. All of them in one
# process would wait for each other longer than their tests do.
ASAN_PARTS ?= core codecs audio video net rtc room

.PHONY: asan
asan: test-deps models ## run tests under AddressSanitizer, the C also under UBSan (ASAN_PARTS="core codecs audio video net rtc room")
	@# The test runner itself leaks, so leaks are not looked for.
	export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 MILLRACE_SANITIZE=undefined
	failed=0
	for part in $(ASAN_PARTS); do
	  echo "== $$part"
	  MILLRACE_PARTS=$$part swift build --build-tests --sanitize=address --scratch-path .build-asan
	  MILLRACE_PARTS=$$part $(SANITIZED_TEST) --sanitize=address --scratch-path .build-asan | $(MUST_RUN) || failed=1
	done
	exit $$failed

.PHONY: clean
clean: ## remove what was built and what the demo wrote
	rm -rf .build .build-streams .build-tsan .build-asan .build-fuzz .build-traits .build-examples benchmarks/.build Examples/*/.build out
