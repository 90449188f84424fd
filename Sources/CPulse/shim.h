// libpulse for Swift: sound servers, both PulseAudio and PipeWire.
#pragma once

#include <pulse/pulseaudio.h>
