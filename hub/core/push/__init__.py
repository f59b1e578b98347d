"""Push by other hubs: what feeds offer, whether it is trusted, and what is next."""
