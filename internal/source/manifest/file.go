package manifest

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"reflect"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// file is one file and what it says.
type file struct {
	path string
	// sum is that of its text, which is not kept: manifests are many times as large as what they mean. It is zero until
	// the file was read.
	sum  digest
	docs []placed
	// blank is set if the file says nothing at all, as it does from when a shell has opened it (> web.yaml) until the
	// program whose output it takes has something to say, which can be seconds.
	blank bool
	// good are the objects that are right (never nil once settled), and kept those of an earlier text whose place is taken by something wrong.
	good, kept map[id]*object
	// unreadable is why the file could not be read; what it said before stays in force.
	unreadable error
}

// digest tells one text from another.
type digest [sha256.Size]byte

func sumOf(text []byte) digest { return sha256.Sum256(text) }

// placed is a document at its place in the file.
type placed struct {
	*document
	number int // counted from 1
	line   int // of the file, that the document begins on
}

// lineOf turns a line of the document into one of the file. YAML knows more ends of lines than editors count, and can
// miss something behind the last one.
func (p placed) lineOf(line int) int { return p.line - 1 + min(max(line, 1), p.height) }

// setText gives the file a new text. It returns the documents that are new and have to be decoded before settle.
func (f *file) setText(text []byte) (undecoded []*document) {
	known := make(map[digest]*document, len(f.docs))
	for _, d := range f.docs {
		known[d.sum] = d.document
	}
	f.sum, f.blank, f.docs = sumOf(text), len(bytes.TrimSpace(text)) == 0, nil
	for i, c := range split(text) {
		sum := sumOf(c.text)
		d := known[sum]
		if d == nil {
			d = &document{sum: sum, text: string(c.text)}
			known[sum] = d
			undecoded = append(undecoded, d)
		}
		f.docs = append(f.docs, placed{document: d, number: i + 1, line: c.line})
	}
	return undecoded
}

// decodeAll decodes documents, several at a time.
func decodeAll(docs []*document) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, d := range docs {
		group.Go(func() error {
			decoded := decode(d.text)
			decoded.sum = d.sum
			decoded.forget()
			*d = *decoded
			return nil
		})
	}
	_ = group.Wait() // decoding always succeeds: what is wrong is in the document
}

// settle decides which objects of the file are in force, once its documents are decoded: those that are right, and of
// those that were right before, the ones that something wrong now stands for.
func (f *file) settle() {
	before := f.inForce()
	f.good, f.kept = make(map[id]*object, len(f.docs)), map[id]*object{}
	wrong, unknown := map[id]bool{}, f.blank
	for _, d := range f.docs {
		unknown = unknown || d.hidesObjects()
		for _, o := range d.objects {
			if o.value == nil {
				wrong[o.id] = true
				continue
			}
			// An object that means the same keeps its pointers, whatever else changed in its text.
			if was := before[o.id]; was != nil && was != o && reflect.DeepEqual(was.value, o.value) {
				o.value = was.value
			}
			f.good[o.id] = o
		}
	}
	for id, o := range before {
		if f.good[id] == nil && (unknown || wrong[id]) {
			f.kept[id] = o
		}
	}
}

// says reports whether any objects of the file are in force.
func (f *file) says() bool { return len(f.good)+len(f.kept) > 0 }

// inForce are the objects that count, by name.
func (f *file) inForce() map[id]*object {
	if len(f.kept) == 0 {
		return f.good
	}
	all := maps.Clone(f.good)
	maps.Copy(all, f.kept)
	return all
}

// hidesObjects reports whether the document is wrong in a way that leaves open which objects it is about. An object
// without a name hides none: it stands for itself alone.
func (d *document) hidesObjects() bool {
	return slices.ContainsFunc(d.problems, func(p problem) bool { return p.Skipped })
}
