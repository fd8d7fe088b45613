"""The command `tutti`, which is in the package's folder."""
import os
import sys


def main():
    command = os.path.join(os.path.dirname(__file__), "tutti")
    os.execv(command, [command, *sys.argv[1:]])
