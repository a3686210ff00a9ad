package manifest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/model"
	"sluice/internal/source/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline is how long a change may take to show: far longer than it does.
const deadline = 30 * time.Second

// seen is what a Watch has told so far.
type seen struct {
	mu       sync.Mutex
	snapshot *model.Snapshot
	problems []manifest.Problem
}

func watch(t *testing.T, paths ...string) *seen {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &seen{}
	done := make(chan error)
	go func() {
		done <- manifest.Watch(ctx, paths, func(snapshot *model.Snapshot, problems []manifest.Problem) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.snapshot, s.problems = snapshot, problems
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	return s
}

// state is the Services, as "name@clusterIP", and whether there are problems.
func (s *seen) state() (services string, problems []manifest.Problem, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil {
		return "", nil, false
	}
	var names []string
	for line := range strings.SplitSeq(describe(s.snapshot), "\n") {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "Service" {
			names = append(names, strings.TrimPrefix(f[1], "default/")+"@"+strings.Trim(f[3], "[]"))
		}
	}
	return strings.Join(names, " "), s.problems, true
}

// want waits until the Services are as given, and problems have the given text (empty: there are none).
func (s *seen) want(t *testing.T, services, problem string) {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		got, problems, told := s.state()
		if told && got == services && (problem == "") == (len(problems) == 0) && strings.Contains(lines(problems), problem) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("services %q, want %q; problems %v, want %q", got, services, problems, problem)
		}
	}
}

// service is a Service with the cluster IP 10.0.0.N.
func service(name, n string) string {
	return strings.NewReplacer("web", name, "10.0.0.1", "10.0.0."+n).Replace(web)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchFilesInFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	s := watch(t, dir)
	s.want(t, "", dir+": warning: no manifests in this folder: files are read whose names end in .yaml or .yml or .json")
	write(t, file, service("a", "1"))
	s.want(t, "a@10.0.0.1", "")
	write(t, file, service("a", "2"))
	s.want(t, "a@10.0.0.2", "")
	write(t, filepath.Join(dir, "b.json"), `{"apiVersion":"v1","kind":"Service","metadata":{"name":"b"},"spec":{"ports":[{"port":1}]}}`)
	s.want(t, "a@10.0.0.2 b@", "")
	// An editor writes beside the file and renames.
	write(t, filepath.Join(dir, ".a.yaml.swp"), service("a", "3"))
	must(t, os.Rename(filepath.Join(dir, ".a.yaml.swp"), file))
	s.want(t, "a@10.0.0.3 b@", "")
	must(t, os.Remove(file))
	s.want(t, "b@", "")
	write(t, file, service("a", "4"))
	s.want(t, "a@10.0.0.4 b@", "")
	must(t, os.Remove(file))
	must(t, os.Remove(filepath.Join(dir, "b.json")))
	s.want(t, "", "no manifests in this folder")
}

// TestWatchEmptyFile is that of a program which takes its time to write; what it replaces goes no sooner than it writes.
func TestWatchEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, service("a", "1")+"---\n"+service("b", "2"))
	s := watch(t, file)
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "")
	write(t, file, "")
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "the file is empty now")
	write(t, file, service("b", "3"))
	s.want(t, "b@10.0.0.3", "")
	write(t, file, "\n")
	s.want(t, "b@10.0.0.3", "the file is empty now")
	write(t, file, "# nothing any more\n")
	s.want(t, "", "")
}

// TestWatchEditInPlace is the change that size and time may not show: as long, and within one tick of the clock.
func TestWatchEditInPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, service("a", "0"))
	s := watch(t, file)
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		write(t, file, service("a", n))
		s.want(t, "a@10.0.0."+n, "")
	}
}

func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		write(t, filepath.Join(dir, name, "a.yaml"), text)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", service("a", "1"))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	s := watch(t, dir)
	s.want(t, "a@10.0.0.1", "")
	for _, n := range []string{"2", "3", "4"} {
		version(".."+n, service("a", n))
		s.want(t, "a@10.0.0."+n, "")
	}
	// The file behind the link is written where it is.
	write(t, filepath.Join(dir, "..4", "a.yaml"), service("a", "5"))
	s.want(t, "a@10.0.0.5", "")
}

