"""The client's side of OpenFeeder: what sites answer, and what they are asked."""
