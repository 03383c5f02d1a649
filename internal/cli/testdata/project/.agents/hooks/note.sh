# Notes which event it was told of, and for which tool.
sed -n 's/.*"hook_event_name":"\([A-Za-z]*\)".*"tool_name":"\([a-z_]*\)".*/\1 \2/p; t
s/.*"hook_event_name":"\([A-Za-z]*\)".*/\1/p' >>hooks.log
