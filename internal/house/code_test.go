package house

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		file := docFile(p)
		if !slices.Contains(p.GoFiles, file) {
			t.Errorf("%s has no %s", p.path(), file)
			continue
		}
		doc := parse(t, filepath.Join(p.Dir, file)).ast.Doc.Text()
		if len(strings.Fields(doc)) < 10 {
			t.Errorf("%s/%s: the package comment says too little: %q", p.path(), file, doc)
		}
	}
}

// docFile is where the package comment belongs: in doc.go, or in the only file, or in a program's main.go.
func docFile(p pkg) string {
	switch {
	case len(p.GoFiles) == 1:
		return p.GoFiles[0]
	case strings.HasPrefix(p.path(), "cmd/") || strings.HasPrefix(p.path(), "hack/"):
		return "main.go"
	}
	return "doc.go"
}

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init runs where nobody called it", s.path)
			}
		}
	}
}

// A package-level variable without a value is there to be changed. Tables and sentinel errors have one.
func TestNoPackageState(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR || strings.Contains(vars.Doc.Text()+s.text, "//go:embed") {
				continue
			}
			for _, spec := range vars.Specs {
				if v := spec.(*ast.ValueSpec); len(v.Values) == 0 {
					t.Errorf("%s: var %s is state of the package; keep it in a value", s.path, v.Names[0])
				}
			}
		}
	}
}

// Pure packages get their time, files and randomness as values.
func TestPurePackagesHaveNoEffects(t *testing.T) {
	pure := []string{"internal/model", "internal/plan", "internal/trace", "internal/graph", "internal/relay/pick"}
	effect := regexp.MustCompile(`\b(time\.(Now|Since|Until|Sleep|After|Tick|NewTimer|NewTicker)|os\.[A-Z]\w*|rand\.[A-Z]\w*|slog\.[A-Z]\w*|log\.[A-Z]\w*)\(`)
	for _, s := range sources(t) {
		if s.test || !within(filepath.Dir(s.path), pure) {
			continue
		}
		for i, line := range strings.Split(s.text, "\n") {
			code, _, _ := strings.Cut(line, "//")
			if m := effect.FindString(code); m != "" {
				t.Errorf("%s:%d: %s…) in a pure package", s.path, i+1, m)
			}
		}
	}
}

// Who knows one backend knows all of them.
func TestBackendsHaveTheSameFiles(t *testing.T) {
	want := []string{"doc.go", "compile.go", "render.go", "diff.go", "observe.go", "apply.go", "cleanup.go"}
	for _, mode := range []string{"iptables", "nftables", "ipvs", "ebpf", "userspace"} {
		dir := filepath.Join(root(t), "internal/backend", mode)
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			continue
		}
		for _, f := range want {
			if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
				t.Errorf("internal/backend/%s has no %s", mode, f)
			}
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	note := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	for _, f := range tracked(t) {
		if text := read(t, f); note.MatchString(text) {
			t.Errorf("%s says %q: do it, or open an issue", f, note.FindString(text))
		}
	}
}

// Paths of one machine mean nothing on another.
func TestNoPathsOfOneMachine(t *testing.T) {
	path := regexp.MustCompile(`(^|[\s"'(=` + "`" + `])/(work|home|root|Users)/\w+`)
	for _, f := range tracked(t) {
		if text := read(t, f); path.MatchString(text) {
			t.Errorf("%s names %q", f, strings.TrimSpace(path.FindString(text)))
		}
	}
}

func TestNoGrabBags(t *testing.T) {
	for _, p := range packages(t) {
		switch base := filepath.Base(p.path()); base {
		case "util", "utils", "common", "helpers", "types", "misc":
			t.Errorf("package %s: name it after what it does", p.path())
		}
	}
}

// read is a text file's content; of other files, nothing.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(text[:min(len(text), 8000)], 0) {
		return ""
	}
	return string(text)
}
