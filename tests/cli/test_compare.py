"""`ckpt-tui compare` as a user meets it, and `ckpt_tui.compare` as a program does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ckpt_tui
from ckpt_tui.cli.progress import look_words
from ckpt_tui.copies import LookProgress
from ckpt_tui.facts.agreement import AGREEMENT_SCHEMA, Agreement, CauseCode, Verdict
from ckpt_tui.facts.files import Severity
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.report import json as results
from tests.cases import make_cases
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.unprivileged import run_unprivileged
from tests.support.waiting import wait_until

S1, S2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
NO_CACHE = ScanSettings(use_cache=False, threads=1)


@pytest.fixture(scope="module")
def o31(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copies of case O31: x, and what compares with it."""
    folder = tmp_path_factory.mktemp("o31")
    make_cases.CASES["O31"].fn(folder, make_cases.CASES["O31"])
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a cache of its own, and no terminal's wishes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CKPT_TUI", "HF_", "LC_"))}
    return kept | {"CKPT_TUI_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm", "PYTHONUTF8": "1"}


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ckpt_tui", "compare", *map(str, words)]


def run(env: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*words), env=env, capture_output=True, timeout=60, check=False)


def differing(agreement: Any) -> dict[str, list[str]]:
    """The files that differ, and of each the tensors that are named."""
    return {
        one["file"]: [segment["name"] for segment in one["segments"] if segment["kind"] == "tensor"]
        for one in agreement["differences"]
    }


# What case O31 asks for, on both streams.


@pytest.mark.parametrize("other", ["y/renamed-copy", "h/tiny"])
def test_equal_copies_agree_whatever_their_folders_are_called(o31: Path, env: dict[str, str], other: str) -> None:
    done = run(env, o31 / "x/tiny", o31 / other, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1
    agreement = json.loads(done.stdout)
    assert (agreement["schema"], agreement["verdict"], agreement["stage"]) == (AGREEMENT_SCHEMA, "agree", "content")
    assert agreement["weights_equal"] is True
    assert [rank["rank"] for rank in agreement["ranks"]] == [0, 1]
    assert [rank["path"] for rank in agreement["ranks"]] == [str(o31 / "x/tiny"), str(o31 / other)]
    assert agreement["groups"][0]["copies"] == (1 if other == "h/tiny" else 2)
    assert run(env, o31 / "x/tiny", o31 / other).stdout.startswith(b"AGREE  both hold the same checkpoint\n")


def test_one_changed_byte_is_exactly_one_tensor_of_one_shard(o31: Path, env: dict[str, str]) -> None:
    agreement = json.loads(run(env, o31 / "x/tiny", o31 / "z/tiny", "--json").stdout)
    assert differing(agreement) == {S2: ["model.layers.1.w"]}
    done = run(env, o31 / "x/tiny", o31 / "z/tiny")
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"DIFFER  ")
    assert b"model.layers.1.w" in done.stdout
    for other in (b"lm_head", b"norm", S1.encode(), b"embed"):
        assert other not in done.stdout


def test_the_same_tensors_in_other_shards_are_said_to_be_equal(o31: Path, env: dict[str, str]) -> None:
    done = run(env, o31 / "x/tiny", o31 / "r/tiny")
    assert done.returncode == 1
    assert b"5 tensors equal" in done.stdout
    assert b"tensor differs" not in done.stdout
    assert b"tensors differ" not in done.stdout
    agreement = json.loads(run(env, o31 / "x/tiny", o31 / "r/tiny", "--json").stdout)
    assert agreement["weights_equal"] is True
    assert {one["cause"]["code"] for one in agreement["differences"]} == {"resharded"}
    assert not any(differing(agreement).values())


def test_another_config_is_all_that_differs(o31: Path, env: dict[str, str]) -> None:
    done = run(env, o31 / "x/tiny", o31 / "k/tiny")
    assert done.returncode == 1
    assert b"weights equal" in done.stdout
    agreement = json.loads(run(env, o31 / "x/tiny", o31 / "k/tiny", "--json").stdout)
    assert differing(agreement) == {"config.json": []}
    assert agreement["weights_equal"] is True


def test_of_three_the_odd_one_is_named(o31: Path, env: dict[str, str]) -> None:
    agreement = json.loads(run(env, o31 / "x/tiny", o31 / "z/tiny", o31 / "y/renamed-copy", "--json").stdout)
    assert [(group["ranks"], group["standing"]) for group in agreement["groups"]] == [
        ([0, 2], "majority"),
        ([1], "minority"),
    ]


