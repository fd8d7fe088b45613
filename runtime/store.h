/* What is learnt about a device and driver and kept on disk: texts by key, in a file per kind in the cache folder.
 * Equal devices, other threads and other processes share the file: each save reads it under a lock, adds what is new
 * here and replaces it. Without a usable folder everything is remembered in this process only. Nothing here fails.
 *
 * Lock order of runtime/, outermost first: builder_prepare()'s, programs' `loading`, programs' `lock`; those of the
 * stores, of the tuning tables and of device_open_queue() are innermost: only log_line() takes a lock under them. */
#ifndef RUNTIME_STORE_H
#define RUNTIME_STORE_H

#include "runtime/device.h"

/* Returns the text of a key; NULL if there is none. It stays valid until stores_free(). */
const char *store_get(struct device *device, enum store_kind kind, const char *key);
/* Sets a key, a word that does not begin with # or [, to a text; NULL removes it. Other threads see it at once, the
 * disk at the next store_save(). */
void store_set(struct device *device, enum store_kind kind, const char *key, const char *value);
/* Sets a key likewise, but the next store_save() prefers a text that another process has saved, if there is one. */
void store_offer(struct device *device, enum store_kind kind, const char *key, const char *value);
void store_save(struct device *device, enum store_kind kind);
/* Reads what others have saved meanwhile. */
void store_reload(struct device *device, enum store_kind kind);
/* Removes all keys, on disk too. */
void store_clear(struct device *device, enum store_kind kind);
/* Steps through the keys: false at the end. *at begins with 0. */
bool store_next(struct device *device, enum store_kind kind, size_t *at, const char **key, const char **value);
void stores_free(struct device *device); /* when a device is closed */

#endif
