"""`ckpt-tui verify` as a user meets it: against what lies on disk, a file, and the hub's own word."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt_tui.checkpoint import online
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.expected import MANIFEST_SCHEMA
from ckpt_tui.facts.outcome import CkptError
from ckpt_tui.facts.scan import SCAN_SCHEMA
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.hub import COMMIT, download, etag, git_sha1, hub
from tests.test_rules import COMMAND, HEAVY, loaded_after

REPO = "acme/tiny"
S1, S2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The repo's files."""
    folder = write_checkpoint(tmp_path_factory.mktemp("repo"))
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {"README.md": b"# tiny\n"}


@pytest.fixture
def folder(files: dict[str, bytes], tmp_path: Path) -> Path:
    """A copy of the repo that nothing is known of."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: caches of its own, and no hub but the one that a test starts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CKPT_TUI", "HF_", "LC_"))}
    return kept | {
        "CKPT_TUI_CACHE_DIR": str(tmp_path / "digests"),
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONUTF8": "1",
    }


def run(env: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ckpt_tui", "verify", *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, timeout=90, check=False, encoding="utf-8")


def test_a_hub_cache_is_verified_cold_and_warm_without_a_network(
    files: dict[str, bytes], env: dict[str, str], tmp_path: Path
) -> None:
    with hub(REPO, files) as address:
        download(address, tmp_path / "home", repo_id=REPO)
    cold = run(env, REPO)
    assert (cold.returncode, cold.stderr) == (0, "")
    assert cold.stdout.startswith("VERIFIED  0/2 cached")
    assert "2 of 2 weight files match the recorded hash (hub)" in cold.stdout
    assert cold.stdout.count("✓ hub") == 5
    warm = run(env, REPO)
    assert warm.stdout.startswith("VERIFIED  2/2 cached, 0.0 GiB read")
    assert "✓ the names of the blobs in the hub cache: 5 kept" in warm.stdout
    blob = tmp_path / "home" / "hub" / "models--acme--tiny" / "blobs" / etag(S2, files[S2])
    flip_bit(blob, payload_offset(blob), keep_mtime=True)
    for _ in range(2):
        broken = run(env, REPO)
        assert broken.returncode == 1
        assert broken.stdout.startswith("DAMAGED  1 shard not as recorded")
        assert f"{S2}: breaks the recorded hash (the name of its blob in the hub" in broken.stdout
        assert f"recorded  sha256 {etag(S2, files[S2])}\n" in broken.stdout
        assert "computed  sha256 " in broken.stdout
        assert "✗ hub" in broken.stdout
    assert "2/2 cached" in broken.stdout


def test_json_is_the_scans_own_schema_with_every_claim(folder: Path, env: dict[str, str]) -> None:
    (folder / "SHA256SUMS").write_text(f"{etag(S1, (folder / S1).read_bytes())}  {S1}\n")
    result = json.loads(run(env, folder, "--json").stdout)
    assert result["schema"] == SCAN_SCHEMA
    claims = {file["name"]: file["claims"] for file in result["files"]}
    assert [(claim["kind"], claim["holds"], claim["origin"]) for claim in claims[S1]] == [("sums", True, "SHA256SUMS")]
    assert claims[S2] == []
    shown = run(env, folder, "--ascii").stdout
    assert shown.startswith("DONE")
    assert "v sums" in shown
    assert "- nothing is recorded of config.json, model-00002-of-00002.safetensors" in shown
    assert shown.isascii()


def test_nothing_on_record_is_said(folder: Path, env: dict[str, str]) -> None:
    done = run(env, folder)
    assert done.returncode == 0
    assert done.stdout.startswith("DONE")
    assert "nothing is recorded of any file" in done.stdout


def test_expect_takes_a_checksum_file_and_a_saved_scan(folder: Path, env: dict[str, str], tmp_path: Path) -> None:
    sums, saved = tmp_path / "expected.txt", tmp_path / "scan.json"
    sums.write_text("".join(f"{etag(name, (folder / name).read_bytes())} *{name}\n" for name in (S1, S2)))
    assert run(env, folder, "--save", saved).returncode == 0
    assert run(env, folder, "--expect", sums).stdout.startswith("VERIFIED")
    assert run(env, folder, "--expect", saved).stdout.startswith("VERIFIED")
    flip_bit(folder / S1, payload_offset(folder / S1))
    for expected in (sums, saved):
        broken = run(env, folder, "--expect", expected)
        assert broken.returncode == 1
        assert str(expected) in broken.stdout
    assert run(env, folder, "--expect", tmp_path / "nowhere").returncode == 2
    assert run(env, folder, "--expect", folder / "config.json").returncode == 2


def test_expect_may_be_given_again_and_every_word_is_checked_under_its_own_origin(
    folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    sums, saved, other = tmp_path / "SUMS", tmp_path / "scan.json", tmp_path / "other.sums"
    sums.write_text("".join(f"{etag(name, (folder / name).read_bytes())}  {name}\n" for name in (S1, S2)))
    assert run(env, folder, "--save", saved).returncode == 0
    both = run(env, folder, "--expect", sums, "--expect", saved, "--expect", sums)
    assert both.stdout.startswith("VERIFIED"), both.stdout
    assert f"✓ {sums}: 2 kept" in both.stdout
    assert f"✓ {saved}: 5 kept" in both.stdout
    other.write_text(f"{'1' * 64}  {S1}\n{etag(S2, (folder / S2).read_bytes())}  {S2}\n")
    broken = run(env, folder, "--expect", sums, "--expect", saved, "--expect", other, "--json")
    assert broken.returncode == 1
    result = json.loads(broken.stdout)
    claims = {file["name"]: [(claim["origin"], claim["holds"]) for claim in file["claims"]] for file in result["files"]}
    assert claims[S1] == [(str(sums), True), (str(saved), True), (str(other), False)]
    assert claims[S2] == [(str(sums), True), (str(saved), True), (str(other), True)]
    assert claims["config.json"] == [(str(saved), True)]
    (said,) = [one["message"] for one in result["findings"] if one["code"] == "claims-contradict"]
    assert said.startswith(f"{S1}: ")
    assert f"by {sums} and {'1' * 12} by {other}" in said


def test_each_file_that_nothing_can_be_expected_of_gets_its_line(
    folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    sums, torn = tmp_path / "SUMS", tmp_path / "torn.json"
    sums.write_text(f"{etag(S1, (folder / S1).read_bytes())}  {S1}\n")
    torn.write_bytes(b'{"schema": "ckpt-tui/scan/1", "files": [')
    given = [torn, sums, tmp_path / "nowhere", folder]
    done = run(env, folder, *(word for path in given for word in ("--expect", path)))
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[-1] == f"ckpt-tui: {folder}: cannot be read: not a regular file: a folder"
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [str(torn), str(given[2]), str(folder)]


def test_a_checksum_file_of_the_same_name_as_the_checkpoints_own_is_told_from_it(
    folder: Path, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, given = folder / "SHA256SUMS", tmp_path / "SHA256SUMS"
    own.write_text(f"{etag(S1, (folder / S1).read_bytes())}  {S1}\n")
    given.write_text(f"{'1' * 64}  {S1}\n")
    monkeypatch.chdir(tmp_path)
    broken = run(env, folder, "--expect", "SHA256SUMS")
    assert broken.returncode == 1
    assert "✓ SHA256SUMS: 1 kept" in broken.stdout
    assert "✗ SHA256SUMS (handed over): 1 broken" in broken.stdout
    monkeypatch.chdir(folder)
    assert "✓ SHA256SUMS: 1 kept" in run(env, folder, "--expect", "SHA256SUMS").stdout


@pytest.mark.parametrize("suffix", ["md", "html", "json"])
def test_what_was_found_goes_into_a_report(suffix: str, folder: Path, env: dict[str, str], tmp_path: Path) -> None:
    sums, report = tmp_path / "SUMS", tmp_path / f"report.{suffix}"
    sums.write_text(f"{'0' * 64}  model-00002-of-00002.safetensors\n")
    done = run(env, folder, "--expect", sums, "--report", report)
    assert done.returncode == 1
    assert "model-00002-of-00002.safetensors" in report.read_text()
    again = run(env, folder, "--report", report)
    assert (again.returncode, again.stdout) == (2, "")
    assert "--force" in again.stderr


def test_fail_on_turns_what_is_absent_or_unexpected_into_code_one(
    folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    sums = tmp_path / "expected.txt"
    sums.write_text(
        "".join(f"{'0' * 64}  {name}\n" for name in ("other.json",)) + f"{etag(S1, (folder / S1).read_bytes())}  {S1}\n"
    )
    assert run(env, folder, "--expect", sums).returncode == 0
    missing = run(env, folder, "--expect", sums, "--fail-on", "missing")
    assert (missing.returncode, missing.stdout.startswith("MISSING  1 file that")) == (1, True)
    extra = run(env, folder, "--expect", sums, "--fail-on", "extra")
    assert (extra.returncode, extra.stdout.startswith("EXTRA  "), S2 in extra.stdout) == (1, True, True)
    assert run(env, folder, "--expect", sums, "--fail-on", "missing,extra").returncode == 1
    assert run(env, folder, "--fail-on", "everything").returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--fast",),
        ("--repo", REPO),
        ("--save-manifest", "m.json"),
        ("--online",),
        ("--online", "--repo", "../x"),
    ],
)
def test_words_that_do_not_go_together_are_wrong_usage(
    words: tuple[str, ...], folder: Path, env: dict[str, str]
) -> None:
    done = run(env, folder, *words)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_manifest_carries_the_hubs_word_to_where_no_hub_is(
    files: dict[str, bytes], folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / "manifest.json"
    with hub(REPO, files) as address:
        online_ = run(env | {"HF_ENDPOINT": address}, folder, "--online", "--repo", REPO, "--save-manifest", saved)
        assert online_.returncode == 0, online_.stderr
        assert online_.stdout.startswith("VERIFIED")
        assert f"✓ the hub ({address}): 5 kept" in online_.stdout
        assert "README.md" in online_.stdout
        both = run(env | {"HF_ENDPOINT": address}, folder, "--online", "--repo", REPO, "--expect", saved)
        assert f"✓ {saved}: 5 kept" in both.stdout, both.stderr
        assert f"✓ the hub ({address}): 5 kept" in both.stdout
    manifest = json.loads(saved.read_bytes())
    assert (manifest["schema"], manifest["repo_id"], manifest["revision"]) == (MANIFEST_SCHEMA, REPO, COMMIT)
    assert manifest["fetched"] > 0
    assert {file["name"]: file for file in manifest["files"]} == {
        name: {"name": name, "size": len(body)}
        | ({"sha256": etag(name, body)} if name.endswith(".safetensors") else {"git_sha1": git_sha1(body)})
        for name, body in files.items()
    }
    assert run(env, folder, "--expect", saved).stdout.startswith("VERIFIED")
    flip_bit(folder / "config.json", 3)
    broken = run(env, folder, "--expect", saved)
    assert (broken.returncode, "✗ hub" in broken.stdout) == (1, True)


def test_sizes_alone_read_no_tensor_byte(
    files: dict[str, bytes], folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / "manifest.json"
    with hub(REPO, files) as address:
        options = ("--online", "--repo", REPO, "--save-manifest", saved, "--sizes-only")
        assert run(env | {"HF_ENDPOINT": address}, folder, *options).returncode == 0
    flip_bit(folder / S1, payload_offset(folder / S1))
    same = run(env, folder, "--expect", saved, "--sizes-only", "--json")
    assert same.returncode == 0
    assert json.loads(same.stdout)["totals"]["bytes_read"] == 0
    assert run(env, folder, "--expect", saved, "--sizes-only").stdout.startswith("DONE")
    os.truncate(folder / "tokenizer.json", 3)
    short = run(env, folder, "--expect", saved, "--sizes-only")
    assert short.returncode == 1
    assert "truncated" in short.stdout


def test_a_manifest_of_another_repo_or_revision_is_refused(
    files: dict[str, bytes], env: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / "manifest.json"
    with hub(REPO, files) as address:
        download(address, tmp_path / "home", repo_id=REPO)
        local = download(address, tmp_path / "home", repo_id=REPO, local_dir=str(tmp_path / "local"))
        asked = run(env | {"HF_ENDPOINT": address}, REPO, "--online", "--save-manifest", saved)
        assert asked.stdout.startswith("VERIFIED"), asked.stderr
        noted = run(env | {"HF_ENDPOINT": address}, local, "--online", "--repo", REPO)
        assert noted.stdout.startswith("VERIFIED"), noted.stderr
    manifest = json.loads(saved.read_bytes())
    for place, change in (
        (REPO, {"repo_id": "acme/other"}),
        (REPO, {"revision": "f" * 40}),
        (local, {"revision": "f" * 40}),
    ):
        saved.write_text(json.dumps(manifest | change))
        refused = run(env, place, "--expect", saved)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.count("\n") == 1
        assert next(iter(change.values())) in refused.stderr


def test_a_manifest_can_be_saved_where_the_checkpoint_is_not(
    files: dict[str, bytes], env: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / "manifest.json"
    with hub(REPO, files) as address:
        done = run(env | {"HF_ENDPOINT": address}, f"{REPO}@main", "--online", "--save-manifest", saved)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is saved" in done.stderr
    assert json.loads(saved.read_bytes())["revision"] == COMMIT


def test_a_hub_that_does_not_say_leaves_it_undecided(
    files: dict[str, bytes], folder: Path, env: dict[str, str]
) -> None:
    words = (folder, "--online", "--repo")
    for change in ({}, {"HF_HUB_OFFLINE": "1"}):
        done = run(env | change, *words, REPO)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"ckpt-tui: {REPO}: the hub does not say: ")
        assert done.stderr.count("\n") == 1
    with hub(REPO, files) as address:
        unknown = run(env | {"HF_ENDPOINT": address}, *words, "acme/unknown")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (3, 1)


def test_a_hub_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with pytest.raises(CkptError, match=r"has not answered|does not say"):
            online.fetch(REPO, None, SystemClock())


def test_an_unfinished_local_dir_download_is_mentioned_with_its_size(
    files: dict[str, bytes], env: dict[str, str], tmp_path: Path
) -> None:
    """The partial file is put where huggingface_hub itself would, asked for its path."""
    from huggingface_hub._local_folder import get_local_download_paths

    local = tmp_path / "local"
    with hub(REPO, files) as address:
        download(address, tmp_path / "home", repo_id=REPO, local_dir=str(local))
    paths = get_local_download_paths(local, S2)
    paths.metadata_path.unlink()
    part = Path(paths.incomplete_path(etag(S2, files[S2])))
    shutil.move(local / S2, part)
    os.truncate(part, 200)
    done = run(env, local)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert f"an unfinished download holds 200 of {len(files[S2]):,} bytes" in said
    assert "1 unfinished download lies in .cache/huggingface/download, 200 bytes so far" in said
    for shard in local.glob("*.safetensors*"):
        shard.unlink()
    nothing = run(env, local)
    assert nothing.returncode == 2
    assert "1 unfinished download lies in .cache/huggingface/download, 200 bytes so far" in nothing.stderr


def test_offline_it_pays_for_no_client_of_the_hub(folder: Path, tmp_path: Path) -> None:
    cache = f"--cache-dir={tmp_path / 'cache'}"
    assert not loaded_after(COMMAND, "verify", "--json", cache, str(folder)) & HEAVY
