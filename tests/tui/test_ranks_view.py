"""The Ranks view, fed by made-up streams."""

from __future__ import annotations

import msgspec
import pytest

from ckpt_tui.facts.status import Phase
from ckpt_tui.stream.messages import Beat, Mode, RankRow, Survey, VerdictRow, Watch, Watching, Word
from tests.tui import streams
from tests.tui.screen import driven, run


def test_all_ranks_are_seen_reading_live() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=False), start_view="ranks") as screen:
            await screen.shows("READING", "on 4 ranks", "node-a", "node-d", "content", "89 %", "29 %", "3/33", "0.40")
            row = streams.status(3, bytes_done=streams.SHARDS * streams.SHARD_BYTES // 2, cells="+" * 20)
            screen.source.feed(RankRow(status=row, heard=streams.NOW))
            await screen.until(lambda: "50 %" in screen.line_with("node-d"))

    run(check())


def test_the_odd_rank_comes_first_with_shard_tensor_and_cause() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True), start_view="ranks") as screen:
            await screen.shows(
                "DIFFER",
                "rank 2 (node-c) differs in 1 of 33 shards",
                "wrong: breaks a recorded hash of the hub",
                "right: keeps 33 recorded hashes",
                "1 file differs",
                "model-00007-of-00033.safetensors",
                "model.layers.3.mlp.down_proj.weight",
                "96.0 MiB at byte 1,203,765,248",
                "1 of 412 tensors differs",
                "hf download zai-org",
            )
            rows = [line for line in screen.lines if line.startswith(("  ✗", "  ✓"))]
            assert rows[0].split()[1:3] == ["2", "node-c"]
            assert rows[1].split()[1:4] == ["0,1,3", "3", "hosts"]
            assert screen.line_with("[2]  ").count("·") == 0
            matrix = next(line for line in screen.lines if line.startswith("  [2]  "))
            assert matrix.index("B") - matrix.index("·") == 6

    run(check())


def test_space_opens_folded_ranks_and_folds_them_again() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True), start_view="ranks") as screen:
            await screen.shows("0,1,3")
            await screen.press("down", "space")
            await screen.shows("node-a", "node-b", "node-d")
            await screen.press("space")
            await screen.shows("0,1,3")

    run(check())


def test_brackets_ask_for_another_ranks_files_and_the_answer_shows_them() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=False)) as screen:
            await screen.shows("rank [0 node-a] of 4")
            await screen.press("right_square_bracket")
            await screen.press("left_square_bracket")
            await screen.until(lambda: [Watch(rank=1), Watch(rank=3)] == screen.source.commands)
            screen.source.feed(Watching(rank=3))
            await screen.shows("rank [3 node-d] of 4")

    run(check())


def test_details_of_a_rank_show_group_evidence_and_content_whole() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True), start_view="ranks") as screen:
            await screen.shows("node-c")
            await screen.press("enter")
            await screen.shows("bb22" * 16, "breaks a recorded hash of the hub", "/models/GLM-5.3-Flash-EXL3")
            await screen.press("y")
            await screen.until(lambda: screen.app.clipboard == "bb22" * 16)

    run(check())


def test_before_all_are_here_it_names_the_missing_and_their_command() -> None:
    async def check() -> None:
        join = "ckpt-tui ranks /models/x --master node-a:29500 --world-size 3 --rank"
        survey = msgspec.structs.replace(streams.survey(world_size=3), join=join)
        assert isinstance(survey, Survey)
        rows = [
            streams.hello(Mode.RANKS),
            survey,
            RankRow(status=streams.status(0, Phase.MEETING, bytes_total=0), heard=streams.NOW),
            RankRow(status=streams.status(1, Phase.MEETING, bytes_total=0), heard=streams.NOW),
            RankRow(status=streams.status(2, Phase.ABSENT, host="", doing="has not come"), heard=0.0),
        ]
        async with driven(rows, start_view="ranks") as screen:
            screen.clock.forward(12)
            screen.source.feed(Beat(at=0.0))
            await screen.shows(
                "MEETING",
                "2 of 3 ranks are here",
                "waiting for rank 2",
                "rank 2, for 12 s",
                f"{join} 2",
                "has not come",
            )

    run(check())


def test_a_lost_rank_is_named_in_the_chip_and_in_its_row() -> None:
    async def check() -> None:
        lost = streams.status(3, Phase.LOST, error="silent for 74 s, was reading model-00012")
        rows = [
            *streams.session(decided=True),
            RankRow(status=lost, heard=streams.NOW - 74),
            VerdictRow(word=Word.DIFFER, text="rank 2 differs", also="rank 3 lost", code=1),
        ]
        async with driven(rows, start_view="ranks", size=(140, 32)) as screen:
            await screen.shows("DIFFER", "✗ rank 3 lost", "silent for 74 s, was reading model-00012", "1 m")

    run(check())


