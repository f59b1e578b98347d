"""The client's side of OpenFeeder: requests to sites, and their answers."""
