"""What is compared, by name: a value, and what it is to the training job."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What a tensor or value is to the job; each kind is compared and reported apart from the others."""

    TENSORS = "tensors"
    PARAMETERS = "parameters"
    BUFFERS = "buffers"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"


class Named(NamedTuple):
    """A tensor, None or plain Python value under its name. Plain pairs of name and value are of the kind `tensors`."""

    name: str
    value: Any
    kind: Kind = Kind.TENSORS


class Algorithm(StrEnum):
    """What digests of live tensors are made with: one for accidents, one that also stands against intent."""

    XXH3 = "xxh3-128"
    SHA256 = "sha256"
