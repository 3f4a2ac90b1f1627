"""The Cache view, fed by made-up streams."""

from __future__ import annotations

import msgspec

from ckpt_tui.facts.cached import CachedFile, CachedFolder, CacheReport
from ckpt_tui.facts.files import MissReason
from ckpt_tui.facts.status import Cell
from ckpt_tui.present import units
from ckpt_tui.present.safe import escape
from ckpt_tui.stream.codec import split_report
from ckpt_tui.stream.messages import CachePart, FileRow, Inventory, Message, Mode, VerdictRow, Word
from ckpt_tui.tui.rows import cache as rows
from ckpt_tui.tui.rows.names import fold
from ckpt_tui.tui.views.cache import CacheView
from tests.tui import streams
from tests.tui.screen import Driven, driven, run
from tests.tui.test_files_view import HOSTILE


def told(report: CacheReport | None = None, edition: int = 1) -> list[Message]:
    return [*split_report(report or streams.cache_report(), edition)]


def asked(screen: Driven) -> int:
    return sum(isinstance(command, Inventory) for command in screen.source.commands)


def test_the_worker_is_asked_when_the_view_is_opened_and_again_when_the_scan_has_ended() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00007")
            assert asked(screen) == 0
            await screen.press("4")
            await screen.shows("this start", "12 of 33", "69.2 GiB not read")
            await screen.until(lambda: asked(screen) == 1)
            screen.source.feed(CachePart(edition=1))
            await screen.shows("looking through the records")
            screen.source.feed(*told())
            await screen.shows("1,204 hits", "6.8 TiB not read", "24 records for 138.5 GiB, the oldest 41 d")
            screen.source.feed(VerdictRow(word=Word.DAMAGED, text="1 shard truncated", code=1))
            await screen.until(lambda: asked(screen) == 2)
            await screen.press("1")
            screen.clock.forward(3)
            await screen.press("4")
            await screen.until(lambda: asked(screen) == 3)

    run(check())


def test_records_stand_by_age_under_their_checkpoints_with_size_and_standing() -> None:
    async def check() -> None:
        async with driven([*streams.scanning(), *told()], size=(120, 45)) as screen:
            await screen.press("4")
            await screen.shows("/data/old/Qwen-72B-Instruct", "all gone", "all changed", "all current")
            order = [screen.text.index(name) for name in ("Qwen", "Llama", "GLM-5.3-Flash-EXL3  hub cache")]
            assert order == sorted(order)
            assert "46.2     41 d" in screen.line_with("Qwen")
            # The records of the checkpoint at hand are open, and named by this start's files, not by their blobs.
            assert "3 d   current" in screen.line_with("model-00002-of-00033")

    run(check())


def test_records_of_one_age_or_one_size_stand_by_name_however_they_were_read() -> None:
    base = streams.cache_report()
    ages = {"d.safetensors": 3.2, "c.safetensors": 3.1, "b.safetensors": 3.9, "a.safetensors": 90.0}
    folder = msgspec.structs.replace(base.folders[0], path="/m", oldest=streams.NOW - 90)
    twin = msgspec.structs.replace(folder, path="/L", oldest=streams.NOW - 95)

    def listed(names: list[str], sort: rows.Sort) -> list[str]:
        files = tuple(
            msgspec.structs.replace(base.files[0], path=f"/m/{name}", hashed_at=streams.NOW - ages[name])
            for name in names
        )
        report = msgspec.structs.replace(base, files=files, folders=(folder, twin))
        facts = rows.Facts(
            rows.stock(report), {}, {}, {}, {rows.Folder("/m")}, units.size_unit(0), None, fold([]), narrow=False
        )
        return [key.path for key in rows.order(facts, sort, "") if isinstance(key, rows.Kept | rows.Folder)]

    for names in (list(ages), list(reversed(ages))):
        assert listed(names, rows.Sort.AGE) == [
            "/L", "/m", "/m/a.safetensors", "/m/b.safetensors", "/m/c.safetensors", "/m/d.safetensors",
        ]  # fmt: skip
        assert listed(names, rows.Sort.SIZE) == listed(names, rows.Sort.NAME)


def test_each_miss_of_this_start_has_its_reason_beside_it() -> None:
    async def check() -> None:
        messages: list[Message] = [row for row in streams.scanning() if not isinstance(row, FileRow)]
        reasons = [
            (MissReason.NEW, None, "not read before"),
            (MissReason.CHANGED, "mtime, size", "changed since: mtime, size"),
            (MissReason.FORCED, None, "asked to be read again"),
            (MissReason.WEAK_FS, "squashfs", "file system not trusted: squashfs"),
        ]
        for number, (reason, detail, _) in enumerate(reasons, 1):
            row = streams.shard(number, Cell.READ)
            assert row.result is not None
            read = msgspec.structs.replace(row.result, miss_reason=reason, miss_detail=detail)
            messages.append(msgspec.structs.replace(row, result=read))
        async with driven(messages, size=(140, 32)) as screen:
            await screen.press("4")
            for number, (_, _, words) in enumerate(reasons, 1):
                await screen.shows(f"model-{number:05}")
                assert words in screen.line_with(f"model-{number:05}")

    run(check())


