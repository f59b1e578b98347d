"""Push by hubs of others: what feeds offer, whether it is believed, what is next."""
