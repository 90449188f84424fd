// libogg for Swift. Its sync, stream, page, packet and bit-packing calls are plain functions over plain
// structs and import unchanged; none needs a wrapper.
#pragma once

#include <ogg/ogg.h>
