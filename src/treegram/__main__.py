"""The process of the command ``treegram``, which is also ``python -m treegram``.

Ctrl-C ends it with code 130 and one line wherever it comes, from the first import on. Until this module is loaded, some hundredths
of a second, and after the command has ended, signals are Python's own affair.
"""

import os
import sys
import time

__all__ = ["run"]

_STOPPED = 130
_last = float("-inf")  # when Ctrl-C was last heard


def run() -> int:
    """Run the command and give its exit code; hooks of this process see to Ctrl-C outside of the command, too."""
    sys.excepthook = _end
    sys.unraisablehook = _send_again
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    from treegram.cli import main

    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done, and the code is known
    if code == _STOPPED:  # all is closed and flushed, and Python's own end would take most of a second
        os._exit(code)
    return code


def _interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, once a second: a key that is held down sends more, which would stop what tells of the stop."""
    global _last
    if time.monotonic() - _last > 1:
        _last = time.monotonic()
        raise KeyboardInterrupt


def _end(kind, error, trace):  # type: ignore[no-untyped-def]  # as sys.excepthook
    """End after an exception that nobody caught: one of the start, or of a second Ctrl-C, as that of the command ends it."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    os.write(2, b"Stopped; nothing is left half-written.\n")
    os._exit(_STOPPED)


def _send_again(ignored):  # type: ignore[no-untyped-def]  # as sys.unraisablehook
    """Python ignores what is raised in a destructor; a Ctrl-C that comes just then is sent again a moment later."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    global _last
    import _thread

    _last = float("-inf")
    _thread.start_new_thread(_interrupt_soon, ())


def _interrupt_soon() -> None:
    import _thread

    time.sleep(0.01)
    _thread.interrupt_main()


if __name__ == "__main__":
    sys.exit(run())
