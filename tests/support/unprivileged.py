"""Running something as a user who may not read everything, whoever runs the tests."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NOBODY = 65534


def run_unprivileged(function: Callable[[], bytes]) -> bytes:
    """What `function` returns, called in a forked child that has given up root, if the caller is root.

    A child and no new interpreter: another user may not be able to reach the one that runs the tests.
    """
    if os.getuid() != 0:
        return function()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
            with os.fdopen(write, "wb") as out:
                out.write(function())
            code = 0
        except BaseException:  # noqa: BLE001 - nothing may escape into the parent's test session
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        result = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child without privileges failed; its traceback is above"
    return result
