package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// archive writes a cpio archive of the kind "newc", the one that Linux unpacks as its first file system. Several in a row
// are one to it, if each begins at a multiple of four bytes.
type archive struct {
	w     *bufio.Writer
	files uint32
}

func newArchive(w io.Writer) *archive { return &archive{w: bufio.NewWriter(w)} }

// The kinds of file that the mode's upper bits tell.
const (
	kindFolder = 0o040000
	kindFile   = 0o100000
	kindLink   = 0o120000
)

func (a *archive) folder(name string) error {
	return a.header(name, kindFolder|0o755, 0)
}

func (a *archive) link(name, to string) error {
	if err := a.header(name, kindLink|0o777, len(to)); err != nil {
		return err
	}
	return a.content([]byte(to))
}

func (a *archive) file(name string, mode fs.FileMode, content []byte) error {
	if err := a.header(name, kindFile|uint32(mode.Perm()), len(content)); err != nil {
		return err
	}
	return a.content(content)
}

// copy adds a file of this machine.
func (a *archive) copy(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return a.file(name, info.Mode(), content)
}

// close ends the archive; the writer below stays open.
func (a *archive) close() error {
	if err := a.header("TRAILER!!!", 0, 0); err != nil {
		return err
	}
	return a.w.Flush()
}

// headerSize is that of the fields before the name.
const headerSize = 110

// header writes: magic, inode, mode, owner, group, links, time, size, four device numbers, length of the name, checksum.
func (a *archive) header(name string, mode uint32, size int) error {
	a.files++
	_, err := fmt.Fprintf(a.w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.files, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	if err != nil {
		return err
	}
	return a.pad(headerSize + len(name) + 1)
}

func (a *archive) content(b []byte) error {
	if _, err := a.w.Write(b); err != nil {
		return err
	}
	return a.pad(len(b))
}

// pad fills up to a multiple of four bytes.
func (a *archive) pad(n int) error {
	_, err := a.w.Write(make([]byte, -n&3))
	return err
}
