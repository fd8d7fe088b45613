"""Whether the compiler refuses what ARGUMENTS_SET (runtime/arguments.h) must: arguments.py ROOT COMPILER..."""
import subprocess
import sys

TEXT = """
#include "runtime/arguments.h"
#define LIST(X) X##_FIRST(const global float *, x) X##_BUFFER(global float *, y) X##_INT(width) X##_FLOAT(scale)
ARGUMENTS(trial, LIST)
void set(struct launch *launch, cl_mem buffer, int64_t number);
void set(struct launch *launch, cl_mem buffer, int64_t number)
{
    (void)buffer, (void)number;
    ARGUMENTS_SET(launch, trial, %s);
}
"""
CASES = [
    (True, "in another order", ".y = buffer, .scale = 0.5, .x = buffer, .width = number"),
    (False, "a number is missing", ".x = buffer, .y = buffer, .scale = 0.5"),
    (False, "a buffer is missing", ".x = buffer, .width = number, .scale = 0.5"),
    (False, "one is there twice", ".x = buffer, .x = buffer, .width = number, .scale = 0.5"),
    (False, "one is not of the list", ".x = buffer, .y = buffer, .height = number, .scale = 0.5"),
    (False, "one is too many", ".x = buffer, .y = buffer, .width = number, .scale = 0.5, .height = number"),
    (False, "a buffer for a number", ".x = buffer, .y = buffer, .width = buffer, .scale = 0.5"),
    (False, "a number for a buffer", ".x = number, .y = buffer, .width = number, .scale = 0.5"),
]


def compiles(root, compiler, arguments):
    command = compiler + ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-", "-I", root,
                          "-I", root + "/include"]
    return subprocess.run(command, input=TEXT % arguments, text=True, capture_output=True)


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    failed = 0
    for wanted, what, arguments in CASES:
        done = compiles(root, compiler, arguments)
        if (done.returncode == 0) != wanted:
            print(f"{what}: the compiler {'refuses' if wanted else 'takes'} it\n{done.stderr}")
            failed += 1
    print(f"{len(CASES) - failed} of {len(CASES)} are right")
    sys.exit(failed > 0)


main()