def test_many_misses_fold_under_their_reason_and_space_opens_them() -> None:
    async def check() -> None:
        messages: list[Message] = [row for row in streams.scanning() if not isinstance(row, FileRow)]
        messages += [streams.shard(number, Cell.READ) for number in range(1, 31)]
        async with driven(messages) as screen:
            await screen.press("4")
            await screen.shows("read in this start: not read before", "30")
            assert "model-00001" not in screen.text
            await screen.press("space")
            await screen.shows("model-00001")
            await screen.press("j", "space")
            await screen.until(lambda: "model-00001" not in screen.text)

    run(check())


def test_sort_filter_fold_details_and_copy() -> None:
    async def check() -> None:
        async with driven([*streams.verified(), *told()], size=(120, 40)) as screen:
            await screen.press("4")
            await screen.shows("▾ read", "Qwen")
            await screen.press("s")
            await screen.shows("▾ GiB")
            assert screen.text.index("hub cache") < screen.text.index("Qwen")
            await screen.press("s")
            await screen.shows("checkpoint ▾")
            await screen.press("slash", *"Llama")
            await screen.until(lambda: "Qwen" not in screen.text)
            await screen.press("enter", "enter")
            await screen.shows("model-00001-of-00004.safetensors", "changed: mtime, size")
            await screen.press("j", "enter")
            await screen.shows("/models/Llama-8B/model-00001-of-00004.safetensors", "6,195,490,324 bytes")
            await screen.press("escape", "y")
            await screen.until(lambda: screen.app.clipboard == f"{1:064x}")

    run(check())


def test_hostile_names_stay_text() -> None:
    async def check() -> None:
        base = streams.cache_report()
        files = [
            msgspec.structs.replace(base.files[0], path=f"/m/{escape('[b]' + name)}/{escape(name)}") for name in HOSTILE
        ]
        folders = [
            msgspec.structs.replace(base.folders[0], path=file.path.rpartition("/")[0], files=1) for file in files
        ]
        report = msgspec.structs.replace(base, files=tuple(files), folders=tuple(folders))
        async with driven([*streams.verified(), *told(report)], size=(140, 40)) as screen:
            await screen.press("4")
            await screen.shows("/m/[b]model[/red]x.safetensors", "a\\x1b[31mred", "\\u202e", "模型")
            await screen.press("enter", "j", "enter")
            await screen.shows("model[/red]x.safetensors", "standing")

    run(check())


def test_what_went_wrong_is_said_and_the_view_stands() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.press("4")
            screen.source.feed(CachePart(edition=1, error="/cache[/red]: EIO: broken"))
            await screen.shows("could not be looked at: /cache[/red]: EIO: broken", "33 of 33")

    run(check())


def test_from_outside_a_session_there_is_no_cache_to_look_at() -> None:
    async def check() -> None:
        async with driven([streams.hello(Mode.ATTACH), *streams.session(decided=False)[1:]]) as screen:
            await screen.press("4")
            await screen.shows("each host of the session has a cache of its own")
            assert asked(screen) == 0

    run(check())


def test_ten_thousand_records_are_ordered_once_and_drawn_by_what_is_seen() -> None:
    async def check() -> None:
        report = streams.cache_report(more=10_000)
        async with driven([*streams.verified(), *told(report)]) as screen:
            await screen.press("4")
            await screen.shows("10,024 records", "Qwen")
            view = screen.app.query_one(CacheView)
            known = view._facts.known
            await screen.press("G", "up", "g", "j")
            assert view._facts.known is known
            assert len(view.table._drawn) < 100

    run(check())


def test_a_record_of_another_answer_never_stands_in_the_new_one() -> None:
    first, second = told(streams.cache_report(more=2000), 1), told(streams.cache_report(), 2)
    assert len(first) > len(second)
    state = streams.known([streams.hello(), *first[:-1]])
    assert state.cached is None
    state = streams.known([streams.hello(), *first, *second, *first])
    assert state.cached == streams.cache_report()


def test_small_screens_keep_the_checkpoint_and_what_it_is_worth() -> None:
    async def check(size: tuple[int, int]) -> None:
        async with driven([*streams.verified(), *told()], size=size, ascii_only=True) as screen:
            await screen.press("4")
            await screen.shows("33 of 33", "Qwen", "all gone", "q quit")
            await screen.press("G")
            await screen.shows("..00013.. " if size[0] < 100 else "model-00013")
            assert screen.text.isascii()

    run(check((40, 12)))
    run(check((80, 24)))


def test_keys_of_one_text_are_not_one_row() -> None:
    assert len({rows.Folder("a"), rows.Kept("a")}) == 2
    assert isinstance(streams.cache_report().files[0], CachedFile)
    assert isinstance(streams.cache_report().folders[0], CachedFolder)