def test_many_ranks_fold_by_host_while_they_work() -> None:
    async def check() -> None:
        rows = [streams.hello(Mode.RANKS), streams.survey(world_size=64)]
        rows += [RankRow(status=streams.status(rank, host=f"n{rank // 8}"), heard=streams.NOW) for rank in range(64)]
        async with driven(rows, start_view="ranks") as screen:
            await screen.shows("0-7", "56-63", "n7")

    run(check())


def test_of_equal_votes_nobody_is_accused() -> None:
    async def check() -> None:
        found = streams.agreement()
        groups = tuple(
            msgspec.structs.replace(group, ranks=ranks, standing="undecided", evidence=())
            for group, ranks in zip(found.groups, ((0, 1), (2, 3)), strict=True)
        )
        even = msgspec.structs.replace(found, groups=groups)
        rows = [row for row in streams.session(decided=True) if row.__class__.__name__ != "ResultPart"]
        async with driven([*rows, *streams.split_result(even)], start_view="ranks") as screen:
            await screen.shows("undecided")
            assert not [line for line in screen.lines if line.startswith("  ✗")]
            matrix = [
                line.split()[1] for line in screen.lines if line.startswith(("  [0,1] ", "  [2,3] ")) and "·" in line
            ]
            assert [cells.strip("·") for cells in matrix] == ["A", "B"]

    run(check())


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (140, 45)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_size_shows_verdict_and_the_odd_rank(size: tuple[int, int], ascii_only: bool) -> None:
    async def check() -> None:
        async with driven(
            streams.session(decided=True), size=size, start_view="ranks", ascii_only=ascii_only
        ) as screen:
            await screen.shows("DIFFER", "rank 2", "wrong: ", "1 file differs", "q quit")
            assert all(len(line) == size[0] for line in screen.lines)
            if ascii_only:
                assert screen.text.isascii()

    run(check())


def test_four_thousand_ranks_are_a_few_rows() -> None:
    async def check() -> None:
        rows = [streams.hello(Mode.RANKS), streams.survey(world_size=4096)]
        rows += [
            RankRow(status=streams.status(rank, Phase.DONE, host=f"n{rank // 8}"), heard=streams.NOW)
            for rank in range(4096)
        ]
        async with driven(rows, start_view="ranks") as screen:
            await screen.shows("0-4095", "512 hosts")

    run(check())


def test_thousands_of_ranks_fold_by_host_and_are_sorted_once_a_second() -> None:
    total, shards = 4096, 10_000
    cells = "=" * 6_000 + "!" + "." * (shards - 6_001)

    def rank(number: int, **more: object) -> RankRow:
        return RankRow(status=streams.status(number, host=f"node-{number // 8:04}", cells=cells, **more), heard=1.0)

    async def check() -> None:
        messages = [
            streams.hello(Mode.RANKS),
            msgspec.structs.replace(streams.survey(world_size=total), roles="w" * shards),
            *(rank(number) for number in range(total)),
        ]
        async with driven(messages, start_view="ranks", size=(140, 45)) as screen:
            await screen.shows("on 4,096 ranks", "0-7", "node-0000", "8-15", "node-0001")
            # A cell of the matrix that stands for many shards shows the worst of them.
            assert screen.line_with("[8-15]").count("✗") == 1
            screen.source.feed(rank(8, bytes_done=streams.SHARDS * streams.SHARD_BYTES, doing="nearly there"))
            await screen.until(lambda: screen.app.desk.state.ranks[8].status.bytes_done)
            await screen.until(lambda: screen.clock.forward(0.05) or "12 %" in screen.line_with("8-15"))
            screen.clock.forward(1.1)
            await screen.until(lambda: screen.app.view._bundled_at == screen.clock.monotonic())
            screen.source.feed(rank(4000, phase=Phase.FAILED, error="EIO"))
            await screen.until(lambda: screen.app.desk.state.ranks[4000].status.phase is Phase.FAILED)
            assert "EIO" not in screen.text
            screen.clock.forward(1.1)
            await screen.shows("EIO")
            first = next(line for line in screen.lines if "EIO" in line)
            assert first.split()[1:3] == ["4000", "node-0500"]
            assert screen.lines.index(first) < screen.lines.index(screen.line_with("0-7"))

    run(check())
