"""What SLURM's `srun` and MPI's `mpirun` tell each process they start. Pure parsing of their variables."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from ..facts.outcome import UsageError
from ..present.safe import escape
from .address import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Ports below those that systems give away by themselves, so that one which is derived is most likely free.
_FIRST_PORT, _PORTS = 20000, 12000
_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
#: mpirun's names for rank, world size, rank on this host and ranks on this host: Open MPI's, then MPICH's and Intel's.
_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
#: What is the same in all processes of one mpirun, and another in the next.
_MPI_JOB = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_ID_JOB", "HYDRA_JOB_ID")


class Launched(NamedTuple):
    """What a launcher said. `store`: where rank 0 is to listen; None where the launcher doesn't tell rank 0's host."""

    rank: int
    world_size: int
    local_rank: int | None
    store: Address | None


def srun(env: Mapping[str, str]) -> Launched | None:
    """A step of SLURM's. A batch script has a rank and a number of tasks too, and is no step."""
    if "SLURM_STEP_NUM_TASKS" not in env or "OMPI_COMM_WORLD_SIZE" in env:
        return None  # mpirun starts its daemons as a step, whose variables its processes inherit
    host = first_host(env.get("SLURM_STEP_NODELIST", ""))
    step = f"slurm {_needed(env, 'SLURM_JOB_ID')}.{_needed(env, 'SLURM_STEP_ID')}"
    return Launched(
        rank=_needed(env, "SLURM_PROCID"),
        world_size=_needed(env, "SLURM_STEP_NUM_TASKS"),
        local_rank=number(env, "SLURM_LOCALID"),
        store=Address(host, derived_port(step)),
    )


def mpirun(env: Mapping[str, str]) -> Launched | None:
    """A process of mpirun's, which tells nobody where rank 0 runs: known only where all are on this machine."""
    for rank, size, local_rank, local_size in _MPI:
        if rank in env and size in env:
            job = next((env[name] for name in _MPI_JOB if env.get(name)), None)
            alone = job is not None and number(env, local_size) == number(env, size)
            return Launched(
                rank=_needed(env, rank),
                world_size=_needed(env, size),
                local_rank=number(env, local_rank),
                store=Address("127.0.0.1", derived_port(f"mpi {job}")) if alone else None,
            )
    return None


def first_host(nodes: str) -> str:
    """The first host of a SLURM node list: `gpu[03-07,12],login` gives `gpu03`, `r[1-2]n[8,9]` gives `r1n8`."""
    text = ""
    rest = nodes
    while rest and not rest.startswith(","):
        if rest.startswith("["):
            inside, closed, rest = rest[1:].partition("]")
            first = re.split(r"[,-]", inside)[0]
            if not closed or not first.isdecimal():
                raise UsageError(f"SLURM_STEP_NODELIST={escape(nodes)!r} is no list of nodes; give --master HOST:PORT")
            text += first
        else:
            text += rest[0]
            rest = rest[1:]
    if not _HOST.fullmatch(text):
        raise UsageError(f"SLURM_STEP_NODELIST={escape(nodes)!r} is no list of nodes; give --master HOST:PORT")
    return text


def derived_port(name: str) -> int:
    """The same port on all ranks of one launch, and most likely another in another launch on the same host."""
    return _FIRST_PORT + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % _PORTS


def number(env: Mapping[str, str], name: str) -> int | None:
    """A variable that holds a whole number; None where it is not set or empty."""
    text = env.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise UsageError(f"{name}={escape(text)!r} is no whole number")
    return int(text)


def _needed(env: Mapping[str, str], name: str) -> int:
    found = number(env, name)
    if found is None:
        raise UsageError(f"the launcher's environment is not complete: {name} is needed")
    return found
