#include "millrace_devices.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include <libavdevice/version.h>
#include <libavutil/macros.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char refusal[256];

static void load(void) {
  // Never closed: what it registers stays known to libavformat.
  void *library = dlopen("libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  void (*register_all)(void) = NULL;
  if (library) *(void **)&register_all = dlsym(library, "avdevice_register_all");
  if (register_all) {
    register_all();
  } else {
    const char *words = dlerror();
    snprintf(refusal, sizeof refusal, "%s", words ? words : "libavdevice cannot be loaded");
  }
}

const AVInputFormat *millrace_av_find_device(const char *name) {
  pthread_once(&once, load);
  return av_find_input_format(name);
}

const char *millrace_av_device_error(void) { return refusal; }