# The identity alone, other words on the command line, interruption.


def test_the_identity_alone_finds_a_difference_and_never_says_that_all_agree(o31: Path, env: dict[str, str]) -> None:
    equal = run(env, o31 / "x/tiny", o31 / "z/tiny", "--identity-only")
    assert equal.returncode == 3
    assert equal.stdout.startswith(b"UNDECIDED  the identities are equal; no tensor byte was read")
    other = json.loads(run(env, o31 / "x/tiny", o31 / "k/tiny", "--identity-only", "--json").stdout)
    assert (other["verdict"], other["stage"], other["weights_equal"]) == ("differ", "identity", None)
    assert differing(other) == {"config.json": []}
    assert all(one["cause"]["candidate"] for one in other["differences"])
    assert not (Path(env["CKPT_TUI_CACHE_DIR"])).exists()


def test_wrong_words_are_usage_and_nothing_is_read(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    for words in ([], [o31 / "x/tiny"], [o31 / "x/tiny", tmp_path / "nowhere"], [o31 / "x/tiny", tmp_path / "no.json"]):
        done = run(env, *words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"Traceback" not in done.stderr
    assert not (Path(env["CKPT_TUI_CACHE_DIR"])).exists()


def test_the_byte_that_differs_is_told_by_tensor_index_value_and_bit(o31: Path, env: dict[str, str]) -> None:
    done = run(env, o31 / "x/tiny", o31 / "z/tiny")
    assert done.stdout.startswith(b"DIFFER  x/tiny and z/tiny differ in 1 of 2 weight files:")
    words = b" ".join(done.stdout.split())
    for piece in (
        b"A x/tiny",
        b"B z/tiny",
        b"1 byte",
        b"cause bit-flip: ",
        b"again read twice, the same",
        b"2 copies on",
    ):
        assert piece in words
    assert b"rank" not in done.stdout
    drill = json.loads(run(env, o31 / "x/tiny", o31 / "z/tiny", "--json").stdout)["differences"][0]["segments"][0][
        "drill"
    ]
    assert (drill["reference"], drill["sides"][0]["bytes"]) == ("A", 1)
    bare = json.loads(run(env, o31 / "x/tiny", o31 / "z/tiny", "--json", "--drill-bytes", "0").stdout)
    assert "drill" not in bare["differences"][0]["segments"][0]


def test_quiet_prints_nothing_and_keeps_the_code(o31: Path, env: dict[str, str]) -> None:
    done = run(env, o31 / "x/tiny", o31 / "z/tiny", "--format", "quiet")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_fast_beside_fast_finds_the_same(o31: Path, env: dict[str, str]) -> None:
    agreement = json.loads(run(env, o31 / "x/tiny", o31 / "z/tiny", "--fast", "--json").stdout)
    assert differing(agreement) == {S2: ["model.layers.1.w"]}


def test_ctrl_c_ends_it_with_130_and_without_a_result(env: dict[str, str], tmp_path: Path) -> None:
    one = write_checkpoint(tmp_path / "one", shape=(256, 256))
    other = write_checkpoint(tmp_path / "other", shape=(256, 256))
    words = command(one, other, "--max-rate", "64K", "--threads", "1")
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            shard = one / S1
            wait_until(lambda: is_open(process.pid, shard), what="the first shard is being read")
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, stdout) == (130, b"")
    assert b"Traceback" not in stderr


def is_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    links = list(Path(f"/proc/{pid}/fd").iterdir())
    names = set()
    for link in links:
        try:
            names.add(link.readlink())
        except OSError:
            continue
    return path in names or path.with_name(S2) in names


# What one copy cannot tell does not hide what the others do.


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two equal copies."""
    return write_checkpoint(tmp_path / "one"), write_checkpoint(tmp_path / "other")


def test_a_missing_shard_is_a_difference_that_names_it(pair: tuple[Path, Path]) -> None:
    (pair[1] / S2).unlink()
    agreement = ckpt_tui.compare(*pair, settings=NO_CACHE)
    assert (agreement.verdict, agreement.weights_equal) == (Verdict.DIFFER, False)
    assert agreement.errors[0].message.startswith(f"{S2}: missing")
    (difference,) = agreement.differences
    assert (difference.file, difference.cause.code) == (S2, CauseCode.MISSING)


def test_a_cut_shard_on_both_sides_is_damaged(pair: tuple[Path, Path]) -> None:
    for folder in pair:
        os.truncate(folder / S2, (folder / S2).stat().st_size - 5)
    agreement = ckpt_tui.compare(*pair, settings=NO_CACHE)
    assert agreement.verdict is Verdict.DAMAGED
    assert len(agreement.groups) == 1


def test_copies_cut_at_other_places_differ(pair: tuple[Path, Path]) -> None:
    for folder, bytes_ in zip(pair, (5, 6), strict=True):
        os.truncate(folder / S2, (folder / S2).stat().st_size - bytes_)
    assert ckpt_tui.compare(*pair, settings=NO_CACHE).verdict is Verdict.DIFFER


@pytest.mark.parametrize(
    ("name", "hidden"), [(S2, S2), ("config.json", "config.json"), ("model.safetensors.index.json", "the names")]
)
def test_a_file_that_may_not_be_read_leaves_it_undecided(pair: tuple[Path, Path], name: str, hidden: str) -> None:
    for path in [pair[0].parent, *pair[0].parents]:
        if path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o5:
            path.chmod(path.stat().st_mode | 0o55)  # pytest's own folders are private
    (pair[1] / name).chmod(0)
    told = run_unprivileged(lambda: results.encode(ckpt_tui.compare(*pair, settings=NO_CACHE)))
    agreement = results.decode_as(told, Agreement, hidden)
    assert agreement.verdict is Verdict.UNDECIDED
    assert [(error.rank, name in error.message, "EACCES" in error.message) for error in agreement.errors] == [
        (1, True, True)
    ]
    assert all(difference.severity is Severity.WARNING for difference in agreement.differences)


def test_a_flipped_bit_beside_a_moved_tensor_is_found_across_shards(tmp_path: Path) -> None:
    one = write_checkpoint(tmp_path / "one", shards=1, tensors=4, names={1: "a.safetensors"})
    other = write_checkpoint(tmp_path / "other", shards=1, tensors=4, names={1: "b.safetensors"})
    assert ckpt_tui.compare(one, other, settings=NO_CACHE).weights_equal is True
    flip_bit(other / "b.safetensors", payload_offset(other / "b.safetensors"))
    agreement = ckpt_tui.compare(one, other, settings=NO_CACHE)
    assert (agreement.verdict, agreement.weights_equal) == (Verdict.DIFFER, False)


def test_a_file_compares_with_a_file(pair: tuple[Path, Path]) -> None:
    assert ckpt_tui.compare(pair[0] / S1, pair[1] / S1, settings=NO_CACHE).verdict is Verdict.AGREE
    flip_bit(pair[1] / S1, payload_offset(pair[1] / S1))
    agreement = ckpt_tui.compare(pair[0] / S1, pair[1] / S1, settings=NO_CACHE)
    assert [difference.file for difference in agreement.differences] == [S1]


def test_a_file_without_tensors_is_compared_by_its_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 8)
    pair = (tmp_path / "one", tmp_path / "other")
    assert ckpt_tui.compare(*pair, settings=NO_CACHE).verdict is Verdict.AGREE
    flip_bit(pair[1] / "model.gguf", 1000)
    agreement = ckpt_tui.compare(*pair, settings=NO_CACHE)
    assert (agreement.verdict, agreement.weights_equal) == (Verdict.DIFFER, False)
    assert agreement.differences[0].cause.facts[0] == "1 of 1 extents differ"


def test_one_is_nothing_to_compare(pair: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="two"):
        ckpt_tui.compare(pair[0])


# Saved scans.


def save(env: dict[str, str], folder: Path, target: Path, *words: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "ckpt_tui", "scan", folder, "--save", target, "--format", "quiet", *words],
        env=env, timeout=60, check=True,
    )  # fmt: skip
    return target


def test_a_saved_scan_stands_for_its_checkpoint(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    saved = save(env, o31 / "x/tiny", tmp_path / "x.json")
    assert run(env, saved, o31 / "y/renamed-copy").returncode == 0
    agreement = json.loads(run(env, saved, o31 / "z/tiny", "--json").stdout)
    assert differing(agreement) == {S2: ["model.layers.1.w"]}
    both = json.loads(run(env, saved, save(env, o31 / "z/tiny", tmp_path / "z.json"), "--json").stdout)
    assert differing(both) == {S2: ["model.layers.1.w"]}


def test_a_saved_scan_that_was_edited_stands_for_nothing(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    saved = Path(save(env, o31 / "x/tiny", tmp_path / "x.json"))
    built = json.loads(saved.read_bytes())
    next(file for file in built["files"] if file["role"] == "weights")["name"] += ".renamed.safetensors"
    saved.write_text(json.dumps(built))
    done = run(env, saved, o31 / "y/renamed-copy")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"x.json: its content is not that of the files that it lists: it was edited" in done.stderr


def test_a_saved_scan_without_tables_still_names_the_file(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ckpt_tui", "scan", o31 / "x/tiny", "--json"],
        env=env, timeout=60, check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "x.json").write_bytes(done.stdout)
    agreement = json.loads(run(env, tmp_path / "x.json", o31 / "z/tiny", "--json").stdout)
    assert differing(agreement) == {S2: []}


def test_a_saved_identity_decides_nothing_about_bytes(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    saved = save(env, o31 / "x/tiny", tmp_path / "x.json", "--identity-only")
    done = run(env, saved, o31 / "z/tiny")
    assert done.returncode == 3
    assert b"content is not known" in done.stdout
    assert run(env, saved, o31 / "k/tiny").returncode == 1
    assert run(env, saved, o31 / "z/tiny", "--identity-only").returncode == 3


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"schema": "ckpt-tui/agreement/1"}', b"\x00" * 100])
def test_json_of_others_is_refused_in_one_line(o31: Path, env: dict[str, str], tmp_path: Path, body: bytes) -> None:
    (tmp_path / "other.json").write_bytes(body)
    done = run(env, o31 / "x/tiny", tmp_path / "other.json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"other.json" in done.stderr


def test_a_pipe_named_as_a_saved_scan_does_not_hang(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert run(env, o31 / "x/tiny", tmp_path / "pipe.json").returncode == 2


# Reports.


def test_a_report_is_written_in_the_form_that_its_name_asks_for(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    for suffix, begin in (
        (".json", b'{"schema":"ckpt-tui/agreement/1"'),
        (".md", b"## DIFFER"),
        (".html", b"<!doctype"),
    ):
        target = tmp_path / f"r{suffix}"
        done = run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", target, "--format", "quiet")
        assert (done.returncode, done.stderr) == (1, b"")
        assert target.read_bytes().startswith(begin)
        again = run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", target)
        assert (again.returncode, again.stdout) == (2, b"")
        assert b"--force" in again.stderr
        assert run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", target, "--force").returncode == 1
    hidden = tmp_path / "hidden.md"
    run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", hidden, "--redact")
    assert str(o31).encode() not in hidden.read_bytes()


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_read(
    o31: Path, env: dict[str, str], tmp_path: Path
) -> None:
    done = run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", tmp_path / "r.pdf")
    assert (done.returncode, done.stdout) == (2, b"")
    assert not Path(env["CKPT_TUI_CACHE_DIR"]).exists()
    full = tmp_path / "r.md"
    full.symlink_to("/dev/full")
    gone = run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", full, "--force")
    assert gone.returncode == 1
    assert gone.stdout.startswith(b"DIFFER")
    assert b"could not be written" in gone.stderr
    equal = run(env, o31 / "x/tiny", o31 / "y/renamed-copy", "--report", full, "--force")
    assert equal.returncode == 3


def test_a_saved_result_is_rendered_again(o31: Path, env: dict[str, str], tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    shown = run(env, o31 / "x/tiny", o31 / "z/tiny", "--report", saved).stdout

    def report(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
        call = [sys.executable, "-m", "ckpt_tui", "report", *map(str, words)]
        return subprocess.run(call, env=env, capture_output=True, timeout=60, check=False)

    again = report(saved)
    assert (again.returncode, again.stderr) == (0, b"")
    assert again.stdout.split(b"oldest digest")[0] == shown.split(b"oldest digest")[0]
    assert report(saved, "--format", "json").stdout == saved.read_bytes()
    assert report(saved, "--format", "markdown").stdout.startswith(b"## DIFFER")
    page = report(saved, "--format", "html", "--redact").stdout
    assert page.startswith(b"<!doctype html>")
    assert str(o31).encode() not in page
    assert report(saved, "--report", tmp_path / "r.html").returncode == 0
    assert (tmp_path / "r.html").read_bytes().startswith(b"<!doctype html>")
    (tmp_path / "other.json").write_text("{}")
    for words in ([tmp_path / "other.json"], [tmp_path / "nothing.json"], [tmp_path]):
        refused = report(*words)
        assert (refused.returncode, refused.stdout, refused.stderr.count(b"\n")) == (2, b"", 1)


def test_the_second_look_is_shown_in_its_own_words() -> None:
    looking = LookProgress(bytes_total=64 << 20, bytes_done=12 << 20, started=0.0)
    assert look_words(looking, 1.0) == "12.0 of 64.0 MiB  18 %  of what differs read again"
