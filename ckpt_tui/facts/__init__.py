"""The shared types: frozen facts that every room may hold, and nothing that reads or prints.

Names in here (of files, tensors, hosts, paths) are *escaped text* as made by `ckpt_tui.present.safe.escape`: one line,
no control or invisible characters, reversible, and injective, so that comparing escaped names compares the bytes.
"""
