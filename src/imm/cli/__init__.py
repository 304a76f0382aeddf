"""The ``imm`` command: thin, parses and calls. Heavy imports happen inside the commands."""

from imm.cli.app import main

__all__ = ["main"]
