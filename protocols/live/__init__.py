"""The live stream's wire: JSON messages, websocket frames, server-sent events."""
