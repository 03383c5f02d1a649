package journal

// Queued is how many appends wait for one that is under way.
func Queued(l *Log) int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return len(l.queue.all)
}
