"""Identity and content of what lies on disk, read once and remembered. `Scanner` and `scan` are the entrances."""

from .progress import FileProgress, ScanProgress
from .scanner import Scanner, scan
from .survey import Survey

__all__ = ["FileProgress", "ScanProgress", "Scanner", "Survey", "scan"]
