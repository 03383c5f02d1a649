echo old
