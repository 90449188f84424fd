// libopus for Swift: its own header, and typed functions instead of its variadic control calls.
#pragma once

#include <opus/opus.h>

#include "encoder_controls.h"
#include "decoder_controls.h"
