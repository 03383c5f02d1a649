package main

import (
	"bytes"
	"fmt"
	"html"
)

// draw draws the ratios of CPU time to the base as bars, with a mark where the target is.
func draw(lines []line) []byte {
	const (
		left, right, top, step = 200, 640, 50, 26
		one                    = 240.0 // how long a bar is that costs as much as its base
	)
	var bars []line
	for _, l := range lines {
		if l.relative && (l.name == cpuTurn.name || l.name == cpuPiece.name) {
			bars = append(bars, l)
		}
	}
	var b bytes.Buffer
	height := top + step*len(bars) + 20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", right, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", right, height)
	fmt.Fprintf(&b, `<text x="10" y="20" font-size="14">Processor time beside that of the base, which is 1 (the line); the short marks are targets</text>`+"\n")
	fmt.Fprintf(&b, `<text x="10" y="36">green: the target is met; orange: it is missed; grey: there is none</text>`+"\n")
	for i, l := range bars {
		y := top + i*step
		color := "#4a7"
		switch {
		case l.above():
			color = "#c63"
		case l.target == 0:
			color = "#999"
		}
		length := min(l.ratio.middle*one, right-left-120) // what stands behind it needs the rest
		fmt.Fprintf(&b, `<text x="10" y="%d">%s</text>`+"\n", y+13, html.EscapeString(l.workload+", "+l.row.system))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.0f" height="18" fill="%s"/>`+"\n", left, y, length, color)
		fmt.Fprintf(&b, `<text x="%.0f" y="%d">%.2f × %s</text>`+"\n", left+length+5, y+13, l.ratio.middle, html.EscapeString(l.row.base))
		if l.target > 0 {
			fmt.Fprintf(&b, `<rect x="%.0f" y="%d" width="2" height="22" fill="black"/>`+"\n", left+l.target*one, y-2)
		}
	}
	fmt.Fprintf(&b, `<rect x="%.0f" y="%d" width="1" height="%d" fill="#666"/>`+"\n", left+one, top-8, step*len(bars)+8)
	b.WriteString("</svg>\n")
	return b.Bytes()
}
