"""Push by other people's hubs: what feeds offer, whether it is trusted, what is next."""
