/* Kernels that are built without optimisation get machine code without it, too. Of -cl-opt-disable POCL 3.1 tells clang
 * alone: LLVM still writes the machine code at its highest level, a third of the time of a kernel's build. The two
 * functions here stand before those of LLVM 15, which POCL calls. They have its names and its version (codegen.map),
 * so other releases of LLVM do not find them. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
/* bool llvm::legacy::PassManager::run(llvm::Module &) */
#define RUN "_ZN4llvm6legacy11PassManager3runERNS_6ModuleE"
/* llvm::TargetIRAnalysis llvm::TargetMachine::getTargetIRAnalysis() const, which returns through a pointer */
#define ANALYSIS "_ZNK4llvm13TargetMachine19getTargetIRAnalysisEv"
/* void llvm::TargetMachine::setOptLevel(llvm::CodeGenOpt::Level) */
#define SET_LEVEL "_ZN4llvm13TargetMachine11setOptLevelENS_10CodeGenOpt5LevelE"

enum { LEVEL_NONE, LEVEL_AGGRESSIVE = 3 };
static const unsigned of_function = ~0U; /* the index of a function's own attributes */

typedef bool (*run_function)(void *manager, void *module);
typedef void *(*analysis_function)(void *result, const void *machine);
typedef void (*level_function)(const void *machine, int level);
typedef void *(*neighbour_function)(void *object);
typedef unsigned (*kind_function)(const char *name, size_t length);
typedef void *(*attribute_function)(void *function, unsigned index, unsigned kind);

bool run_passes(void *manager, void *module) __asm__(RUN);
void *get_analysis(void *result, const void *machine) __asm__(ANALYSIS);

/* POCL makes a pass manager and a machine for each device, and keeps both. */
enum { DEVICES = 64 };
static struct {
    void *manager;
    const void *machine;
} kept[DEVICES];
static int kept_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local const void *new_machine; /* whose pass manager this thread makes */

/* The driver is loaded with its libraries out of sight of others: RTLD_NEXT does not find LLVM. */
static void *of_llvm(const char *name)
{
    void *library = dlopen("libLLVM-15.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) abort();
    dlclose(library);
    return found;
}

/* After clang, every function of a program that is built with -cl-opt-disable is "optnone"; POCL's passes end that. */
static bool has_unoptimised_function(void *module)
{
    const unsigned kind = ((kind_function)of_llvm("LLVMGetEnumAttributeKindForName"))("optnone", sizeof("optnone") - 1);
    const attribute_function attribute = (attribute_function)of_llvm("LLVMGetEnumAttributeAtIndex");
    const neighbour_function next = (neighbour_function)of_llvm("LLVMGetNextFunction");
    void *function = ((neighbour_function)of_llvm("LLVMGetFirstFunction"))(module);
    while (function && !attribute(function, of_function, kind)) function = next(function);
    return function != NULL;
}

/* The machine of a pass manager that POCL has made for kernels; NULL for one that writes machine code. */
static const void *machine_of(void *manager)
{
    pthread_mutex_lock(&lock);
    if (new_machine && kept_count < DEVICES) {
        kept[kept_count].manager = manager;
        kept[kept_count++].machine = new_machine;
    }
    new_machine = NULL;
    int i = kept_count - 1;
    while (i >= 0 && kept[i].manager != manager) i--;
    const void *machine = i >= 0 ? kept[i].machine : NULL;
    pthread_mutex_unlock(&lock);
    return machine;
}

/* POCL runs its passes for a kernel, and then those that write its machine code, which the machine adds by its level.
 */
EXPORT bool run_passes(void *manager, void *module)
{
    const void *machine = machine_of(manager);
    if (machine)
        ((level_function)of_llvm(SET_LEVEL))(machine, has_unoptimised_function(module) ? LEVEL_NONE : LEVEL_AGGRESSIVE);
    return ((run_function)of_llvm(RUN))(manager, module);
}

/* POCL asks for it while it makes a pass manager. */
EXPORT void *get_analysis(void *result, const void *machine)
{
    new_machine = machine;
    return ((analysis_function)of_llvm(ANALYSIS))(result, machine);
}
