// Only for the compiler and linker settings that pkg-config knows; C includes the headers by itself.
#pragma once
