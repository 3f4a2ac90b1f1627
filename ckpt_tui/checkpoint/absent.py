"""Why a file is not there: what the index, the hub's listing and the disk know of it."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from ..facts.files import Severity, State
from ..present.safe import escape
from ..present.units import count
from .claims import blob_name
from .names import RANK_FILES_TABLE
from .opening import look

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .claims import Records
    from .opening import Look
    from .plan import Plan

_ABSENT = {State.MISSING, State.BROKEN_LINK}


def explain_absent(root: Path, plan: Plan, looks: dict[str, Look], records: Records) -> None:
    """Add to the reason of every file that is not there what else is known of it."""
    absent = [name for name, found in looks.items() if found.state in _ABSENT]
    if not absent:
        return
    counts = Counter(path for component in plan.components for path in component.shards.values())
    indexes = {path: component.index for component in plan.components for path in component.files}
    shared = 0
    for name in absent:
        words = [looks[name].error or looks[name].state.value]
        index = indexes.get(name)
        if any(name in component.by_number for component in plan.components):
            words.append("the numbers in the other names speak of it")
        words += [
            f"{component.by_record[name]} records it" for component in plan.components if name in component.by_record
        ]
        if index is not None:
            words.append(f"{escape(index)} maps {count(counts[name], 'tensor')} to it")
        words += _other_case(plan, name)
        words += _without_table(root / name)
        words += _by_records(root / name, name, records)
        looks[name] = looks[name]._replace(error="; ".join(words))
        blob = blob_name(root / name)
        shared += blob is not None and _is_dangling(records.blob(blob))
    if shared:
        weights = count(len(plan.weights), "weight file")
        message = (
            f"{count(shared, 'file')} ({weights} in all) point into the hub cache's shared store, its blobs/ folder, "
            "which is not here: copy that too, or copy with links followed (cp -rL, rsync -L)"
        )
        plan.findings.add("blob-store-missing", Severity.ERROR, message)


def _other_case(plan: Plan, name: str) -> Iterator[str]:
    folder, _, last = name.rpartition("/")
    listed = plan.folders.get(folder)
    for other in listed.files if listed else ():
        if other != last and other.casefold() == last.casefold():
            yield f"a file of that name in other case is there: {escape(other)}"


def _without_table(path: Path) -> Iterator[str]:
    if path.name != RANK_FILES_TABLE:
        return
    yield "without it no rank file can be loaded"
    unfinished = f"{RANK_FILES_TABLE}.tmp"
    if look(path.with_name(unfinished)).state is State.GOOD:
        yield f"{unfinished} is there, so the save was not finished"
    else:
        yield "the save was not finished, or another host has it, or `cp *` left it out for the dot in its name"


def _by_records(path: Path, name: str, records: Records) -> Iterator[str]:
    expected = records.expected(name)
    size = ""
    if expected is not None:
        size = f" of {expected[1].bytes:,}"
        yield f"{count(expected[1].bytes, 'byte')} by {expected[1].origin}"
    place = records.unfinished(name, blob_name(path) or (expected[0] if expected else None))
    if place is None:
        return
    folder, start = place
    try:
        for part in sorted(folder.iterdir()):
            if part.name.startswith(start) and part.name.endswith(".incomplete"):
                yield f"an unfinished download holds {part.stat().st_size:,}{size} bytes ({escape(part.name)})"
    except OSError:
        return


def _is_dangling(path: Path | None) -> bool:
    # These answer False where Path would raise.
    return path is not None and os.path.islink(path) and not os.path.exists(path)  # noqa: PTH110, PTH114
