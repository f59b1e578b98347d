"""Everything that paces or bounds: hosts, requests, memory, turns."""
