// libpulse as Swift sees it: sound servers, PulseAudio and PipeWire alike.
#pragma once

#include <pulse/pulseaudio.h>
