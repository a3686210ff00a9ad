package instance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pair is two ends of one connection.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if a, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if b, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// More files than one message carries arrive in their order, and are the same ones.
func TestFiles(t *testing.T) {
	for _, count := range []int{0, 1, filesAtOnce, 2*filesAtOnce + 1} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			sent := make([]*os.File, count)
			for i := range sent {
				f, err := os.CreateTemp(t.TempDir(), "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Fprint(f, i); err != nil {
					t.Fatal(err)
				}
				sent[i] = f
			}
			from, to := pair(t)
			done := make(chan error, 1)
			go func() { done <- SendFiles(from, []byte("what they are"), sent) }()
			note, got, err := ReceiveFiles(to)
			if err != nil || string(note) != "what they are" || len(got) != count {
				t.Fatalf("note %q, %d files, error %v", note, len(got), err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for i, f := range got {
				text := make([]byte, 8)
				n, err := f.ReadAt(text, 0)
				if string(text[:n]) != fmt.Sprint(i) {
					t.Errorf("file %d has %q, error %v", i, text[:n], err)
				}
			}
			for _, f := range append(sent, got...) {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A sender that breaks off is an error, whatever it had sent.
func TestFilesBrokenOff(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "half a head": "\x00\x00", "half a note": "\x00\x00\x00\x05\x00\x00\x00\x00hal",
		"no files": "\x00\x00\x00\x00\x00\x00\x00\x01", "a byte and no files": "\x00\x00\x00\x00\x00\x00\x00\x01x",
		"a note too long": "\xff\xff\xff\xff\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			from, to := pair(t)
			if _, err := from.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := from.Close(); err != nil {
				t.Fatal(err)
			}
			_, files, err := ReceiveFiles(to)
			if err == nil || !strings.HasPrefix(err.Error(), "take files over: ") || files != nil {
				t.Errorf("error %v, files %v", err, files)
			}
		})
	}
}
