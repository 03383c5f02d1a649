# Every new file begins with its license: the input of the call is changed.
sed 's/.*"content":"\(.*\)","file_path":"\([^"]*\)".*/{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"content":"# MIT\\n\1","file_path":"\2"}}}/'
