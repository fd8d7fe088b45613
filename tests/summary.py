#!/usr/bin/env python3
"""Adds up what the test programs said in Meson's logs and ends with "N passed, N failed"; status 1 where one failed.
Of each program that failed it shows the first failure and the command that repeats it.

A program's count is that of its last line of the form "N passed, N failed", or Check's "100%: Checks: N, Failures: N,
Errors: N"; a program that prints neither counts as one test. A program that ends badly without naming a failed test, by
a crash or a time-out, counts as one failure more; so does one that skips itself. A log that is missing is a failure.

  summary.py [--left-out REASON]... [--all-groups] LOG...

--left-out: a group could not run; the reason is printed before the last line. --all-groups: that is a failure.
"""
import argparse
import json
import pathlib
import re
import shlex
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed\s*$", re.M)
CHECK = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)\s*$", re.M)


# How the programs begin the text of a failure: Check, unittest, oclgrind's log, sanitizers, our own programs.
FAILURE = re.compile(r"^(\S+:\d+:[FE]:.*|(FAIL|ERROR): .*|.*data race.*|Invalid (read|write).*|.*(ERROR|WARNING): \w+Sanitizer.*"
                     r"|.*runtime error: .*|\s*(FAILED|failed|bad)\b.*)$", re.M)
SHOWN = 16      # lines


def first_failure(test):
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    found = FAILURE.search(text)
    lines = text[found.start():].splitlines()[:SHOWN] if found else text.rstrip().splitlines()[-SHOWN:]
    return "\n".join("    " + line for line in lines)


def repeat(path, test):
    """The command; path: of Meson's log, in a folder of the build's."""
    setup = re.fullmatch(r"testlog-(\w+)\.json", path.name)
    words = ["meson", "test", "-C", str(path.parent.parent), "-v", test["name"].rpartition(" / ")[2]]
    return shlex.join(words + (["--setup", setup[1]] if setup else []))


def count(test):
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    passed = failed = 0
    own, checks = OWN.findall(text), CHECK.findall(text)
    if own:
        passed, failed = map(int, own[-1])
    for total, failures, errors in checks:
        failed += int(failures) + int(errors)
        passed += int(total) - int(failures) - int(errors)
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if not own and not checks and good:
        passed = 1
    if not good and failed == 0:
        failed = 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--left-out", action="append", default=[])
    parser.add_argument("--all-groups", action="store_true")
    parser.add_argument("logs", nargs="*")
    given = parser.parse_args()
    passed = failed = 0
    for path in map(pathlib.Path, given.logs):
        try:
            with open(path) as log:
                tests = [json.loads(line) for line in log if line.strip()]
        except OSError as error:
            print(f"no tests were run: {error}")
            failed += 1
            continue
        for test in tests:
            good, bad = count(test)
            passed += good
            failed += bad
            if bad:
                print(f"\nFAILED {test['name']} ({test['result']}, {bad} failed), first:\n{first_failure(test)}")
                print(f"to repeat it: {repeat(path, test)}")
    if passed + failed == 0 and not given.left_out:
        print("no test was found")
        failed = 1
    for reason in given.left_out:
        print(reason)
    if given.all_groups:
        failed += len(given.left_out)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
