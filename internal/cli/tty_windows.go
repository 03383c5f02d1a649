package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// hungUp reports whether nobody reads from one of the files any more. There is no signal here that asks.
func hungUp(...*os.File) bool { return true }

// columns is how wide a console is, 0 when it does not say, as its input; ok is false for what is none, the null device among it.
func columns(f *os.File) (n int, ok bool) {
	console := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil {
		return 0, false
	}
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(console, &info) != nil {
		return 0, true
	}
	return int(info.Window.Right-info.Window.Left) + 1, true
}

// forget drops what was typed at a console and not read yet.
func forget(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
