"""The administration API: a module for each noun, declared by its handlers."""
