"""The doors to every other host: `/to/...`, forward proxy, CONNECT; one way in, and the core's rules behind it."""
