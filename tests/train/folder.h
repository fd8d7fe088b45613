/* A folder of a test's own, made before each test and removed after it. */
#ifndef TESTS_TRAIN_FOLDER_H
#define TESTS_TRAIN_FOLDER_H

extern char test_folder[64];
void folder_new(void);
void folder_remove(void);
/* A path in it; valid until eight more were asked for. */
const char *in_folder(const char *name);

#endif
