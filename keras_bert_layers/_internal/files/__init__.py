"""Writing files atomically, and the wire format of protocol buffers."""
