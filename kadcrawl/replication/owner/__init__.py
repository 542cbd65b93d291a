"""The owner's side of a cell: how it catches up with former holders before it crawls."""
