"""Weight maps against headers: tensors that are nowhere, elsewhere, or twice. Headers only, so it is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import Severity, State
from ..native.names import are_unique, joined
from ..present.safe import escape, is_plain
from ..present.units import count

if TYPE_CHECKING:
    from .findings import Findings
    from .model import CheckpointFile
    from .plan import Component

_SHOWN = 8


class MapAudit(NamedTuple):
    """How one index's map and its shards' headers disagree. Tensors and files are escaped text."""

    #: (mapped file, file that stores it) to tensors.
    elsewhere: dict[tuple[str, str], list[str]]
    #: Mapped file to tensors that no readable shard stores.
    nowhere: dict[str, list[str]]
    #: Storing file to tensors that the map does not list.
    unlisted: dict[str, list[str]]
    #: (file, other file) to tensors that both store.
    twice: dict[tuple[str, str], list[str]]
    #: Path of a shard to what another shard stores as well, in words.
    rivals: dict[str, str]


def check_map(component: Component, files: dict[str, CheckpointFile]) -> MapAudit:
    """Compare a map with the headers of its shards. Shards without a header settle nothing, so they are left out."""
    result = MapAudit({}, {}, {}, {}, {})
    if not _all_at_home(component, files):
        _compare(component, files, result)
    return result


def _compare(component: Component, files: dict[str, CheckpointFile], result: MapAudit) -> None:
    stored = {path: stored_names(files[path]) for path in component.files if files[path].header is not None}
    mapped: dict[str, set[str]] = {path: set() for path in component.files}
    odd_names = not is_plain("".join(component.shards))  # told at once, as there may be very many
    for tensor, path in component.shards.items():
        mapped[path].add(escape(tensor) if odd_names else tensor)
    odd = {path: names for path, names in stored.items() if names != mapped[path]}
    if not odd:
        return
    where: dict[str, list[str]] = {}
    for path, names in stored.items():
        for tensor in sorted(names):  # so that every process says the same words
            where.setdefault(tensor, []).append(path)
    home = {tensor: path for path, names in mapped.items() for tensor in names}
    for path, names in odd.items():
        shown = files[path].name
        for tensor in sorted(mapped[path] - names):
            others = where.get(tensor)
            if others:
                result.elsewhere.setdefault((shown, files[others[0]].name), []).append(tensor)
            else:
                result.nowhere.setdefault(shown, []).append(tensor)
        for tensor in sorted(names - mapped[path]):
            if tensor not in home and where[tensor] == [path]:
                result.unlisted.setdefault(shown, []).append(tensor)
    for tensor, paths in where.items():
        for other in paths[1:]:
            result.twice.setdefault((files[paths[0]].name, files[other].name), []).append(tensor)
            result.rivals.setdefault(paths[0], f"{tensor} is also stored in {files[other].name}")
            result.rivals.setdefault(other, f"{tensor} is also stored in {files[paths[0]].name}")


def _all_at_home(component: Component, files: dict[str, CheckpointFile]) -> bool:
    """Whether the shards store what the map says and nothing else, as nearly always; false for some odd names too."""
    found: dict[str, str] = {}
    stored = 0
    for path in component.files:
        header = files[path].header
        if header is None:
            return False
        found.update(dict.fromkeys(header.tensors.names, path))
        stored += len(header.tensors)
    return stored == len(found) and found == component.shards and is_plain("".join(found))


def stored_names(file: CheckpointFile) -> set[str]:
    """The tensors that a file's header lists, as escaped text."""
    return set(file.header.tensors.names) if file.header else set()


def note_map(component: Component, found: MapAudit, findings: Findings) -> None:
    """Say what an audit found, one finding a file or pair of files, with the first few tensors."""
    index = escape(component.index or "")
    for (path, other), tensors in found.elsewhere.items():
        message = f"{_names(tensors)}: mapped to {path} by {index}, and stored in {other}"
        findings.add("ambiguous", Severity.ERROR, message, file=path, tensor=tensors[0])
    for path, tensors in found.nowhere.items():
        message = f"{_names(tensors)}: mapped to {path} by {index}, and stored in no shard that can be read"
        findings.add("missing-tensor", Severity.ERROR, message, file=path, tensor=tensors[0])
    for (path, other), tensors in found.twice.items():
        message = f"{_names(tensors)}: stored in two shards, {path} and {other}"
        findings.add("ambiguous", Severity.ERROR, message, file=other, tensor=tensors[0])
    for path, tensors in found.unlisted.items():
        message = f"{path}: stores {count(len(tensors), 'tensor')} that {index} does not list: {_names(tensors)}"
        findings.add("unlisted-tensor", Severity.WARNING, message, file=path, tensor=tensors[0])


def note_total(component: Component, files: dict[str, CheckpointFile], findings: Findings) -> None:
    """Say where an index's `total_size` is not what the headers add up to. It is a hint, so this is a note."""
    declared, index = component.total_size, escape(component.index or "")
    if declared is None:
        return
    shards = [files[path] for path in component.files]
    actual = sum(shard.header.needed - len(shard.header.raw) for shard in shards if shard.header)
    if type(declared) is not int:
        shown = escape(str(declared)[:40])
        message = f"{index}: its total_size is no number ({shown}); the shards hold {count(actual, 'byte')}"
    elif all(shard.header for shard in shards):
        message = f"{index}: declares {count(declared, 'byte')} of tensors, and the shards hold {actual:,}"
    elif all(shard.header or shard.state is State.MISSING for shard in shards) and actual < declared:
        lost = f"{declared - actual:,} of {count(declared, 'byte')}"
        message = f"{index}: the missing shards held {lost} by its total_size"
    else:
        return
    if actual != declared:
        findings.add("index-total", Severity.NOTE, message, file=index)


def note_shared(component: Component, files: dict[str, CheckpointFile], findings: Findings) -> None:
    """Warn where files of a listing store a tensor of the same name: no index says which one counts."""
    every = [header.tensors.names for path in component.files if (header := files[path].header)]
    if are_unique(joined(every)):
        return
    where: dict[str, str] = {}
    shared: dict[tuple[str, str], list[str]] = {}
    for path in component.files:
        names = stored_names(files[path])
        again = names & where.keys()
        for tensor in sorted(again):
            shared.setdefault((files[where[tensor]].name, files[path].name), []).append(tensor)
        where.update(dict.fromkeys(names - again, path))
    for (path, other), tensors in shared.items():
        message = f"{path} and {other} both store {_names(tensors)}; no index says which one counts"
        findings.add("ambiguous", Severity.WARNING, message, file=other, tensor=tensors[0])


def _names(tensors: list[str]) -> str:
    more = f" and {len(tensors) - _SHOWN:,} more" if len(tensors) > _SHOWN else ""
    return ", ".join(tensors[:_SHOWN]) + more
