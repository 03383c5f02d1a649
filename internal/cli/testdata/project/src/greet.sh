echo "$GREETING, $1"
