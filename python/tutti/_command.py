"""The command `tutti`, which is in the package's folder."""
import os
import sys

from ._drivers import environment


def main():
    command = os.path.join(os.path.dirname(__file__), "tutti")
    os.execve(command, [command, *sys.argv[1:]], environment())
