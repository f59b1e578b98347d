"""What one answer of a callback changes."""
