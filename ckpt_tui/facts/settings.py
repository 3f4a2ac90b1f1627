"""Settings, resolved once (flag before environment before default) by `cli/`, and passed down as one frozen value."""

from __future__ import annotations

from .base import Fact
from .expected import Expected


class ScanSettings(Fact, frozen=True, kw_only=True):
    """How to find and hash. Paths are real paths (never escaped text); rates are bytes a second, 0 for no limit."""

    threads: int = 0
    sha256: bool = True
    rehash: bool = False
    use_cache: bool = True
    #: None: the user's cache folder.
    cache_dir: str | None = None
    #: A folder of this host and user alone (XDG_RUNTIME_DIR), for locks; None: the temporary folder.
    runtime_dir: str | None = None
    #: What tells this host from others in the cache; None: found by `digest.host`.
    host_id: str | None = None
    identity_only: bool = False
    #: Put the segment tables into the result.
    segments: bool = False
    include: tuple[str, ...] = ()
    #: Patterns of files that are each rank's own: listed, not compared.
    rank_local: tuple[str, ...] = ()
    trust_fs: tuple[str, ...] = ()
    max_age: float | None = None
    max_rate: float = 0.0
    #: Release the pages of what was read, as reading goes on.
    drop_page_cache: bool = False
    #: The local hub cache; None: as huggingface_hub resolves it.
    hub_cache: str | None = None
    #: What the files should be by somebody's word, beside what lies with them.
    expected: tuple[Expected, ...] = ()
    #: What of that is an error: `missing`, `extra`.
    fail_on: tuple[str, ...] = ()


class RankSettings(Fact, frozen=True, kw_only=True):
    """How to meet. Timeouts in seconds."""

    scan: ScanSettings
    join_timeout: float = 300.0
    rank_timeout: float = 60.0
    keep_going: bool = False
    #: A warning turns the code 0 into 1; here, because the codes of all ranks are to be the same.
    strict: bool = False
    #: For so many seconds after the last question ranks that differ stay ready to be asked; 0: they leave at once.
    hold: float = 0.0
    #: Why this rank could not do at the end what it was started for: no session is made then, and all learn why.
    refusal: str = ""
    #: Facts beside the checkpoint that must be equal on all ranks: escaped names and values.
    given: tuple[tuple[str, str], ...] = ()
