package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

const kubeSource = "../../internal/source/kube"

// The role allows what the source asks for, each permission and no other. "group/resource verb" is one.
func TestRoleIsWhatTheSourceAsksFor(t *testing.T) {
	asked, allowed := asks(t), map[string]bool{}
	for _, rule := range typed[rbacv1.ClusterRole](t, kustomize(t, "base"), "ClusterRole/sluice").Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					allowed[group+"/"+resource+" "+verb] = true
				}
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(allowed)), slices.Sorted(maps.Keys(asked)); !slices.Equal(got, want) {
		t.Errorf("the role allows\n%q\nthe source asks for\n%q", got, want)
	}
}

// asks reads the requests out of the source: what is listed and watched is a literal of type kind; what is written
// begins with a method of package rest that is named after one of HTTP's.
func asks(t *testing.T) map[string]bool {
	t.Helper()
	s := &scan{t: t, groups: map[string]string{}, asked: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(kubeSource, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var trees []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
		ast.Inspect(tree, s.group)
	}
	for _, tree := range trees {
		ast.Inspect(tree, s.kind)
		ast.Inspect(tree, s.request)
	}
	if len(s.asked) < 6 {
		t.Fatalf("found only %v in %s", s.asked, kubeSource)
	}
	return s.asked
}

type scan struct {
	t      *testing.T
	groups map[string]string // of the API, by the variable that holds it
	asked  map[string]bool
}

// group notes variables such as discoveryV1 = schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}.
func (s *scan) group(n ast.Node) bool {
	if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
		if fields := fieldsOf(v.Values[0]); fields["Version"] != nil {
			s.groups[v.Names[0].Name] = text(fields["Group"])
		}
	}
	return true
}

// kind notes literals such as {group: coreV1, resource: "services", …}.
func (s *scan) kind(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	if fields := fieldsOf(e); fields["group"] != nil && fields["resource"] != nil {
		group, known := s.groups[fields["group"].(*ast.Ident).Name]
		if !known {
			s.t.Errorf("no API group %v", fields["group"])
		}
		for _, verb := range []string{"list", "watch"} {
			s.asked[group+"/"+text(fields["resource"])+" "+verb] = true
		}
	}
	return true
}

// request notes chains such as rest.Post().Resource("events"). Get is what lists and watches begin with.
func (s *scan) request(n ast.Node) bool {
	resource, begins, ok := chain(n)
	if !ok || begins == "Get" {
		return true
	}
	verb, known := map[string]string{"Post": "create", "Patch": "patch", "Put": "update", "Delete": "delete"}[begins]
	if !known || resource != "events" {
		s.t.Errorf("a request that this test does not know: %s of %q", begins, resource)
	}
	s.asked["events.k8s.io/"+resource+" "+verb] = true
	return true
}

// chain reads calls that follow each other up to one of Resource, back to the method that they begin with.
func chain(n ast.Node) (resource, begins string, ok bool) {
	call, method := methodOf(n)
	if method != "Resource" || len(call.Args) != 1 {
		return "", "", false
	}
	resource = text(call.Args[0])
	for {
		next, name := methodOf(call.Fun.(*ast.SelectorExpr).X)
		if next == nil {
			return resource, begins, true
		}
		call, begins = next, name
	}
}

func methodOf(n ast.Node) (*ast.CallExpr, string) {
	if call, ok := n.(*ast.CallExpr); ok {
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
			return call, selector.Sel.Name
		}
	}
	return nil, ""
}

func fieldsOf(e ast.Expr) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	if literal, ok := e.(*ast.CompositeLit); ok {
		for _, element := range literal.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					fields[key.Name] = kv.Value
				}
			}
		}
	}
	return fields
}

func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(literal.Value); err == nil {
			return s
		}
	}
	return ""
}
