"""The version of this reader."""

READER = 1  # counts up when an export made of the same files would come out different
