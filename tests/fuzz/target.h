/* What libFuzzer, or replay.c in its place, calls: https://llvm.org/docs/LibFuzzer.html */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include "tutti.h"

/* Once, before the first input; returns 0. One input, of any bytes; returns 0. */
int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own changes of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* message.c: aborts if the message of a failure is not one printable line. */
void check_message(void);

/* file.c: a folder that goes with the process, and a file in it that holds the input. */
void input_open(void);
const char *input_path(const uint8_t *data, size_t size); /* writes the input */
void input_sibling(const char *name, size_t size);        /* another file in the folder, of so many bytes */
/* Another name of the input in its folder, once, for readers that look at names. */
void input_link(const char *name, char *path, size_t size);

#endif
