"""What lies on disk: find the files of a checkpoint, parse their headers, read claims, audit the structure."""

from .header import parse_header
from .locate import locate
from .model import Checkpoint, CheckpointFile, Header, TensorEntry
from .opening import open_regular

__all__ = ["Checkpoint", "CheckpointFile", "Header", "TensorEntry", "locate", "open_regular", "parse_header"]