func TestWatchFolderReplaced(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "manifests")
	build := func(name, n string) string {
		path := filepath.Join(root, name)
		must(t, os.Mkdir(path, 0o755))
		write(t, filepath.Join(path, "a.yaml"), service("a", n))
		return path
	}
	build("manifests", "1")
	s := watch(t, dir)
	s.want(t, "a@10.0.0.1", "")
	next := build("next", "2")
	must(t, os.Rename(dir, filepath.Join(root, "old")))
	must(t, os.Rename(next, dir))
	s.want(t, "a@10.0.0.2", "")
	write(t, filepath.Join(dir, "a.yaml"), service("a", "3"))
	s.want(t, "a@10.0.0.3", "")
	away := filepath.Join(root, "away")
	must(t, os.Rename(dir, away))
	s.want(t, "a@10.0.0.3", "no such file or directory (what it said before stays in force)")
	must(t, os.Rename(away, dir))
	s.want(t, "a@10.0.0.3", "")
	must(t, os.Rename(dir, away))
	s.want(t, "a@10.0.0.3", "no such file")
	build("manifests", "4")
	s.want(t, "a@10.0.0.4", "")
	write(t, filepath.Join(dir, "b.yaml"), service("b", "5"))
	s.want(t, "a@10.0.0.4 b@10.0.0.5", "")
}

func TestWatchLinkToFolderReplaced(t *testing.T) {
	root := t.TempDir()
	for _, n := range []string{"1", "2"} {
		must(t, os.Mkdir(filepath.Join(root, n), 0o755))
		write(t, filepath.Join(root, n, "a.yaml"), service("a", n))
	}
	link := filepath.Join(root, "current")
	must(t, os.Symlink("1", link))
	s := watch(t, link)
	s.want(t, "a@10.0.0.1", "")
	must(t, os.Symlink("2", link+".new"))
	must(t, os.Rename(link+".new", link))
	s.want(t, "a@10.0.0.2", "")
	write(t, filepath.Join(root, "2", "a.yaml"), service("a", "3"))
	s.want(t, "a@10.0.0.3", "")
}

func TestWatchPathAppears(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "etc", "sluice", "a.yaml")
	s := watch(t, file)
	s.want(t, "", "no such file")
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	write(t, file, service("a", "1"))
	s.want(t, "a@10.0.0.1", "")
	must(t, os.RemoveAll(filepath.Join(root, "etc")))
	s.want(t, "a@10.0.0.1", "no such file or directory (what it said before stays in force)")
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	write(t, file, service("a", "2"))
	s.want(t, "a@10.0.0.2", "")
}

// TestWatchKeepsWhatWasRight is that no Service is lost to a mistake, and that what goes on purpose does go.
func TestWatchKeepsWhatWasRight(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	a, b := service("a", "1"), service("b", "2")
	s := watch(t, dir)
	write(t, file, "kind: [")
	s.want(t, "", "document skipped")
	write(t, file, a+"---\n"+b)
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "")
	// Not YAML at all: nothing says which object is meant.
	write(t, file, a+"---\n"+b+" what: is: this")
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "(what the file said before stays in force)")
	// The wrong document aside, the file goes on to change.
	write(t, file, service("a", "7")+"---\n"+b+" what: is: this")
	s.want(t, "a@10.0.0.7 b@10.0.0.2", "stays in force")
	// A wrong value: the other Service may go.
	write(t, file, strings.Replace(b, "80", "80000", 1))
	s.want(t, "b@10.0.0.2", "Service default/b: spec.ports[0].port: 80000: must be 1-65535 (its earlier version stays in force)")
	// An object without a name stands for no other: what else is not in the file is deleted.
	write(t, file, a+"---\n"+strings.Replace(b, "name: b", "title: b", 1))
	s.want(t, "a@10.0.0.1", "metadata.name: required (object skipped)")
	write(t, file, b)
	s.want(t, "b@10.0.0.2", "")
	write(t, filepath.Join(dir, "z.yaml"), "# so that the folder is not empty\n")
	must(t, os.Remove(file))
	s.want(t, "", "")
}

