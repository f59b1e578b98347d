"""The server's side of OpenFeeder: documents, what they leave out, parameters."""
