"""Fine-tuning on four CPU ranks, with a proof before each step that all ranks hold the same bits.

    python examples/sft.py                        # four ranks on this machine; all goes well
    python examples/sft.py --fault bit-flip       # one rank drifts: refused, named, and a report left behind
    torchrun --nproc-per-node 4 examples/sft.py   # the same under a launcher

A small causal language model on made-up prompts and answers. The loss counts answers only, and is divided by the
answer tokens of all ranks and micro-batches together, so that gradients only have to be summed. No DDP, no download.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from ckpt_tui.replicas import (
    Kind,
    Named,
    RanksDiffer,
    assert_rank_equal,
    broadcast_trainable_parameters,
    synchronize_gradients,
)

RANKS, STEPS, MICRO_BATCHES = 4, 3, 2
VOCABULARY, WIDTH, LENGTH, SAMPLES = 64, 32, 24, 4
#: Where a fault strikes.
FAULTY_RANK, FAULTY_STEP = 2, 1
FAULTS = ("none", "skipped-gradient", "buffer", "bit-flip", "seed")


class Job(NamedTuple):
    """What every rank knows: its control group, the fault to play, and where the report goes."""

    group: dist.ProcessGroup
    fault: str
    report: Path

    @property
    def rank(self) -> int:
        return dist.get_rank(self.group)

    def strikes(self, fault: str, step: int) -> bool:
        """Whether this rank goes wrong here."""
        return (fault, step, self.rank) == (self.fault, FAULTY_STEP, FAULTY_RANK)


class Model(nn.Module):
    """One causal block with an adapter per kind of data, and a buffer that counts the tokens trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        # Each rank has data for one of the first two; nobody has any for the third.
        self.adapters = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("seen", torch.zeros(VOCABULARY, dtype=torch.int64))

    def forward(self, tokens: torch.Tensor, adapter: int) -> torch.Tensor:
        hidden = self.embedding(tokens)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        hidden = hidden + self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)[0]
        return self.head(self.norm(hidden + functional.gelu(self.adapters[adapter](hidden))))


class Batch(NamedTuple):
    """Token ids of samples × length, and which of them are answers."""

    tokens: torch.Tensor
    answers: torch.Tensor


def micro_batches(rank: int, step: int) -> Iterator[Batch]:
    """This rank's made-up data: prompts of random lengths that count up by one, and answers that go on counting."""
    random = torch.Generator().manual_seed(1000 * step + rank)
    for _ in range(MICRO_BATCHES):
        tokens = (torch.randint(VOCABULARY, (SAMPLES, 1), generator=random) + torch.arange(LENGTH)) % VOCABULARY
        prompt = torch.randint(4, LENGTH - 4, (SAMPLES, 1), generator=random)
        yield Batch(tokens, torch.arange(LENGTH) >= prompt)


def train(job: Job) -> None:
    """Fine-tune for a few steps; RanksDiffer on every rank as soon as they no longer hold the same."""
    torch.manual_seed(job.rank if job.fault == "seed" and job.rank == FAULTY_RANK else 17)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if job.fault != "seed":  # there somebody trusted that equal seeds make equal replicas
        broadcast_trainable_parameters(model.named_parameters(), control_group=job.group)
    prove(job, model, "start", 0)

    for step in range(STEPS):
        loss = accumulate(job, model, step)
        synchronize_gradients(model.named_parameters(), control_group=job.group)
        if job.strikes("skipped-gradient", step):
            model.head.weight.grad = None  # as a guard against overflow does, on the one rank that it finds some
        prove(job, model, "gradients", step)

        optimizer.step()
        optimizer.zero_grad()
        count_tokens(job, model, step)
        if job.strikes("bit-flip", step):
            model.norm.weight.data.view(torch.int32)[5] ^= 1 << 3  # a bit too small to see in any loss
        prove(job, model, "after the step", step)
        if job.rank == 0:
            print(f"step {step}: loss {loss:.4f}, all ranks hold the same")


def accumulate(job: Job, model: Model, step: int) -> float:
    """Gradients of all micro-batches, normalised by the answer tokens of all ranks; the loss of all."""
    batches = list(micro_batches(job.rank, step))
    count = torch.tensor(sum(int(batch.answers[:, 1:].sum()) for batch in batches))
    dist.all_reduce(count, group=job.group)
    total = torch.zeros(())
    for batch in batches:
        logits = model(batch.tokens[:, :-1], adapter=job.rank % 2)
        each = functional.cross_entropy(logits.transpose(1, 2), batch.tokens[:, 1:], reduction="none")
        loss = (each * batch.answers[:, 1:]).sum() / count
        loss.backward()
        total += loss.detach()
    dist.all_reduce(total, group=job.group)
    return float(total)


def count_tokens(job: Job, model: Model, step: int) -> None:
    """Add what all ranks were trained on to the buffer of each."""
    seen = sum(torch.bincount(batch.tokens.flatten(), minlength=VOCABULARY) for batch in micro_batches(job.rank, step))
    own = seen.clone()
    dist.all_reduce(seen, group=job.group)
    model.seen += own if job.strikes("buffer", step) else seen


def prove(job: Job, model: Model, phase: str, step: int) -> None:
    """Go on only where all ranks hold the same parameters, buffers and gradients; None is a gradient of its own."""
    held = [Named(name, parameter, Kind.PARAMETERS) for name, parameter in model.named_parameters()]
    held += [Named(name, buffer, Kind.BUFFERS) for name, buffer in model.named_buffers()]
    held += [Named(name, parameter.grad, Kind.GRADIENTS) for name, parameter in model.named_parameters()]
    assert_rank_equal(held, group=job.group, phase=phase, step=step, report=job.report)


def run(group: dist.ProcessGroup, fault: str, report: Path) -> int:
    """Be one rank; its exit code."""
    job = Job(group, fault, report)
    try:
        train(job)
    except RanksDiffer as refused:
        if job.rank == 0:
            print(refused, *refused.__notes__, sep="\n", file=sys.stderr)
        dist.barrier(group)  # a launcher ends the others as soon as one leaves
        return int(refused.code)
    return 0


def alone(rank: int, store: str, fault: str, report: Path) -> None:
    """One of the ranks that this program starts itself."""
    begin(rank=rank, world_size=RANKS, store=dist.FileStore(store, RANKS))
    sys.exit(run(dist.new_group(backend="gloo"), fault, report))


def begin(**place: object) -> None:
    """Join the others. A rank that does not come for a minute is given up."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60), **place)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fault", choices=FAULTS, default="none", help="how one rank goes wrong (default: none does)")
    parser.add_argument("--report", type=Path, default=Path("sft-report.json"), help="where a report is left")
    options = parser.parse_args()
    if "RANK" in os.environ:  # a launcher has started us
        begin()
        return run(dist.new_group(backend="gloo"), options.fault, options.report)
    context = multiprocessing.get_context("fork")  # with CUDA: spawn
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "store"))
        ranks = [
            context.Process(target=alone, args=(rank, place, options.fault, options.report)) for rank in range(RANKS)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    return max(abs(process.exitcode or 0) for process in ranks)


if __name__ == "__main__":
    sys.exit(main())
