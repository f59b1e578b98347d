"""``/admin``: pages for operators, made on the server; they work without scripts."""
