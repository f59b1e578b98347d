"""OpenFeeder 1.0: the documents of a site that offers its content to programs."""
