package app

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/internal/status"
)

// statusView is a daemon's report to print. Its JSON is that of the report.
type statusView struct {
	status.Report
	now       time.Time
	wide      bool
	namespace string // the only one that is shown; empty: all are
}

func (v statusView) text(out io.Writer) error {
	var b strings.Builder
	v.head(&b)
	switch {
	case len(v.Ports) > 0:
		b.WriteString("\n")
		v.table(&b)
	case v.namespace != "":
		fmt.Fprintf(&b, "no Service is served in namespace %s\n", v.namespace)
	}
	v.wrong(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (v statusView) head(b *strings.Builder) {
	health := "healthy"
	switch {
	case !v.Healthy:
		health = "NOT healthy: changes do not reach the kernel"
	case v.Unread():
		health = "NOT ready: it waits for the API server"
	}
	fmt.Fprintf(b, "mode %s on node %s, running for %s, %s\n", cmp.Or(v.Mode, "(not chosen yet)"), cmp.Or(v.Node, "(no name)"), age(v.now.Sub(v.Since)), health)
	v.api(b)
	a := v.Applied
	if a == nil {
		b.WriteString("the kernel has not been written yet\n")
		return
	}
	took := time.Duration(a.LastSeconds * float64(time.Second)).Round(10 * time.Microsecond)
	fmt.Fprintf(b, "updates of the kernel: %d, the last %s ago in %s; %d objects written", a.Times, age(v.now.Sub(a.Last)), took, a.Written)
	if a.Restored > 0 {
		fmt.Fprintf(b, ", %d of them since others had changed them", a.Restored)
	}
	if a.Failures > 0 {
		fmt.Fprintf(b, "; the last %d failed", a.Failures)
	}
	b.WriteString("\n")
}

// api tells of the API server, and in the wide form of each kind of objects.
func (v statusView) api(b *strings.Builder) {
	a := v.API
	if a == nil {
		return
	}
	since := age(v.now.Sub(a.Since))
	switch {
	case a.Connected:
		fmt.Fprintf(b, "API server %s: connected for %s\n", a.Server, since)
	case a.Synced:
		fmt.Fprintf(b, "API server %s: NOT connected for %s, everything goes on as it was: %s\n", a.Server, since, a.Error)
	default:
		fmt.Fprintf(b, "API server %s: not all objects are known yet: %s\n", a.Server, cmp.Or(a.Error, "they are being read"))
	}
	for _, k := range a.Kinds {
		if v.wide || !k.Connected {
			fmt.Fprintf(b, "  %s: %s\n", k.Kind, kindText(k))
		}
	}
}

func kindText(k status.Kind) string {
	text := fmt.Sprintf("%d known", k.Objects)
	if !k.Synced {
		text = "not read yet"
	}
	if !k.Connected && k.Error != "" {
		text += ", " + k.Error
	}
	return text
}

func (v statusView) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	row := func(open, frontends string, cells ...string) {
		if v.wide {
			cells = append(cells, frontends, open)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // it is written to memory
	}
	row("OPEN", "FRONTENDS", "NAMESPACE", "NAME", "PORT", "FAMILY", "STATE", "ENDPOINTS", "CONNECTIONS", "AGE")
	for _, p := range v.Ports {
		row(number(p.Open), strconv.Itoa(p.Frontends), p.Namespace, p.Name, portCell(p), p.Family, p.State,
			strconv.Itoa(p.Endpoints), number(p.Connections), age(v.now.Sub(p.Since)))
	}
	_ = w.Flush()
}

// wrong lists what is wrong with Service ports and with the objects.
func (v statusView) wrong(b *strings.Builder) {
	var lines []string
	for _, p := range v.Ports {
		if failed(p) {
			lines = append(lines, fmt.Sprintf("Service %s/%s %s %s: %s", p.Namespace, p.Name, portCell(p), p.Family, p.Error))
		}
	}
	lines = append(lines, v.Problems...)
	if len(lines) > 0 {
		b.WriteString("\nProblems\n")
	}
	for _, l := range lines {
		b.WriteString("  " + strings.ReplaceAll(l, "\n", "\n    ") + "\n")
	}
}

// portCell is like "http:80/TCP", or "80/TCP" for a port without a name.
func portCell(p status.Port) string {
	cell := "-"
	if p.Number != 0 {
		cell = strconv.Itoa(int(p.Number))
	}
	if p.Port != "" {
		cell = p.Port + ":" + cell
	}
	return cell + "/" + p.Protocol
}

// number is one that may not be known.
func number[N int64 | uint64](n *N) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// age is a duration in one unit, of which there are at least two.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}
