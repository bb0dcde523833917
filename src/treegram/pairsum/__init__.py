"""The engine: Phi and a node kernel → sums over pairs of nodes, one per pair of graphs."""
