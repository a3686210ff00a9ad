package nft

import (
	"bufio"
	"io"
	"iter"
)

// Write prints a table as nft lists it. The elements of a set are asked for while it is printed; elements may be nil. The
// differences to a listing are few: every element has a line, class ID 0:0 is not called none, and a rule tells the
// family that its addresses imply.
func (t Table) Write(w io.Writer, sets []Set, chains []Chain, elements func(set string) iter.Seq[*Element]) error {
	p := &printer{w: bufio.NewWriterSize(w, 64<<10)}
	p.line("table inet ", t.Name, " {\n")
	if t.Comment != "" {
		p.line("\tcomment ", quote(t.Comment), "\n")
	}
	for i := range sets {
		p.blankAfterFirst()
		p.set(&sets[i], elements)
	}
	for i := range chains {
		p.blankAfterFirst()
		p.chain(&chains[i])
	}
	p.line("}\n")
	return p.w.Flush()
}

// printer writes text; bufio keeps the first error for Flush.
type printer struct {
	w       *bufio.Writer
	scratch []byte
	objects int
}

func (p *printer) line(parts ...string) {
	for _, s := range parts {
		_, _ = p.w.WriteString(s)
	}
}

// append writes what f appends, with a buffer that is used again.
func (p *printer) append(f func(b []byte) []byte) {
	p.scratch = f(p.scratch[:0])
	_, _ = p.w.Write(p.scratch)
}

// blankAfterFirst keeps objects apart.
func (p *printer) blankAfterFirst() {
	if p.objects++; p.objects > 1 {
		p.line("\n")
	}
}

func (p *printer) chain(c *Chain) {
	p.line("\tchain ", c.Name, " {\n")
	if c.Comment != "" {
		p.line("\t\tcomment ", quote(c.Comment), "\n")
	}
	if c.Base != nil {
		p.line("\t\t", c.Base.String(), "\n")
	}
	for i := range c.Rules {
		p.append(func(b []byte) []byte {
			b = append(b, "\t\t"...)
			return append(c.Rules[i].append(b), '\n')
		})
	}
	p.line("\t}\n")
}

func (p *printer) set(s *Set, elements func(set string) iter.Seq[*Element]) {
	p.append(s.appendHead)
	if elements != nil {
		p.elements(s, elements(s.Name))
	}
	p.line("\t}\n")
}

func (p *printer) elements(s *Set, all iter.Seq[*Element]) {
	before := "\t\telements = { "
	for e := range all {
		p.append(func(b []byte) []byte { return s.AppendElement(append(b, before...), e) })
		before = ",\n\t\t\t     "
	}
	if before[0] == ',' {
		p.line(" }\n")
	}
}
