"""Claims that lie beside a checkpoint or are handed over: found, checked cold and warm, each with its origin."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as settings_
from hypothesis import strategies as st

from ckpt_tui.checkpoint import locate
from ckpt_tui.checkpoint.expect import read_expected
from ckpt_tui.digest import scan
from ckpt_tui.facts.expected import MANIFEST_SCHEMA, ClaimKind, ExpectedFile, Manifest
from ckpt_tui.facts.files import FileResult, Severity, Source, State
from ckpt_tui.facts.outcome import Exit, UsageError, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.present.words import scan_word
from tests.support.checkpoints import flip_bit, payload_offset, safetensors_bytes, tensor, write_checkpoint

S1, S2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
COMMIT = "a" * 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def settings(tmp_path: Path) -> ScanSettings:
    return ScanSettings(cache_dir=str(tmp_path / "cache"), threads=1)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(folder: Path, *names: str) -> str:
    return "".join(f"{sha256(folder / name)}  {name}\n" for name in names)


def claims(result: ScanResult, name: str) -> list[tuple[str, str, bool | None]]:
    found = next(file for file in result.files if file.name == name)
    return [(claim.kind, claim.origin, claim.holds) for claim in found.claims]


def named(result: ScanResult, name: str) -> FileResult:
    return next(file for file in result.files if file.name == name)


def codes(result: ScanResult) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in result.findings}


NAMES = ["SHA256SUMS", "sha256sum.txt", "checksums.txt", "SHA256SUMS.txt", "weights.sha256", "all.sha256sums"]


@pytest.mark.parametrize("name", NAMES)
def test_a_checksum_file_beside_the_checkpoint_is_a_claim_cold_and_warm(
    name: str, folder: Path, settings: ScanSettings
) -> None:
    (folder / name).write_text(sums(folder, S1, S2))
    for source in (Source.READ, Source.CACHE):
        result = scan(folder, settings)
        assert claims(result, S2) == [("sums", name, True)]
        assert claims(result, "config.json") == []
        assert named(result, S2).source is source
        assert (scan_word(result), scan_code(result)) == ("VERIFIED", Exit.SAME)


def test_a_claim_that_comes_later_is_checked_against_what_the_cache_remembers(
    folder: Path, settings: ScanSettings
) -> None:
    (folder / "SHA256SUMS").write_text(sums(folder, S1, S2))
    flip_bit(folder / S2, payload_offset(folder / S2))
    scan(folder, settings)
    result = scan(folder, settings)
    assert named(result, S2).source is Source.CACHE
    assert named(result, S2).state is State.DIGEST_MISMATCH
    assert "(SHA256SUMS)" in (named(result, S2).error or "")
    assert scan_code(result) is Exit.DIFFERENT


@pytest.mark.parametrize("name", ["MD5SUMS.asc", "SHA256SUMS.sig.bak", "checksums.py", "consumers.md", ".sha256"])
def test_files_that_only_look_like_one_are_left_alone(name: str, folder: Path, settings: ScanSettings) -> None:
    (folder / name).write_text("hello\n" + sums(folder, S1))
    assert claims(scan(folder, settings), S1) == []


def test_names_in_subfolders_are_found_from_the_root_and_from_their_own_folder(
    tmp_path: Path, settings: ScanSettings
) -> None:
    root = tmp_path / "pipeline"
    unet = write_checkpoint(root / "unet", shards=1, index=False)
    shard = "model-00001-of-00001.safetensors"
    (root / "model_index.json").write_text(json.dumps({"unet": ["diffusers", "UNet"]}))
    (root / "SHA256SUMS").write_text(f"{sha256(unet / shard)} *./unet/{shard}\n")
    (unet / f"{shard}.sha256").write_text(sha256(unet / shard).upper() + "\n")
    result = scan(root, settings)
    assert claims(result, f"unet/{shard}") == [
        ("sums", "SHA256SUMS", True),
        ("sums", f"unet/{shard}.sha256", True),
    ]
    assert "ignored" not in codes(result)


def test_a_file_that_was_named_has_its_claims_too(folder: Path, settings: ScanSettings) -> None:
    (folder / "SHA256SUMS").write_text(sums(folder, S1, S2))
    result = scan(folder / S1, settings)
    assert [file.name for file in result.files] == [S1]
    assert claims(result, S1) == [("sums", "SHA256SUMS", True)]
    assert "expected-missing" not in codes(result)


def test_hostile_and_broken_lines_are_a_note(folder: Path, settings: ScanSettings) -> None:
    lines = f"hello\n{'0' * 64}  ../../etc/passwd\n{'0' * 64}  \x1b[31mred\n{'0' * 32}  {S1}\n"
    (folder / "SHA256SUMS").write_bytes(lines.encode() + b"\xff\xfe\n" + sums(folder, S2).encode())
    result = scan(folder, settings)
    assert claims(result, S2) == [("sums", "SHA256SUMS", True)]
    (note,) = [one for one in result.findings if one.code == "record-unusable"]
    assert note.severity is Severity.NOTE
    assert (
        "2 lines are no checksums (the first is line 1), 1 name leads out of its folder, 1 line is of" in note.message
    )
    assert all(one.message.isprintable() for one in result.findings)
    assert scan_code(result, strict=True) is Exit.SAME


def test_a_fifo_by_that_name_is_never_opened(folder: Path, settings: ScanSettings) -> None:
    os.mkfifo(folder / "SHA256SUMS")
    (folder / "model.sig").symlink_to("/dev/zero")
    result = scan(folder, settings)
    assert codes(result) == {"record-unusable": Severity.NOTE}
    assert scan_code(result) is Exit.SAME


def signature(files: dict[str, str]) -> str:
    root = hashlib.sha256(b"".join(map(bytes.fromhex, files.values()))).hexdigest()
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {"sha256": root}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": False},
            "resources": [{"name": name, "digest": digest, "algorithm": "sha256"} for name, digest in files.items()],
        },
    }
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps({"dsseEnvelope": {"payload": payload, "payloadType": "application/vnd.in-toto+json"}})


def test_a_signing_manifest_is_a_claim_and_its_signature_is_said_to_be_unchecked(
    folder: Path, settings: ScanSettings
) -> None:
    files = {name: sha256(folder / name) for name in sorted(path.name for path in folder.iterdir())}
    (folder / "model.sig").write_text(signature(files))
    result = scan(folder, settings)
    assert claims(result, "config.json") == [("signing-manifest", "model.sig (its signature is not checked)", True)]
    assert codes(result) == {"signature-unchecked": Severity.NOTE}
    flip_bit(folder / S1, payload_offset(folder / S1))
    assert named(scan(folder, settings), S1).state is State.DIGEST_MISMATCH


@pytest.mark.parametrize(
    ("raw", "expected"),
    [(b"\x89not json", {"record-unusable"}), (b'{"dsseEnvelope": {"payload": "!"}}', {"record-unusable"})],
)
def test_a_signature_of_no_use_is_a_note(raw: bytes, expected: set[str], folder: Path, settings: ScanSettings) -> None:
    (folder / "model.sig").write_bytes(raw)
    (folder / f"{S1}.sig").write_bytes(b"\x89PGP")
    assert set(codes(scan(folder, settings))) == expected


def test_claims_that_contradict_each_other_are_said_and_one_of_them_is_broken(
    folder: Path, settings: ScanSettings
) -> None:
    (folder / "SHA256SUMS").write_text(sums(folder, S1, S2))
    (folder / f"{S1}.sha256").write_text("0" * 64)
    result = scan(folder, settings)
    (found,) = [one for one in result.findings if one.code == "claims-contradict"]
    assert found.file == S1
    assert "SHA256SUMS" in found.message
    assert f"000000000000 by {S1}.sha256" in found.message
    assert named(result, S1).state is State.DIGEST_MISMATCH
    assert {holds for _, _, holds in claims(result, S1)} == {True, False}


def test_sums_made_from_unwritten_bytes_do_not_clear_them(tmp_path: Path, settings: ScanSettings) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    zeros = {f"w{place}": ("U8", (1 << 20,), bytes(1 << 20)) for place in range(2)}
    (folder / "model.safetensors").write_bytes(safetensors_bytes({"a": tensor("a"), **zeros}))
    (folder / "SHA256SUMS").write_text(sums(folder, "model.safetensors"))
    result = scan(folder, settings)
    assert claims(result, "model.safetensors") == [("sums", "SHA256SUMS", True)]
    assert named(result, "model.safetensors").state is State.SUSPECT
    assert scan_word(result) == "DONE"


def expect(settings: ScanSettings, path: Path, *fail_on: str) -> ScanSettings:
    return msgspec.structs.replace(settings, expected=(read_expected(str(path)),), fail_on=fail_on)


def manifest(folder: Path, *names: str, **change: object) -> Manifest:
    files = [
        ExpectedFile(name=name, size=(folder / name).stat().st_size, sha256=sha256(folder / name)) for name in names
    ]
    body: dict[str, object] = {
        "schema": MANIFEST_SCHEMA, "tool": "t", "repo_id": "acme/tiny", "revision": COMMIT, "fetched": 1.0,
        "endpoint": "https://hub", "files": tuple(files),
    }  # fmt: skip
    return Manifest(**body | change)  # type: ignore[arg-type]


def test_a_manifest_is_expected_with_sizes_and_hashes(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    saved = tmp_path / "m.json"
    saved.write_bytes(msgspec.json.encode(manifest(folder, S1, S2)))
    result = scan(folder, expect(settings, saved))
    assert claims(result, S1) == [("hub-manifest", str(saved), True)]
    assert scan_word(result) == "VERIFIED"
    (folder / S2).write_bytes((folder / S2).read_bytes() + b"x")
    found = locate(str(folder), expected=(read_expected(str(saved)),))
    assert next(file.state for file in found.files if file.name == S2) is State.OVERLONG


def test_a_saved_scan_is_expected(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    saved = tmp_path / "scan.json"
    saved.write_bytes(msgspec.json.encode(scan(folder, settings)))
    assert scan_word(scan(folder, expect(settings, saved))) == "VERIFIED"
    (folder / "tokenizer.json").write_text("{}")
    result = scan(folder, expect(settings, saved))
    assert named(result, "tokenizer.json").state is State.TRUNCATED
    assert str(saved) in (named(result, "tokenizer.json").error or "")


def test_a_signing_manifest_is_expected(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    signed = tmp_path / "elsewhere.sig"
    signed.write_text(signature({name: sha256(folder / name) for name in (S1, S2)}))
    result = scan(folder, expect(settings, signed))
    assert claims(result, S1) == [("signing-manifest", f"{signed} (its signature is not checked)", True)]
    signed.write_text(signature({S1: "0" * 64}).replace("dsseEnvelope", "other"))
    with pytest.raises(UsageError, match="another kind"):
        read_expected(str(signed))


def test_what_is_expected_and_not_there(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    file = tmp_path / "expected.txt"
    file.write_text(sums(folder, S1, S2, "config.json", "tokenizer.json", "model.safetensors.index.json"))
    (folder / "tokenizer.json").unlink()
    assert codes(scan(folder, expect(settings, file))) == {"expected-missing": Severity.WARNING}
    file.write_text(file.read_text() + f"{'0' * 64}  README.md\n")
    strict = scan(folder, expect(settings, file, "missing"))
    assert codes(strict) == {"expected-missing": Severity.ERROR}
    assert scan_code(strict) is Exit.DIFFERENT


def test_a_readme_that_is_not_there_is_a_note(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    file = tmp_path / "expected.txt"
    names = sorted(path.name for path in folder.iterdir())
    file.write_text(sums(folder, *names) + f"{'0' * 64}  README.md\n")
    assert codes(scan(folder, expect(settings, file))) == {"expected-missing": Severity.NOTE}


def test_a_shard_that_only_what_is_expected_speaks_of_is_missing(tmp_path: Path, settings: ScanSettings) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("a.safetensors", "b.safetensors"):
        (folder / name).write_bytes(safetensors_bytes({name: tensor(name)}))
    file = tmp_path / "expected.txt"
    file.write_text(sums(folder, "a.safetensors", "b.safetensors"))
    (folder / "b.safetensors").unlink()
    result = scan(folder, expect(settings, file))
    assert named(result, "b.safetensors").state is State.MISSING
    assert f"{file} records it" in (named(result, "b.safetensors").error or "")
    assert result.content is None
    assert scan_code(result) is Exit.DIFFERENT


def test_what_is_there_and_not_expected(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    file = tmp_path / "expected.txt"
    file.write_text(sums(folder, S1, "config.json", "tokenizer.json", "model.safetensors.index.json"))
    assert codes(scan(folder, expect(settings, file))) == {"unexpected": Severity.WARNING}
    assert scan_word(scan(folder, expect(settings, file))) == "DONE"
    failed = scan(folder, expect(settings, file, "extra"))
    assert scan_code(failed) is Exit.DIFFERENT
    assert S2 in next(one.message for one in failed.findings if one.code == "unexpected")


def test_extra_weights_fail_where_that_is_asked_for(folder: Path, settings: ScanSettings) -> None:
    (folder / "stray.safetensors").write_bytes((folder / S1).read_bytes())
    assert scan_code(scan(folder, settings)) is Exit.SAME
    assert scan_code(scan(folder, msgspec.structs.replace(settings, fail_on=("extra",)))) is Exit.DIFFERENT


def test_recorded_files_that_are_no_part_of_the_checkpoint_are_said_not_to_be_checked(
    folder: Path, tmp_path: Path, settings: ScanSettings
) -> None:
    (folder / "README.md").write_text("# tiny\n")
    file = tmp_path / "expected.txt"
    names = sorted(path.name for path in folder.iterdir())
    file.write_text(sums(folder, *names))
    result = scan(folder, expect(settings, file))
    assert codes(result) == {"expected-unread": Severity.NOTE}
    assert scan_word(result) == "VERIFIED"


SAFE = {"files": (ExpectedFile(name="model.safetensors", sha256="0" * 64),)}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no line"),
        (b"hello\n", "no checksum"),
        (b"0" * 64 + b"  ok\n" + b"0" * 63 + b"  cut\n", "line 2"),
        (b"{}", "JSON of another kind"),
        (b'{"schema": "ckpt-tui/agreement/1"}', "JSON of another kind"),
        (b'{"schema": "ckpt-tui/scan/1"}', "what it says it is"),
        (b"[" * 100_000, "no checksum"),
        (b'{"a":' * 100_000, "what it says it is"),
        (msgspec.json.encode(manifest(Path(), files=(ExpectedFile(name="../x"),))), "no checkpoint holds"),
        (msgspec.json.encode(manifest(Path(), files=(ExpectedFile(name="\x1b[31m"),))), "no checkpoint holds"),
        (msgspec.json.encode(manifest(Path(), files=(ExpectedFile(name="\\ud800"),))), "no checkpoint holds"),
        (msgspec.json.encode(manifest(Path(), files=(ExpectedFile(name="\\x00"),))), "no checkpoint holds"),
        (msgspec.json.encode(manifest(Path(), files=(ExpectedFile(name="/x"),))), "no checkpoint holds"),
        (msgspec.json.encode(manifest(Path(), repo_id="a\nb", **SAFE)), "nothing of ours"),
    ],
)
def test_what_cannot_be_expected_is_refused_before_anything_is_read(raw: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(UsageError, match=words) as raised:
        read_expected(str(tmp_path / "file"))
    assert str(raised.value).isprintable()


def test_a_file_that_is_not_there_cannot_be_expected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ENOENT"):
        read_expected(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("options", [{"sha256": False}, {"identity_only": True}])
def test_a_saved_scan_without_sha256_holds_nothing_to_expect(
    options: dict[str, bool], folder: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "scan.json"
    saved.write_bytes(msgspec.json.encode(scan(folder, ScanSettings(use_cache=False, **options))))
    with pytest.raises(UsageError, match="without sha256"):
        read_expected(str(saved))


def test_a_saved_scan_of_damage_is_not_to_be_expected(folder: Path, tmp_path: Path, settings: ScanSettings) -> None:
    (folder / S1).unlink()
    saved = tmp_path / "scan.json"
    saved.write_bytes(msgspec.json.encode(scan(folder, settings)))
    with pytest.raises(UsageError, match="damaged"):
        read_expected(str(saved))


HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
FILES = st.lists(
    st.builds(
        ExpectedFile, name=st.text(max_size=8), size=st.none() | st.integers(), sha256=st.none() | st.text() | HEX
    )
)


@settings_(deadline=None)
@given(FILES, st.text(max_size=8), st.text(max_size=8))
def test_a_manifest_of_any_content_is_taken_or_refused_and_its_text_is_safe(
    tmp_path_factory: pytest.TempPathFactory, files: list[ExpectedFile], repo_id: str, revision: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any-manifest.json"
    file.write_bytes(msgspec.json.encode(manifest(Path(), files=tuple(files), repo_id=repo_id, revision=revision)))
    with suppress(UsageError):
        found = read_expected(str(file))
        assert found.kind is ClaimKind.HUB_MANIFEST
        assert all(one.name.isprintable() and ".." not in one.name.split("/") for one in found.files)


ANY_SCHEMA = st.recursive(st.text(), st.lists).map(lambda value: json.dumps({"schema": value}).encode())


@settings_(deadline=None)
@given(st.binary(max_size=200) | ANY_SCHEMA)
def test_any_bytes_are_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any-bytes"
    file.write_bytes(raw)
    with pytest.raises(UsageError):
        read_expected(str(file))
