"""Treadle against its peers on one machine, in one process, interleaved. Started by bench/run; docs/performance.md explains it."""
