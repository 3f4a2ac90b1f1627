"""Which rank this process is and how it reaches the others.

Flags come before torchrun before a complete RANK set before srun's step before mpirun.

Together with `cli/` the only place that reads the environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..facts.outcome import UsageError
from .address import Address, checked, parse_address
from .launchers import Launched, mpirun, number, srun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ADVICE = (
    "start it with torchrun --no-python, srun or mpirun, or give every rank "
    "--master HOST:PORT --world-size N [--rank R], or set MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One rank's place among all. Rank 0 serves the store at `store`, unless the launcher's agent does.

    `rank` is None where the store is to hand one out: number 0 goes to who comes to serve it (`door.Door`).
    """

    rank: int | None
    world_size: int
    store: Address
    agent_store: bool = False
    #: The address is the job's own: a store may be there already, which the job itself made.
    job_store: bool = False
    #: Tells this attempt from others that use the same store.
    scope: str = ""
    local_rank: int | None = None
    #: The network interfaces that Gloo is to use (GLOO_SOCKET_IFNAME); none: the one that leads to the store.
    interfaces: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The rank, where it is known; UsageError where it is yet to be handed out."""
        if self.rank is None:
            raise UsageError("which rank is this? Give --rank")
        return self.rank

    @property
    def hosts_store(self) -> bool:
        """Whether this process serves the store."""
        return self.rank == 0 and not self.agent_store


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said of the place."""

    master: str | None = None
    world_size: int | None = None
    rank: int | None = None


def from_flags(flags: Flags, env: Mapping[str, str]) -> Place | None:
    """Flags, each of them before its variable. Rank 0 serves the store; without a rank the store hands one out."""
    if flags.master is None and flags.world_size is None and flags.rank is None:
        return None
    launched = srun(env) or mpirun(env)
    rank, world_size = number(env, "RANK"), number(env, "WORLD_SIZE")
    if rank is None and world_size is None and launched is not None:
        rank, world_size = launched.rank, launched.world_size
    world_size = flags.world_size if flags.world_size is not None else world_size
    rank = flags.rank if flags.rank is not None else rank
    if world_size is None:
        raise UsageError("how many ranks are there? Give --world-size")
    if rank is None and world_size == 1:
        rank = 0
    if flags.master is not None:
        store = parse_address(flags.master, given_by="--master")
    elif (found := _master(env)) is not None:
        store = found
    elif launched is not None and launched.store is not None:
        store = launched.store
    elif world_size == 1:
        store = Address("127.0.0.1", 0)
    else:
        raise UsageError("where is rank 0? Give --master HOST:PORT")
    return _checked(Place(rank, world_size, store))


def from_torchrun(_flags: Flags, env: Mapping[str, str]) -> Place | None:
    """torchrun: its agent serves the store and we bind nothing, unless it says that it does not.

    The store outlives a restart, so the attempt is part of the scope.
    """
    if "TORCHELASTIC_RUN_ID" not in env:
        return None
    place = from_rank_set(_flags, env)
    if place is None:
        raise UsageError(
            "torchrun's environment is not complete: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK are needed"
        )
    return replace(
        place,
        agent_store=env.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        scope=f"{env['TORCHELASTIC_RUN_ID']}/{env.get('TORCHELASTIC_RESTART_COUNT', '0')}",
    )


def from_rank_set(_flags: Flags, env: Mapping[str, str]) -> Place | None:
    """MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, all of them. Rank 0 serves the store."""
    rank, world_size, store = number(env, "RANK"), number(env, "WORLD_SIZE"), _master(env)
    if rank is None or world_size is None or store is None:
        return None
    return _checked(Place(rank, world_size, store, job_store=True, local_rank=number(env, "LOCAL_RANK")))


def from_srun(_flags: Flags, env: Mapping[str, str]) -> Place | None:
    """A SLURM step. Rank 0 serves the store on the step's first host, at a port that follows from job and step."""
    return _from_launched(srun(env), env)


def from_mpirun(_flags: Flags, env: Mapping[str, str]) -> Place | None:
    """mpirun: rank 0 serves the store where MASTER_ADDR and MASTER_PORT say, or on this machine if all are here."""
    return _from_launched(mpirun(env), env)


def _from_launched(launched: Launched | None, env: Mapping[str, str]) -> Place | None:
    if launched is None:
        return None
    named = _master(env)
    store = named or launched.store
    if store is None and launched.world_size == 1:
        store = Address("127.0.0.1", 0)
    if store is None:
        raise UsageError(
            "mpirun does not tell on which host rank 0 runs: give --master HOST:PORT, or MASTER_ADDR and MASTER_PORT"
        )
    return _checked(
        Place(launched.rank, launched.world_size, store, job_store=named is not None, local_rank=launched.local_rank)
    )


#: In the order in which they are asked.
LAUNCHERS: tuple[Callable[[Flags, Mapping[str, str]], Place | None], ...] = (
    from_flags,
    from_torchrun,
    from_rank_set,
    from_srun,
    from_mpirun,
)


def find_place(flags: Flags, env: Mapping[str, str] | None = None) -> Place:
    """The place that the first launcher knows; UsageError with advice where none does."""
    known = os.environ if env is None else env
    for launcher in LAUNCHERS:
        place = launcher(flags, known)
        if place is not None:
            named = known.get("GLOO_SOCKET_IFNAME", "").split(",")
            return replace(place, interfaces=tuple(filter(None, map(str.strip, named))))
    raise UsageError(f"which rank is this, and of how many? {_ADVICE}")


def _checked(place: Place) -> Place:
    if place.world_size < 1:
        raise UsageError(f"a world size of {place.world_size}: at least one rank is needed")
    if place.rank is not None and not 0 <= place.rank < place.world_size:
        raise UsageError(
            f"rank {place.rank} of a world size of {place.world_size}: ranks go from 0 to {place.world_size - 1}"
        )
    return place


def _master(env: Mapping[str, str]) -> Address | None:
    host, port = env.get("MASTER_ADDR"), number(env, "MASTER_PORT")
    if not host or port is None:
        return None
    return checked(host, port, given_by="MASTER_PORT")
