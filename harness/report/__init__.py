"""Reports on saved runs: the table of an ablation in several formats, its plot, and a page to read."""
