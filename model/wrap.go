package model

// Middleware wraps a model. What must see or hold back a model's words before the user does is a Middleware, not a hook. A wrapper
// implements [Wrapper].
type Middleware func(Model) Model

// Wrap applies middleware; the first is the outermost.
func Wrap(m Model, ws ...Middleware) Model {
	for i := len(ws) - 1; i >= 0; i-- {
		m = ws[i](m)
	}
	return m
}

// Wrapper is implemented by models that stand around one other, so that what that one can do besides, such as [Describer], is found: see [As].
type Wrapper interface{ Unwrap() Model }

// As finds what a model can do besides answering, such as [Uploader]: the outermost of m and the models that it wraps that is a T.
func As[T any](m Model) (T, bool) {
	for {
		if t, ok := m.(T); ok {
			return t, true
		}
		w, ok := m.(Wrapper)
		if !ok {
			var none T
			return none, false
		}
		m = w.Unwrap()
	}
}
