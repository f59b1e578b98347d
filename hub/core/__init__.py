"""Pure decisions: what is new, when to poll next, when to try again."""
