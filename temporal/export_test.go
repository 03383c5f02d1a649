package temporal

// Waiting is how many effects the worker keeps for activities that are under way.
func (w *Worker) Waiting() int {
	w.alive.mu.Lock()
	defer w.alive.mu.Unlock()
	return len(w.alive.all)
}
