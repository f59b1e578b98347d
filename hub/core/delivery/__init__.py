"""What the answer of a callback changes in storage."""
