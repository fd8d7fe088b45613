#include "runtime/source.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* A text that was made. It is never freed: programs of every runtime refer to it. */
struct made_source {
    struct kernel_text text;
    char name[40];
    struct made_source *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made_source *made_sources;

/* The lock is held. */
static struct made_source *find_made(const char *name)
{
    struct made_source *made = made_sources;
    while (made && strcmp(made->name, name)) made = made->next;
    return made;
}

static const struct kernel_text *find_embedded(const char *name)
{
    const struct kernel_text *text = kernel_texts;
    while (text->name && strcmp(text->name, name)) text++;
    return text->name ? text : NULL;
}

const struct kernel_text *source_find(const char *name)
{
    const struct kernel_text *text = find_embedded(name);
    if (text) return text;
    pthread_mutex_lock(&lock);
    const struct made_source *made = find_made(name);
    pthread_mutex_unlock(&lock);
    return made ? &made->text : NULL;
}

static struct made_source *make(const struct kernel_text *base, const char *name, const char *body)
{
    struct made_source *made = memory_new(1, sizeof *made);
    char *text = NULL;
    if (made) text = base ? memory_format("%s\n#line 1\n%s", base->text, body) : memory_copy_text(body);
    if (!text) {
        free(made);
        return NULL;
    }
    snprintf(made->name, sizeof made->name, "%s", name);
    made->text = base ? *base : (struct kernel_text) { .any_builtin = true };
    made->text.name = made->name;
    made->text.text = text;
    return made;
}

const char *source_make(const char *base, const char *body)
{
    char name[40];
    snprintf(name, sizeof name, "%.16s-%016llx", base ? base : "custom",
        (unsigned long long)XXH3_64bits(body, strlen(body)));
    pthread_mutex_lock(&lock);
    struct made_source *made = find_made(name);
    if (!made && (made = make(base ? find_embedded(base) : NULL, name, body))) {
        made->next = made_sources;
        made_sources = made;
    }
    pthread_mutex_unlock(&lock);
    return made ? made->name : NULL;
}
