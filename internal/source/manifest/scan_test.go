package manifest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sluice/internal/model"
)

func testWatcher(tb testing.TB, path string) *watcher {
	tb.Helper()
	w, err := newWatcher([]string{path})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.bell.close)
	return w
}

func put(tb testing.TB, path string, text []byte) {
	tb.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// cluster is n Services. Each has an EndpointSlice with ten endpoints, or where pods is set, every second one a Pod.
func cluster(n int, pods bool) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: s%d\n  namespace: shop\nspec:\n  clusterIP: 10.96.%d.%d\n"+
			"  selector:\n    app: s%d\n  ports:\n  - name: http\n    port: 80\n    protocol: TCP\n    targetPort: 8080\n", i, i/250, i%250, i)
		if pods && i%2 == 1 {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: s%d\n  namespace: shop\n  labels: {app: s%d}\nstatus:\n  podIP: 10.0.0.1\n", i, i)
			continue
		}
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: s%d-x\n  namespace: shop\n"+
			"  labels:\n    kubernetes.io/service-name: s%d\naddressType: IPv4\nports:\n- name: http\n  port: 8080\n  protocol: TCP\nendpoints:\n", i, i)
		for e := range 10 {
			fmt.Fprintf(&b, "- addresses:\n  - 10.244.%d.%d\n  conditions:\n    ready: true\n  nodeName: node-%d\n", i%250, e+1, e%3)
		}
	}
	return b.Bytes()
}

// TestScanKeepsPointers is that a change to one document leaves every other object the very same.
func TestScanKeepsPointers(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to string
		changed  int
	}{
		{"value", "10.96.0.3\n", "10.96.9.9\n", 1},
		{"comment", "10.96.0.3\n", "10.96.0.3 # the fourth\n", 0},
		{"lines above", "---\n", "# a line more\n---\n", 0},
		{"endpoint", "10.244.4.1\n", "10.244.4.99\n", 1},
		{"pod", "{app: s5}\nstatus:\n  podIP: 10.0.0.1", "{app: s5}\nstatus:\n  podIP: 10.0.0.2", 1},
		{"pod goes elsewhere", "{app: s5}", "{app: s7}", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			text := cluster(10, true)
			put(t, path, text)
			w := testWatcher(t, path)
			w.scan(rings{all: true})
			before, _ := w.snapshot()
			put(t, path, bytes.Replace(text, []byte(test.from), []byte(test.to), 1))
			if !w.scan(rings{}) {
				t.Fatal("the change was not seen")
			}
			after, problems := w.snapshot()
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if n := replaced(before.Services, after.Services) + replaced(before.Slices, after.Slices); n != test.changed {
				t.Errorf("%d objects are other ones, want %d", n, test.changed)
			}
			if w.scan(rings{all: true}) {
				t.Error("reading the same again made a difference")
			}
		})
	}
}

// replaced counts the objects that are gone or another one.
func replaced[K comparable, V any](before, after map[K]*V) (n int) {
	for k, v := range before {
		if after[k] != v {
			n++
		}
	}
	return n
}

// TestPollAlone is a kernel that has no notifier left to give.
func TestPollAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	put(t, path, cluster(1, false))
	w := testWatcher(t, path)
	w.bell.close()
	w.bell.notifier = nil
	w.bell.trouble[path] = os.ErrPermission
	w.poll = time.Millisecond

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(time.Minute, cancel)
	var last *model.Snapshot
	err := w.run(ctx, func(s *model.Snapshot, problems []Problem) {
		if len(problems) != 1 {
			t.Errorf("problems %v, want one about polling", problems)
		}
		if last = s; len(s.Services) == 2 {
			cancel()
			return
		}
		put(t, path, cluster(2, false))
	})
	if err != nil || last == nil || len(last.Services) != 2 {
		t.Errorf("error %v, last snapshot %v", err, last)
	}
}