// TestWatchMovedWhileWrong is that a Service kept from an earlier text gives way to one that is written down.
func TestWatchMovedWhileWrong(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "z.yaml"), service("a", "1"))
	s := watch(t, dir)
	s.want(t, "a@10.0.0.1", "")
	write(t, filepath.Join(dir, "z.yaml"), "kind: [")
	s.want(t, "a@10.0.0.1", "stays in force")
	write(t, filepath.Join(dir, "b.yaml"), service("a", "2"))
	s.want(t, "a@10.0.0.2", "stays in force")
}

func TestWatchKeepsUnreadable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, service("a", "1"))
	s := watch(t, dir)
	s.want(t, "a@10.0.0.1", "")
	// A link to itself is there, and cannot be read by anyone.
	must(t, os.Symlink("a.yaml", filepath.Join(dir, "loop")))
	must(t, os.Rename(filepath.Join(dir, "loop"), file))
	s.want(t, "a@10.0.0.1", "stays in force")
	must(t, os.Remove(file))
	s.want(t, "", "no manifests")
	// One that leads nowhere is there too, as where a file system is away.
	write(t, file, service("a", "2"))
	s.want(t, "a@10.0.0.2", "")
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	must(t, os.Rename(filepath.Join(dir, "link"), file))
	s.want(t, "a@10.0.0.2", "no such file or directory (what it said before stays in force)")
}

// TestWatchUnmounted is that of an empty folder in the place of the one that was read, as one finds it under a file
// system that is not mounted any more.
func TestWatchUnmounted(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "manifests")
	must(t, os.Mkdir(dir, 0o755))
	write(t, filepath.Join(dir, "a.yaml"), service("a", "1"))
	s := watch(t, dir)
	s.want(t, "a@10.0.0.1", "")
	must(t, os.Mkdir(filepath.Join(root, "empty"), 0o755))
	must(t, os.Rename(dir, filepath.Join(root, "old")))
	must(t, os.Rename(filepath.Join(root, "empty"), dir))
	s.want(t, "a@10.0.0.1", "no manifests are in this folder, which is not the one that was read (what it said before stays in force)")
	write(t, filepath.Join(dir, "b.yaml"), service("b", "2"))
	s.want(t, "b@10.0.0.2", "")
}

// TestWatchOnePathGone is that the other paths go on to change.
func TestWatchOnePathGone(t *testing.T) {
	root := t.TempDir()
	dir, file := filepath.Join(root, "dir"), filepath.Join(root, "b.yaml")
	must(t, os.Mkdir(dir, 0o755))
	write(t, filepath.Join(dir, "a.yaml"), service("a", "1"))
	write(t, file, service("b", "2"))
	s := watch(t, dir, file, filepath.Join(dir, "a.yaml"), dir)
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "")
	must(t, os.Rename(dir, dir+".old"))
	s.want(t, "a@10.0.0.1 b@10.0.0.2", "stays in force")
	write(t, file, service("b", "3"))
	s.want(t, "a@10.0.0.1 b@10.0.0.3", "stays in force")
	must(t, os.Remove(file))
	must(t, os.Rename(dir+".old", dir))
	s.want(t, "a@10.0.0.1 b@10.0.0.3", "b.yaml: no such file or directory (what it said before stays in force)")
}

func TestWatchKeepsUnreadableFolder(t *testing.T) {
	root := t.TempDir()
	dir, link := filepath.Join(root, "dir"), filepath.Join(root, "link")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Symlink("dir", link))
	write(t, filepath.Join(dir, "a.yaml"), service("a", "1"))
	s := watch(t, link)
	s.want(t, "a@10.0.0.1", "")
	must(t, os.Symlink("link", filepath.Join(root, "loop")))
	must(t, os.Rename(filepath.Join(root, "loop"), link))
	s.want(t, "a@10.0.0.1", "too many levels of symbolic links")
	must(t, os.Remove(link))
	s.want(t, "a@10.0.0.1", "no such file")
	must(t, os.Symlink("dir", link))
	s.want(t, "a@10.0.0.1", "")
}

func TestWatchRefusesStdin(t *testing.T) {
	if err := manifest.Watch(t.Context(), []string{manifest.Stdin}, nil); err == nil {
		t.Error("no error")
	}
}
