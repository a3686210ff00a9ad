package demo

import (
	"fmt"
	"io"
	"strings"
)

// teller prints the story and keeps count of its checks.
type teller struct {
	out   io.Writer
	color bool

	chapters, checks, failed int
}

const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (t *teller) paint(style, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// print writes lines. A story that nobody can read any more is no failure of Services.
func (t *teller) print(lines ...string) {
	for _, l := range lines {
		_, _ = fmt.Fprintln(t.out, strings.TrimRight(l, " "))
	}
}

// chapter begins a chapter.
func (t *teller) chapter(title string) {
	t.chapters++
	t.print("", t.paint(bold, fmt.Sprintf("%d. %s", t.chapters, title)), "")
}

// say prints a paragraph as it is written.
func (t *teller) say(format string, args ...any) {
	for l := range strings.Lines(fmt.Sprintf(format, args...)) {
		t.print("   " + strings.TrimRight(l, "\n"))
	}
}

// quote prints what a program or the kernel said.
func (t *teller) quote(text string) {
	for l := range strings.Lines(text) {
		t.print("     " + t.paint(faint, strings.TrimRight(l, "\n")))
	}
}

// command prints a command that the reader could type.
func (t *teller) command(text string) {
	t.print("     " + t.paint(cyan, "$ "+text))
}

// check says something that must be true, and counts it if it is not.
func (t *teller) check(ok bool, format string, args ...any) {
	t.checks++
	mark := t.paint(green, "ok  ")
	if !ok {
		t.failed++
		mark = t.paint(red, "FAIL")
	}
	t.print("   " + mark + " " + fmt.Sprintf(format, args...))
}

// bar draws n of total.
func (t *teller) bar(label string, n, total int) {
	const width = 30
	filled := 0
	if total > 0 {
		filled = (n*width + total/2) / total
	}
	t.print(fmt.Sprintf("     %-24s %s %d", label, t.paint(green, strings.Repeat("█", filled))+strings.Repeat("·", width-filled), n))
}
