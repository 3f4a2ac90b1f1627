"""Files that differ by right, for each rank has its own: told from their names, and left out when it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckpt_tui import compare
from ckpt_tui.agreement.rank_local import pattern
from ckpt_tui.facts.agreement import Verdict
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import safetensors_bytes, tensor


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("model-rank-0-part-0.safetensors", "model-rank-*-part-0.safetensors"),
        ("weights-TP-001.safetensors", "weights-TP-*.safetensors"),
        ("mp_rank_00/model.pt", "mp_rank_*/model.pt"),
        ("tp0-pp3.bin", "tp*-pp*.bin"),
        ("model-00001-of-00002.safetensors", None),
        ("model-step-10.bin", None),
        ("rank.bin", None),
        ("rank-0[x].bin", None),
    ],
)
def test_names_that_tell_of_a_rank_have_a_pattern(name: str, glob: str | None) -> None:
    assert pattern(name) == glob


def hosts(tmp_path: Path, *held: tuple[int, ...], shared: str = "same") -> list[Path]:
    """A folder for each host, with a common file and the parts of those ranks."""
    folders = []
    for place, ranks in enumerate(held):
        folder = tmp_path / f"host{place}"
        folder.mkdir()
        names = {"common.safetensors": shared if place else "same"}
        names |= {f"model-rank-{rank}-part-0.safetensors": f"rank {rank}" for rank in ranks}
        for name, seed in names.items():
            (folder / name).write_bytes(safetensors_bytes({f"{name[:-12]}.w": tensor("w", seed=seed)}))
        folders.append(folder)
    return folders


SETTINGS = ScanSettings(use_cache=False)
LOCAL = ScanSettings(use_cache=False, rank_local=("model-rank-*",))


def test_parts_that_only_their_rank_has_differ_and_the_way_to_leave_them_out_is_told(tmp_path: Path) -> None:
    """Case R12 a."""
    agreement = compare(*hosts(tmp_path, (0,), (1,)), settings=SETTINGS)
    assert agreement.verdict is Verdict.DIFFER
    assert {one.file for one in agreement.differences} == {f"model-rank-{n}-part-0.safetensors" for n in (0, 1)}
    (warning,) = [text for text in agreement.warnings if "each rank's own" in text]
    assert "--rank-local 'model-rank-*-part-0.safetensors' leaves them out" in warning
    assert all("--rank-local" in one.cause.facts[-1] for one in agreement.differences)


def test_where_all_hold_all_parts_they_are_compared_as_ever(tmp_path: Path) -> None:
    """Case R12 b."""
    agreement = compare(*hosts(tmp_path, (0, 1), (0, 1)), settings=SETTINGS)
    assert (agreement.verdict, agreement.warnings, agreement.not_compared) == (Verdict.AGREE, (), ())


def test_what_is_said_to_be_rank_local_is_counted_and_not_compared(tmp_path: Path) -> None:
    """Case R12 a, as the user says."""
    agreement = compare(*hosts(tmp_path, (0,), (1,)), settings=LOCAL)
    assert agreement.verdict is Verdict.AGREE
    assert [one.name for one in agreement.not_compared] == [f"model-rank-{n}-part-0.safetensors" for n in (0, 1)]
    assert all(one.size for one in agreement.not_compared)


def test_what_is_not_rank_local_still_differs(tmp_path: Path) -> None:
    agreement = compare(*hosts(tmp_path, (0,), (1,), shared="other"), settings=LOCAL)
    assert agreement.verdict is Verdict.DIFFER
    assert [one.file for one in agreement.differences] == ["common.safetensors"]


def test_a_pattern_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    folders = hosts(tmp_path, (0,), (1,))
    with pytest.raises(UsageError, match="nothing to compare"):
        compare(*folders, settings=ScanSettings(use_cache=False, rank_local=("*",)))
