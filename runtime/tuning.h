/* Tables that say which kernel is the best for a problem. They fall back by levels: the user's file, the device, the
 * architecture, the class; where none knows a problem, the rule decides (graph/operation.h: first that fits). All
 * have one format, docs/tuning.md. A table is text and names problems and implementations. Implementations that do
 * not exist or do not take the problem are skipped. */
#ifndef RUNTIME_TUNING_H
#define RUNTIME_TUNING_H

#include "runtime/device.h"

/* DEVICE: what was measured on this device by this version and lies in the cache folder, and shipped tables for it. */
enum tuning_level { TUNING_USER, TUNING_DEVICE, TUNING_ARCHITECTURE, TUNING_CLASS, TUNING_LEVELS };

/* Finds the user's file: wanted, else TUTTI_TUNING, else tutti/tuning.txt in the user's folder for settings, where it
 * need not exist. "off": neither that nor what was measured, the shipped choice alone. */
tutti_status tuning_open(struct tutti_runtime *runtime, const char *wanted);

/* "winograd 1.100 direct 3.201": the best implementation at this level and what else was measured, in ms; NULL: nothing
 * is known. A problem's name ends with the number of samples, as "/n16": entries for up to twice or half as many serve,
 * too, the nearest first. */
const char *tuning_choice(struct device *device, enum tuning_level level, const char *problem);
/* NULL, or why a table says that this implementation is not to be used for the problem. */
const char *tuning_refusal(struct device *device, const char *problem, const char *implementation);
/* Whether this very problem was measured on this device; and noting that it was, on disk too. */
bool tuning_is_measured(struct device *device, const char *problem);
void tuning_keep(struct device *device, const char *problem, const char *measured);

const char *tuning_level_name(enum tuning_level level);
void tuning_free(struct device *device); /* called when a device is closed */

/* The shipped tables, one after the other (runtime/tables). */
extern const char tuning_shipped[];

#endif
