package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteText writes the result for people: the verdict, a table of the endpoints, what to know of them, then the steps.
func (r Result) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, r.headline())
	r.writeEndpoints(b)
	for _, a := range r.Alternatives {
		fmt.Fprintln(b, "  "+a.sentence())
	}
	for _, note := range append(r.besides(), r.Warnings...) {
		fmt.Fprintf(b, "\nnote: %s\n", note)
	}
	if len(r.Steps) > 0 {
		fmt.Fprintln(b)
	}
	for i, s := range r.Steps {
		s.write(b, i+1)
	}
	if r.Error != "" {
		fmt.Fprintf(b, "\nfault in the rules: %s\n", r.Error)
	}
	return b.Flush()
}

func (r Result) headline() string {
	line := string(r.Verdict) + ": " + map[Verdict]string{
		Forward:   "the connection goes to " + count(len(r.Endpoints), "endpoint"),
		Reject:    "the connection is refused, and the client is told so at once",
		Drop:      "the connection is dropped without a word",
		Unhandled: "no rule translates or refuses it; it goes where routing takes it",
	}[r.Verdict]
	switch {
	case len(r.NotFollowed) > 0:
		line += ", as far as rules are followed here (not certain: see the notes)"
	case r.Uncertain:
		line += " (not certain: see the steps marked with a question)"
	}
	return line
}

func (r Result) writeEndpoints(w io.Writer) {
	if len(r.Endpoints) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\n  ENDPOINT\tSHARE\tSEES")
	for _, e := range r.Endpoints {
		sees := "the client"
		if e.Masquerade {
			sees = "this node"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", e.Address, Percent(e.Probability), sees)
	}
	_ = t.Flush() // w keeps its error
}

func (a Alternative) sentence() string {
	text := "or " + string(a.Verdict)
	if a.Probability > 0 {
		text = "in " + Percent(a.Probability) + " of all cases " + string(a.Verdict)
	}
	for i, e := range a.Endpoints {
		if i == 0 {
			text += " to " + e.Address.String()
		} else {
			text += ", " + e.Address.String()
		}
	}
	return text
}

func (s Step) write(w io.Writer, number int) {
	fmt.Fprintf(w, "%3d  %s\n", number, s.At)
	fmt.Fprintf(w, "     %s\n", s.Says)
	if s.Rule != "" {
		fmt.Fprintf(w, "       %s\n", s.Rule)
	}
}

// Percent writes a share of 1 in percent, with as many digits as tell it from nothing.
func Percent(share float64) string {
	digits := 1
	if share < 0.001 {
		digits = 4
	}
	text := strconv.FormatFloat(100*share, 'f', digits, 64)
	if whole := strconv.FormatFloat(100*share, 'f', 0, 64); digits == 1 && whole+".0" == text {
		text = whole
	}
	return text + " %"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
