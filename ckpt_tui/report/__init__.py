"""A scan or an agreement as JSON, Markdown, HTML or text for people. Pure, but for `write`, the one module that writes
files: `report.saving.save(result, path)` is the entrance for a report that was asked for.
"""
