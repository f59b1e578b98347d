"""What a fetch says of its feed's entries, from the document to the commit."""
