"""What a file's name says it is: weights, a sidecar, another format, or something left over. Pure."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SAFETENSORS = ".safetensors"
INDEX = ".index.json"
#: What each rank writes with torch.distributed.checkpoint.
RANK_FILE = ".distcp"
#: Weights that are hashed in fixed extents and never opened as what they are: most hold pickles.
OPAQUE = (".bin", ".gguf", ".pt", ".pth", ".ckpt", RANK_FILE)
#: Lies beside rank files and says which tensor lies where in them. A pickle, which is not opened.
RANK_FILES_TABLE = ".metadata"
#: Weights of frameworks that this tool does not read; named, so that nobody takes them for compared.
FOREIGN = (".h5", ".msgpack", ".onnx", ".onnx_data", ".ot", ".npz", ".tflite")


class Kind(Enum):
    """What a name says a file is."""

    WEIGHTS = auto()
    #: Weights in a format whose bytes are all that is looked at.
    OPAQUE = auto()
    #: Weights of another framework.
    FOREIGN = auto()
    INDEX = auto()
    SIDECAR = auto()
    #: Looks like weights and is none: training state, backups, partial downloads.
    LEFTOVER = auto()
    OTHER = auto()


_SIDECAR = re.compile(
    r"""(?ix)
      [\w.-]* config [\w.-]* \.json          # config, generation_config, tokenizer_config, adapter_config ...
    | model_index\.json | modules\.json | params\.json
    | (?: tokenizer | vocab | merges | tekken | spiece | sentencepiece ) [\w.-]* \. (?: json | model | txt )
    | [\w.-]+ \. tiktoken
    | special_tokens_map\.json | added_tokens\.json
    | chat_template [\w.-]*
    """
)
_TRAINING = re.compile(
    r"(?i)(?:training_args|optimizer|scheduler|scaler|rng_state|random_states|trainer_state|zero_pp_rank)[\w.-]*"
    r"|[\w.-]*_optim_states"
)
_WEIGHT_SUFFIXES = (SAFETENSORS, *OPAQUE)
_LEFTOVER = re.compile(r"(?is).*\.(?:safetensors|bin|gguf|pt|pth|ckpt|distcp)(?:\.[^/]{1,64}|~)")


def kind_of(name: str) -> Kind:
    """What the last part of a path says the file is."""
    lower = name.lower()
    if name.startswith("."):
        return Kind.LEFTOVER if lower.endswith(_WEIGHT_SUFFIXES) else Kind.OTHER
    if lower.endswith(SAFETENSORS):
        return Kind.WEIGHTS
    if lower.endswith(INDEX):
        return Kind.INDEX
    if lower.endswith(OPAQUE):
        return Kind.LEFTOVER if _TRAINING.fullmatch(name[: name.rindex(".")]) else Kind.OPAQUE
    if lower.endswith(FOREIGN):
        return Kind.FOREIGN
    if _SIDECAR.fullmatch(name):
        return Kind.SIDECAR
    return Kind.LEFTOVER if _LEFTOVER.fullmatch(name) else Kind.OTHER


def is_weights_index(name: str) -> bool:
    """Whether this is an index over shards of a format that is read here."""
    return kind_of(name) is Kind.INDEX and name.lower().removesuffix(INDEX).endswith(_WEIGHT_SUFFIXES)


class Gap(NamedTuple):
    """Names that the numbers of a set of shards speak of and that are not among them."""

    first: str
    last: str
    absent: list[str]
    #: The names say of how many (`-of-00003`); else numbers are left out, and nobody said that there are more.
    certain: bool


_OF = r"(?s)(.*?)(\d{1,5})(-of-)(\d{1,5}\.[A-Za-z]+)"
_OPEN = r"(?s)(.*\D)(\d{5})()(\.[A-Za-z]+)"


def gaps(names: Iterable[str]) -> Iterator[Gap]:
    """What the numbering in these names, sorted and of one folder, says is not there."""
    sets: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    widths: dict[tuple[str, str, str], int] = {}
    for name in names:
        match = re.fullmatch(_OF, name) or re.fullmatch(_OPEN, name)
        if match:
            stem, number, of, rest = match.groups()
            sets.setdefault((stem, of, rest), []).append((int(number), name))
            widths[stem, of, rest] = len(number)
    for key, members in sets.items():
        stem, of, rest = key
        have = {number for number, _ in members}
        start = min(have) if not of else 0 if 0 in have else 1
        end = max(have) if not of else start + int(rest.partition(".")[0])
        absent = [f"{stem}{number:0{widths[key]}}{of}{rest}" for number in range(start, end) if number not in have]
        if absent:
            yield Gap(members[0][1], members[-1][1], absent, bool(of))


def is_whole_set(names: list[str]) -> bool:
    """Whether the numbering of these names leaves nothing out."""
    return bool(names) and not list(gaps(names))


_COPY = r"(?s)(.+?)(?: ?\(\d{1,3}\)| - Copy(?: \(\d{1,3}\))?| copy(?: \d{1,3})?)(\.[A-Za-z]+)"


def original_of(name: str) -> str | None:
    """The name that a browser or file manager made this copy's name from: `x.bin` for `x (1).bin`."""
    match = re.fullmatch(_COPY, name)
    return match[1] + match[2] if match else None


def inside(name: bytes) -> bytes | None:
    """A path with `./` and `//` taken out; None where it leads out of its folder or cannot name a file."""
    parts = [part for part in name.split(b"/") if part not in {b"", b"."}]
    if not parts or name.startswith(b"/") or b".." in parts or b"\0" in name:
        return None
    return b"/".join(parts)
