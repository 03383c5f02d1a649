test -n "$GREETING" && echo ready
