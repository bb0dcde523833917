"""Tests of memory and processor detection, including systems that report less."""

import os
import platform
import shutil
import subprocess

import pytest

from treegram._core import machine
from treegram._core.text import spell_bytes


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Let the module read the files of another system; return a function that writes one of them."""
    monkeypatch.setattr(machine, "Path", lambda name: tmp_path / name.strip("/").replace("/", "-"))

    def write(name, text):
        machine.Path(name).write_text(text)

    return write


def test_free_memory_is_unknown_when_not_reported(files):
    assert machine.available_bytes() == float("inf")


@pytest.mark.parametrize(
    ("limit", "expected"), [("max", 1024.0 * 3000), (str(1024 * 2500), 1024.0 * 2000), ("damaged", 1024.0 * 3000)]
)
def test_free_memory_is_that_of_the_container(files, limit, expected):
    files("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 3000 kB\n")
    files("/sys/fs/cgroup/memory.max", limit + "\n")
    files("/sys/fs/cgroup/memory.stat", f"anon {1024 * 500}\nfile 99\n")
    assert machine.available_bytes() == expected


@pytest.mark.skipif(machine.resource is None, reason="Windows has no such limits")
def test_free_memory_is_within_the_limit_of_the_process(files, monkeypatch):
    limits = [(4 << 30, 8 << 30)]
    monkeypatch.setattr(machine.resource, "getrlimit", lambda kind: limits[0])
    files("/proc/meminfo", "MemAvailable: 99000000 kB\n")
    assert machine.available_bytes() == 4 << 30
    files("/proc/self/statm", "1000 500 100 1 0 100 0\n")
    assert machine.available_bytes() == (4 << 30) - 1000 * machine.resource.getpagesize()
    limits[0] = (1000, 1000)
    assert machine.available_bytes() == 0.0
    limits[0] = (machine.resource.RLIM_INFINITY, machine.resource.RLIM_INFINITY)
    assert machine.available_bytes() == 1024.0 * 99000000


def test_sizes_have_a_suitable_unit():
    assert [spell_bytes(n) for n in (512, 1e6, 3e9)] == ["0.5 KiB", "977 KiB", "2.79 GiB"]


def test_processor_and_memory_are_reported_as_far_as_known(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name : Fast 9000\n")
    assert machine._processor(info) == "Fast 9000"
    assert machine._processor(tmp_path / "none") in (platform.processor(), platform.machine())
    assert machine.describe_machine()["memory_gib"] is None or machine.describe_machine()["memory_gib"] > 0
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert machine.describe_machine()["memory_gib"] is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_commit_and_changes_of_a_checkout_are_reported(tmp_path, monkeypatch):
    (tmp_path / "src" / "treegram").mkdir(parents=True)
    assert machine.describe_checkout(tmp_path) == {}, "an installed package"

    def git(*words):
        options = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", tmp_path, *options, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    assert machine.describe_checkout(tmp_path) == {}, "no commit yet"
    code = tmp_path / "src" / "treegram" / "code.py"
    code.write_text("1")
    git("add", ".")
    git("commit", "-qm", "Begin")
    (tmp_path / "notes").write_text("not code")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    commit = (tmp_path / ".git" / "refs" / "heads").glob("*")
    [head] = [path.read_text().strip() for path in commit]
    assert machine.describe_checkout(tmp_path) == {"commit": head, "tree": "clean"}
    code.write_text("2")
    assert machine.describe_checkout(tmp_path) == {"commit": head, "tree": "changed"}
    monkeypatch.setenv("PATH", "")
    assert machine.describe_checkout(tmp_path) == {}