// TestFolderComesBack is that the bell hangs on a folder that returns: no poll helps.
func TestFolderComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a.yaml"), cluster(1, false))
	w := testWatcher(t, dir)
	w.poll = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	steps := []func(){
		func() { _ = os.Rename(dir, dir+".old") },
		func() { _ = os.Mkdir(dir, 0o755) },
		func() { put(t, filepath.Join(dir, "a.yaml"), cluster(2, false)) },
		func() { put(t, filepath.Join(dir, "b.yaml"), cluster(3, false)) },
		cancel,
	}
	services := map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 3} // by step
	step := 0
	err := w.run(ctx, func(s *model.Snapshot, problems []Problem) {
		if step < len(steps) && len(s.Services) == services[step] && (len(problems) > 0) == (step == 1 || step == 2) {
			step++
			steps[step-1]()
		}
	})
	if err != nil || step != len(steps) {
		t.Errorf("error %v, got to step %d of %d", err, step, len(steps))
	}
}

// TestFolderTurnsWhileListed is that a folder which goes before its files were looked at is not one without files.
func TestFolderTurnsWhileListed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	for _, turn := range []func(){func() {}, func() { _ = os.Mkdir(dir, 0o755) }} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		folder := find(dir)
		if err := os.Rename(dir, filepath.Join(t.TempDir(), "old")); err != nil {
			t.Fatal(err)
		}
		turn()
		if l := listFolder(folder); l.err == nil || l.none {
			t.Errorf("error %v, no manifests %v", l.err, l.none)
		}
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "a.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, file, nil)
	for path, want := range map[string]bool{dir: true, file: true, pipe: false, filepath.Join(dir, "missing"): false} {
		if err := Check(path); (err == nil) != want {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestBellConcerns(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "dir", "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"plain.yaml", "target.yaml"} {
		put(t, filepath.Join(root, path), nil)
	}
	if err := os.Symlink(filepath.Join(root, "target.yaml"), filepath.Join(root, "dir", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	b, err := newBell([]string{filepath.Join(root, "dir"), filepath.Join(root, "x", "y", "z.yaml"), filepath.Join(root, "plain.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.hang()
	for name, want := range map[string]bool{
		"dir": true, "dir/a.yaml": true, "dir/below": true, "x": true, "x/y/z.yaml": true,
		"plain.yaml": true, "target.yaml": true,
		"other": false, "dir2": false, "xx": false, "z.yaml": false, "dir/below/a.yaml": false,
	} {
		if got := b.concerns(filepath.Join(root, name)); got != want {
			t.Errorf("%s: concerns %v, want %v", name, got, want)
		}
	}
}

// The benchmarks read 5,000 Services with ten endpoints each.

func BenchmarkRead(b *testing.B) {
	text := cluster(5000, false)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s, problems, err := Read([]string{Stdin}, bytes.NewReader(text))
		if err != nil || len(problems) > 0 || len(s.Slices) != 5000 {
			b.Fatal(len(s.Slices), problems, err)
		}
	}
}

func BenchmarkReadOneFileChanged(b *testing.B) {
	path := filepath.Join(b.TempDir(), "all.yaml")
	text := cluster(5000, false)
	put(b, path, text)
	benchChange(b, path, path, text)
}

func BenchmarkReadOneFileOfManyChanged(b *testing.B) {
	dir := b.TempDir()
	var last string
	var lastText []byte
	for i, c := range split(cluster(5000, false)) {
		last, lastText = filepath.Join(dir, fmt.Sprintf("%05d.yaml", i)), c.text
		put(b, last, c.text)
	}
	benchChange(b, dir, last, lastText)
}

// benchChange changes the first port in a file, time and again, and waits for a Snapshot of all paths.
func benchChange(b *testing.B, paths, file string, text []byte) {
	b.Helper()
	w := testWatcher(b, paths)
	w.scan(rings{all: true})
	for _, f := range w.files { // as if they were written long ago
		f.info = mustStat(b, f.path)
	}
	w.snapshot()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		put(b, file, bytes.Replace(text, []byte("name: http\n"), fmt.Appendf(nil, "name: http%d\n", i), 1))
		b.StartTimer()
		if !w.scan(rings{paths: map[string]bool{file: true}}) {
			b.Fatal("the change was not seen")
		}
		w.snapshot()
	}
}

func mustStat(b *testing.B, path string) os.FileInfo {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info
}
