"""srun's and mpirun's variables: which rank, of how many, and where rank 0 listens."""

from __future__ import annotations

import pytest

from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.ranks import Flags, find_place
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.launchers import derived_port, first_host

STEP = {
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "0",
    "SLURM_STEP_NODELIST": "gpu[03-04]",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
}
OMPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-a-1@1",
}


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node1", "node1"),
        ("a1,b2", "a1"),
        ("gpu[03-07,12],login", "gpu03"),
        ("gpu[12,3-7]", "gpu12"),
        ("r[1-2]n[8,9]-ib", "r1n8-ib"),
        ("n-[001]", "n-001"),
        ("a.b.example", "a.b.example"),
    ],
)
def test_the_first_host_of_a_node_list(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


@pytest.mark.parametrize("nodes", ["", "[", "a[", "a[1", "a[]", "a[x-y]", ",a", "a b", "a\x1b[0m", "a]b"])
def test_what_is_no_node_list_is_a_usage_error(nodes: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        first_host(nodes)


def test_a_step_is_a_place_and_all_its_ranks_find_one_store() -> None:
    place = find_place(Flags(), STEP)
    assert (place.rank, place.world_size, place.local_rank, place.hosts_store) == (2, 4, 0, False)
    assert place.store.host == "gpu03"
    assert find_place(Flags(), STEP | {"SLURM_PROCID": "0", "SLURM_LOCALID": "1"}).store == place.store
    assert find_place(Flags(), STEP | {"SLURM_PROCID": "0"}).hosts_store


def test_other_steps_and_jobs_have_other_ports_outside_of_those_the_system_gives_away() -> None:
    ports = {derived_port(f"slurm {job}.{step}") for job in range(4711, 4721) for step in range(3)}
    assert len(ports) > 27
    assert all(20000 <= port < 32000 for port in ports)
    assert find_place(Flags(), STEP | {"SLURM_STEP_ID": "1"}).store != find_place(Flags(), STEP).store


def test_a_batch_script_is_no_step() -> None:
    batch = {name: value for name, value in STEP.items() if not name.startswith("SLURM_STEP")}
    with pytest.raises(UsageError, match="which rank is this"):
        find_place(Flags(), batch | {"SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "gpu[03-04]"})


def test_flags_and_the_jobs_own_address_come_before_the_steps() -> None:
    assert find_place(Flags(master="x:1"), STEP) == find_place(Flags(master="x:1", rank=2, world_size=4), {})
    place = find_place(Flags(), STEP | {"MASTER_ADDR": "m", "MASTER_PORT": "5"})
    assert (place.store, place.rank, place.job_store) == (Address("m", 5), 2, True)
    rank_set = {"MASTER_ADDR": "m", "MASTER_PORT": "5", "RANK": "0", "WORLD_SIZE": "2"}
    assert find_place(Flags(), STEP | rank_set).world_size == 2
    assert find_place(Flags(rank=3), STEP).store == find_place(Flags(), STEP).store


def test_mpirun_across_machines_needs_the_address_of_rank_0() -> None:
    with pytest.raises(UsageError, match="--master"):
        find_place(Flags(), OMPI)
    place = find_place(Flags(master="node-a:29400"), OMPI)
    assert (place.rank, place.world_size, place.store) == (1, 4, Address("node-a", 29400))
    place = find_place(Flags(), OMPI | {"MASTER_ADDR": "m", "MASTER_PORT": "5"})
    assert (place.rank, place.local_rank, place.store) == (1, 1, Address("m", 5))


def test_mpirun_on_one_machine_needs_nothing() -> None:
    place = find_place(Flags(), OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert (place.rank, place.store.host) == (1, "127.0.0.1")
    other = OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "another"}
    assert find_place(Flags(), other).store != place.store


def test_mpich_is_known_and_srun_comes_before_it() -> None:
    pmi = {"PMI_RANK": "3", "PMI_SIZE": "5"}
    assert find_place(Flags(master="a:1"), pmi).rank == 3
    assert find_place(Flags(), pmi | STEP).world_size == 4


def test_the_processes_of_an_mpirun_inherit_its_daemons_step_and_do_not_take_it_for_theirs() -> None:
    place = find_place(Flags(master="a:1"), STEP | OMPI | {"SLURM_STEP_NUM_TASKS": "2"})
    assert (place.rank, place.world_size) == (1, 4)


@pytest.mark.parametrize(
    "wrong",
    [{"SLURM_PROCID": "4"}, {"SLURM_PROCID": ""}, {"SLURM_STEP_NUM_TASKS": "²"}, {"SLURM_JOB_ID": "9" * 99}],
)
def test_a_step_that_cannot_be_is_a_usage_error(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        find_place(Flags(), STEP | wrong)
