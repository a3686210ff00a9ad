package house

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// kernelWays are the ways to the kernel and to other programs.
var kernelWays = []string{
	"os/exec", "golang.org/x/sys", "github.com/vishvananda", "github.com/mdlayher", "github.com/ti-mo",
	"github.com/cilium/ebpf", "github.com/cloudflare/ipvs",
}

// rule forbids imports. A pattern covers a package and everything below it; "sluice" stands for this module.
type rule struct {
	who     []string // none: every package
	except  []string
	mayNot  []string
	but     []string // allowed again
	deep    bool     // what is imported by way of other packages counts too
	because string
}

// rules is the dependency rule: model ← plan ← backend ← reconcile ← app ← cli.
var rules = []rule{
	{
		who:     []string{"internal/model"},
		mayNot:  []string{"sluice", "net", "os", "log", "k8s.io"},
		but:     []string{"net/netip"},
		because: "the model is values: who reads it needs nothing else",
	},
	{
		who: []string{"internal/plan"}, deep: true,
		mayNot:  append([]string{"sluice", "k8s.io", "sigs.k8s.io", "net/http"}, kernelWays...),
		but:     []string{"sluice/internal/model", "sluice/internal/plan"},
		because: "the plan is a pure function of the model; every backend and every test leans on that",
	},
	{
		who:     []string{"internal/relay/pick"},
		mayNot:  append([]string{"sluice", "net", "os", "log"}, kernelWays...),
		but:     []string{"net/netip", "sluice/internal/model", "sluice/internal/plan"},
		because: "who is chosen depends on what was told, so that every choice can be tried again",
	},
	{
		who:     []string{"internal/kernel"},
		mayNot:  []string{"sluice"},
		but:     []string{"sluice/internal/kernel"},
		because: "the fence around the kernel knows nothing of Services",
	},
	{
		except:  []string{"internal/kernel", "internal/testkit", "hack"},
		mayNot:  kernelWays,
		because: "system calls, netlink and other programs stay behind internal/kernel, so that all else runs anywhere",
	},
	{
		except:  []string{"internal/source", "internal/config"},
		mayNot:  []string{"k8s.io", "sigs.k8s.io"},
		because: "API types end where they are read; the rest knows package model",
	},
	{
		except:  []string{"internal/source/kube"},
		mayNot:  []string{"k8s.io/client-go"},
		because: "client-go takes minutes to compile; only who speaks to an API server pays for it",
	},
	{
		who: []string{"internal/source"}, except: []string{"internal/source/kube"}, deep: true,
		mayNot:  []string{"k8s.io/client-go", "sluice/internal/plan", "sluice/internal/backend"},
		because: "a source only yields the model",
	},
	{
		who: []string{"internal/backend"},
		mayNot: []string{
			"sluice/internal/source", "sluice/internal/config", "sluice/internal/reconcile", "sluice/internal/app",
			"sluice/internal/cli", "sluice/internal/web", "sluice/internal/lab", "sluice/internal/health",
		},
		because: "a backend knows the plan and its part of the kernel",
	},
	{
		who:     []string{"internal/trace", "internal/graph"},
		mayNot:  []string{"sluice/internal/kernel", "sluice/internal/source", "sluice/internal/app", "os"},
		because: "they answer from rules that somebody hands them, also on a machine without that kernel",
	},
	{
		who:     []string{"internal/reconcile"},
		mayNot:  []string{"sluice/internal/kernel", "sluice/internal/source", "sluice/internal/app", "sluice/internal/cli"},
		because: "the loop works for every backend and every source",
	},
	{
		who:     []string{"internal/cli"},
		mayNot:  []string{"k8s.io"},
		because: "a verb parses its flags and calls the app",
	},
	{
		except:  []string{"internal/cli", "cmd"},
		mayNot:  []string{"sluice/internal/cli", "github.com/spf13/cobra"},
		because: "the command line is the outermost layer",
	},
	{
		except:  []string{"internal/app", "internal/cli", "cmd", "test"},
		mayNot:  []string{"sluice/internal/app"},
		because: "the app is the only place that sees all parts, so no part may see it",
	},
	{
		except:  []string{"internal/testkit", "test"},
		mayNot:  []string{"sluice/internal/testkit", "testing"},
		because: "what only tests need stays out of the program",
	},
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			if !r.applies(p.path()) {
				continue
			}
			imports := p.Imports
			if r.deep {
				imports = p.Deps
			}
			for _, i := range imports {
				if within(i, r.mayNot) && !within(i, r.but) {
					t.Errorf("%s imports %s: %s", p.path(), i, r.because)
				}
			}
		}
	}
}

// A backend is pure but for the files that observe, apply, clean up and probe.
func TestBackendsReachTheKernelFromFewFiles(t *testing.T) {
	allowed := []string{"observe.go", "apply.go", "cleanup.go", "probe.go"}
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.path, "internal/backend/") || slices.Contains(allowed, path.Base(s.path)) {
			continue
		}
		for _, i := range s.imports() {
			if within(i, []string{"sluice/internal/kernel"}) {
				t.Errorf("%s imports %s: only %s may, so that render, diff and trace need no kernel", s.path, i, strings.Join(allowed, ", "))
			}
		}
	}
}

// One backend does not know another.
func TestBackendsAreApart(t *testing.T) {
	for _, p := range packages(t) {
		mode, ok := backendOf("sluice/" + p.path())
		if !ok {
			continue
		}
		for _, i := range p.Imports {
			if other, ok := backendOf(i); ok && other != mode {
				t.Errorf("%s imports %s: backends share the plan and nothing else", p.path(), i)
			}
		}
	}
}

func backendOf(importPath string) (mode string, ok bool) {
	rest, ok := strings.CutPrefix(importPath, "sluice/internal/backend/")
	mode, _, _ = strings.Cut(rest, "/")
	return mode, ok
}

func (r rule) applies(p string) bool {
	return (len(r.who) == 0 || within(p, r.who)) && !within(p, r.except)
}

// within reports whether an import path is one of the patterns or below it.
func within(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return importPath == p || strings.HasPrefix(importPath, p+"/")
	})
}
