"""What a node's surroundings look like: Graphs → Phi (nodes x features)."""
