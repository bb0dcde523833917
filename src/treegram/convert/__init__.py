"""Ways in: graphs of other libraries and files, turned into Graphs."""
