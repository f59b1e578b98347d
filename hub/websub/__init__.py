"""The open hub: who may subscribe, whether callbacks want it, and publish pings."""
