// libsamplerate for Swift. Its ratio may change with every call, which clock drift correction needs.
#pragma once

#include <samplerate.h>
