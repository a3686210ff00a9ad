package main

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
)

// entry is a file of an archive, read as the kernel's init/initramfs.c does.
type entry struct {
	name string
	mode uint32
	data string
}

func readArchive(t *testing.T, b []byte) (all []entry) {
	t.Helper()
	at := 0
	take := func(n int) string {
		if at+n > len(b) {
			t.Fatalf("the archive ends within a file, at %d", at)
		}
		at += n
		return string(b[at-n : at])
	}
	align := func() { at = (at + 3) &^ 3 }
	for at < len(b) {
		header := take(headerSize)
		field := func(i int) int {
			n, err := strconv.ParseUint(header[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if header[:6] != "070701" {
			t.Fatalf("a header begins with %q", header[:6])
		}
		name := take(field(11))
		align()
		data := take(field(6))
		align()
		all = append(all, entry{name[:len(name)-1], uint32(field(1)), data})
	}
	return all
}

// A folder comes before what is in it, once; a second archive may follow the first.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	tr := tree{
		"usr/bin/tool": {mode: 0o755, content: []byte("12345")},
		"usr/bin/name": {link: "tool"},
		"init":         {mode: 0o700, content: []byte("1")},
	}
	for range 2 {
		if err := tr.write(&b); err != nil {
			t.Fatal(err)
		}
	}
	one := []entry{
		{"init", 0o100700, "1"},
		{"usr", 0o040755, ""},
		{"usr/bin", 0o040755, ""},
		{"usr/bin/name", 0o120777, "tool"},
		{"usr/bin/tool", 0o100755, "12345"},
		{"TRAILER!!!", 0, ""},
	}
	if got, want := fmt.Sprint(readArchive(t, b.Bytes())), fmt.Sprint(append(one, one...)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
