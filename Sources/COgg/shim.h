// libogg as Swift sees it. Its sync, stream, page, packet and bit-packing calls are plain functions over plain
// structs and all import as they are; nothing needs a wrapper.
#pragma once

#include <ogg/ogg.h>
