"""What speaks: HTTP/1.1 without sockets in the rules, protocols at the edge."""
