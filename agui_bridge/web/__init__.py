"""The HTTP side: routes, guards and the one streaming response. It waits for sockets and for the runtime below."""
