"""The live stream's wire format: JSON messages, websocket frames, server-sent
events.
"""
