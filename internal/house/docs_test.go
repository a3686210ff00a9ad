package house

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documents are the texts that people read.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, f := range tracked(t) {
		if strings.HasSuffix(f, ".md") {
			files = append(files, f)
		}
	}
	return files
}

// command is a line "$ …" of a console block, with what must follow.
type command struct {
	line   string
	output []string // none: whatever it prints; a line "…" stands for any lines
}

// Commands in the docs work as printed, in the repository's folder and with sluice on the path.
func TestCommandsInDocs(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/sluice") // whoever owns the checkout
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build sluice: %v\n%s", err, out)
	}
	ran := 0
	for _, file := range documents(t) {
		for _, c := range commands(read(t, file)) {
			ran++
			t.Run(file+": "+c.line, func(t *testing.T) { c.run(t, bin) })
		}
	}
	if ran == 0 {
		t.Error("no document has a command to run")
	}
}

func (c command) run(t *testing.T, bin string) {
	t.Helper()
	line := c.line
	if packages, ok := strings.CutPrefix(line, "go test"); ok {
		line = "go vet" + packages // these tests cannot run themselves; what is named must be there and compile
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(c.output) > 0 && !c.matches(string(out)) {
		t.Errorf("got:\n%s\nthe document has:\n%s", out, strings.Join(c.output, "\n"))
	}
}

func (c command) matches(out string) bool {
	var pattern strings.Builder
	pattern.WriteString(`(?s)^`)
	for _, line := range c.output {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`.*`)
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(line) + `[ \t]*\n`)
	}
	return regexp.MustCompile(pattern.String() + `$`).MatchString(out)
}

// commands reads the console blocks of a document.
func commands(text string) (all []command) {
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			all = append(all, command{line: line[2:]})
		case len(all) > 0:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

// Links within the repository lead somewhere.
func TestLinksInDocs(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(root(t), filepath.Dir(file), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", file, m[1])
			}
		}
	}
}

// Paths that ARCHITECTURE.md names in its table are there.
func TestArchitectureNamesWhatExists(t *testing.T) {
	path := regexp.MustCompile("(?m)^\\| `([a-z.][\\w./-]+)`")
	found := path.FindAllStringSubmatch(read(t, "docs/ARCHITECTURE.md"), -1)
	if len(found) < 10 {
		t.Fatalf("found only %d paths", len(found))
	}
	for _, m := range found {
		if _, err := os.Stat(filepath.Join(root(t), m[1])); err != nil {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is not there", m[1])
		}
	}
}

// Every package has a row in ARCHITECTURE.md, its own or that of a folder above it.
func TestArchitectureNamesAllPackages(t *testing.T) {
	text := read(t, "docs/ARCHITECTURE.md")
	for _, p := range packages(t) {
		named := false
		for path := p.path(); path != "." && !named; path = filepath.Dir(path) {
			named = path != "internal" && path != "test" && strings.Contains(text, "| `"+path+"`")
		}
		if !named {
			t.Errorf("docs/ARCHITECTURE.md does not name %s", p.path())
		}
	}
}
