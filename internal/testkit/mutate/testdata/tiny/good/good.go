// Package good has a function for each kind of mutation, and tests that notice all of them.
package good

import "errors"

// ErrEmpty says that there are no numbers.
var ErrEmpty = errors.New("good: no numbers")

// Sum adds the numbers behind the first one.
func Sum(numbers ...int) (int, error) {
	if len(numbers) == 0 {
		return 0, ErrEmpty
	}
	total := 0
	for _, n := range numbers[1:] {
		total += n
	}
	return total, nil
}

// Average returns the mean of two numbers.
func Average(a, b int) int {
	return (a + b) / 2
}

// Classify names the sign of a number.
func Classify(n int) string {
	sign := ""
	switch {
	case n < 0:
		sign = "negative"
	case n == 0:
		sign = "zero"
	default:
		sign = "positive"
	}
	return sign
}

// Name returns the word for a number.
func Name(n int) string {
	name := ""
	switch n {
	case 1:
		name = "one"
	case 2, 3:
		name = "a few"
	default:
		name = "many"
	}
	return name
}

// Kind returns the kind of a value.
func Kind(v any) string {
	switch v := v.(type) {
	case string:
		return "text " + v
	case error:
		return "error " + v.Error()
	}
	return "unknown"
}

// Within reports whether n lies between two bounds, or has no bounds.
func Within(n, low, high int) bool {
	return n >= low && n <= high || low > high
}

// Door opens for a visit.
type Door struct {
	Open   bool
	Visits int
}

// Visit calls a function while the door is open.
func (d *Door) Visit(inside func()) {
	d.Open = true
	defer d.close()
	inside()
	d.Visits++
}

// Admits reports whether a visitor may come in.
func (d *Door) Admits(key, guest bool) bool {
	if d.Open {
		return true
	}
	return key &&
		!guest
}

func (d *Door) close() { d.Open = false }
