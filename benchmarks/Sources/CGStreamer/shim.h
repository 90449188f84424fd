// Only for the compiler and linker flags from pkg-config; the C files include the headers themselves.
#pragma once
