"""WebSub: signatures and the requests that carry notifications."""
