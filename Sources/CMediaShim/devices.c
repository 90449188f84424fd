#ifdef MILLRACE_VIDEO
#include "millrace_devices.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <libavdevice/version.h>
#include <libavutil/macros.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded = false;
static char refusal[256];

// Try again after a failure: the process may have been out of descriptors.
static void load(void) {
  // Never closed: libavformat keeps pointers to what it registers.
  void *library = dlopen("libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  void (*register_all)(void) = NULL;
  if (library) *(void **)&register_all = dlsym(library, "avdevice_register_all");
  if (register_all) {
    register_all();
    is_loaded = true;
    refusal[0] = 0;
  } else {
    const char *reason = dlerror();
    snprintf(refusal, sizeof refusal, "%s", reason ? reason : "libavdevice cannot be loaded");
  }
}

const AVInputFormat *millrace_av_find_device(const char *name) {
  pthread_mutex_lock(&lock);
  if (!is_loaded) load();
  pthread_mutex_unlock(&lock);
  return av_find_input_format(name);
}

const char *millrace_av_device_error(void) { return refusal; }
#endif
