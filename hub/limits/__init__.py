"""Everything that paces or bounds: hosts, requests, memory, turns. Nothing above asks for more."""
