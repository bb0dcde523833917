"""More graphs than one machine's memory or processors are made for."""

from treegram.scale.gram_store import gram_to_zarr
from treegram.scale.shards import Shards, features_to_shards

__all__ = ["Shards", "features_to_shards", "gram_to_zarr"]
