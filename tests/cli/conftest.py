"""Run commands in the process of the tests."""

import pytest

from treegram.cli import main


@pytest.fixture
def run(capsys):
    """Run the command, with a line or with separate words; return its exit code and what it wrote to stdout and stderr."""

    def run_command(*words):
        code = main(words[0].split() if len(words) == 1 else [str(word) for word in words])
        return code, *capsys.readouterr()

    return run_command
