package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sluice/internal/source/convert"
)

// origin is an object and the place that it comes from.
type origin struct {
	*object
	file *file
	doc  placed
	kept bool // comes from an earlier text of the file
}

// assembly puts the objects of all files together.
type assembly struct {
	objects  map[id]origin
	wrong    map[id]bool // skipped, if perhaps there is another one
	hidden   bool        // there may be objects that cannot be read
	problems []Problem
}

// assemble takes the files in order. Where two objects have one name the later is in force, as it would be if they
// were applied to a cluster one after the other; but one that is kept from an earlier text yields to any other.
func assemble(files []*file) *assembly {
	count := 0
	for _, f := range files {
		count += len(f.good) + len(f.kept)
	}
	a := &assembly{objects: make(map[id]origin, count), wrong: map[id]bool{}}
	for _, f := range files {
		for id, o := range f.kept {
			a.objects[id] = origin{object: o, file: f, kept: true}
		}
	}
	kinds := map[string]bool{}
	for _, f := range files {
		a.tellUnreadable(f)
		a.tellBlank(f)
		for _, d := range f.docs {
			a.tellDocument(f, d)
			a.hidden = a.hidden || d.hidesObjects()
			for _, o := range d.objects {
				a.tellObject(f, d, o)
				if _, ok := o.value.(unused); ok {
					a.tellUnused(kinds, origin{object: o, file: f, doc: d})
				} else if o.value != nil {
					a.place(origin{object: o, file: f, doc: d})
				} else {
					a.wrong[o.id] = true
				}
			}
		}
	}
	return a
}

func (a *assembly) place(o origin) {
	if was, ok := a.objects[o.id]; ok && !was.kept && !reflect.DeepEqual(was.value, o.value) {
		a.tell(o, convert.Problem{
			Message:  fmt.Sprintf("replaces the one at %s:%d", was.file.path, was.line("")),
			Severity: convert.Warning,
		})
	}
	a.objects[o.id] = o
}

// line is the line of a field of the object in its file.
func (o origin) line(field string) int {
	return o.doc.lineOf(o.doc.lineAt(join(o.path, field)))
}

// tell notes a problem of an object that shows only beside other objects.
func (a *assembly) tell(o origin, p convert.Problem) {
	out := Problem{File: o.file.path, Object: o.id.String(), Field: p.Field, Message: p.Message, Severity: p.Severity}
	if !o.kept {
		out.Document, out.Line = o.doc.number, o.line(p.Field)
	}
	a.problems = append(a.problems, out)
}

// keptText follows the problem of what cannot be read.
const keptText = " (what it said before stays in force)"

func (a *assembly) tellUnreadable(f *file) {
	if f.unreadable != nil {
		message := f.unreadable.Error()
		if f.says() {
			message += keptText
		}
		a.problems = append(a.problems, Problem{File: f.path, Message: message})
	}
}

func (a *assembly) tellBlank(f *file) {
	if f.unreadable == nil && f.blank && len(f.kept) > 0 {
		a.problems = append(a.problems, Problem{
			File: f.path, Message: "the file is empty now (what it said before stays in force until it says something else, if only in a comment)",
		})
	}
}

func (a *assembly) tellDocument(f *file, d placed) {
	for _, p := range d.problems {
		message := p.Message + " (document skipped)"
		if strings.HasPrefix(p.Field, "items[") {
			message = p.Message + " (object skipped)"
		}
		if len(f.kept) > 0 {
			message = p.Message + " (what the file said before stays in force)"
		}
		a.problems = append(a.problems, Problem{
			File: f.path, Document: d.number, Line: d.lineOf(p.line), Field: p.Field, Message: message, Severity: p.Severity,
		})
	}
}

func (a *assembly) tellObject(f *file, d placed, o *object) {
	for _, p := range o.problems {
		message := p.Message
		if p.Skipped && f.kept[o.id] != nil {
			message += " (its earlier version stays in force)"
		} else if p.Skipped {
			message += " (object skipped)"
		}
		a.problems = append(a.problems, Problem{
			File: f.path, Document: d.number, Line: d.lineOf(p.line),
			Object: o.id.String(), Field: p.Field, Message: message, Severity: p.Severity,
		})
	}
}

// tellUnused says once for each kind that it is not used.
func (a *assembly) tellUnused(told map[string]bool, o origin) {
	if !told[o.id.kind] {
		told[o.id.kind] = true
		a.tell(o, convert.Problem{Field: "kind", Message: "objects of this kind are not used", Severity: convert.Notice})
	}
}

// sorted is the problems in the order of the files and lines.
func (a *assembly) sorted(files []*file) []Problem {
	rank := make(map[string]int, len(files))
	for i, f := range files {
		rank[f.path] = i
	}
	slices.SortStableFunc(a.problems, func(p, q Problem) int {
		return cmp.Or(rank[p.File]-rank[q.File], p.Line-q.Line, cmp.Compare(p.Object, q.Object), cmp.Compare(p.Message, q.Message))
	})
	return a.problems
}

// templates are the Pod templates in force, sorted by kind and name.
func (a *assembly) templates() []convert.PodTemplate {
	var out []convert.PodTemplate
	for _, o := range a.objects {
		if t, ok := o.value.(convert.PodTemplate); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(p, q convert.PodTemplate) int {
		return cmp.Or(cmp.Compare(p.Kind, q.Kind), p.Name.Compare(q.Name))
	})
	return out
}
