package app

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"

	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/source/convert"
	"sluice/internal/source/manifest"
)

// ErrInput occurs when what the user gave cannot be used: a wrong flag, a file that cannot be read.
var ErrInput = errors.New("wrong input")

// WrongInput makes err an ErrInput, without other words.
func WrongInput(err error) error { return inputError{err} }

type inputError struct{ error }

func (e inputError) Unwrap() error        { return e.error }
func (e inputError) Is(target error) bool { return target == ErrInput }

func wrongInputf(format string, args ...any) error { return WrongInput(fmt.Errorf(format, args...)) }

// Outcome is what a verb found out, where there was no error.
type Outcome uint8

// The outcomes.
const (
	Good Outcome = iota
	// BadNews is an answer that a script should notice: a difference, an object that was wrong and is left out.
	BadNews
)

func (o Outcome) and(other Outcome) Outcome { return max(o, other) }

// Input is what every verb that makes a plan takes.
type Input struct {
	// Manifests are files and folders; manifest.Stdin is one more.
	Manifests []string
	Config    config.Config
	// Warnings are of reading Config, and have been told.
	Warnings []string
	// NodeAddresses are those on this node's interfaces, beside those of its Node object.
	NodeAddresses []netip.Addr
	Stdin         io.Reader
	// Messages takes what is wrong with the objects, a line each.
	Messages io.Writer
}

// world is a plan made of manifests, and what it was made of.
type world struct {
	Input
	*plan.Planner
	snapshot *model.Snapshot
	outcome  Outcome
	instead  *plan.Plan
}

// Plan is what rules are made of.
func (w *world) Plan() *plan.Plan {
	if w.instead != nil {
		return w.instead
	}
	return w.Planner.Plan()
}

// with is a world with another plan.
func (w *world) with(p *plan.Plan) *world {
	other := *w
	other.instead = p
	return &other
}

// load reads the manifests once and makes the plan, for verbs that need no kernel.
func (in Input) load() (*world, error) {
	if len(in.Manifests) == 0 {
		return nil, wrongInputf("no manifests are given (--manifests)")
	}
	w := &world{Input: in}
	snapshot, problems, err := manifest.Read(in.Manifests, in.Stdin)
	if err != nil {
		return nil, WrongInput(err)
	}
	for _, p := range problems {
		if p.Severity == convert.Error {
			w.outcome = BadNews
		}
		_, _ = fmt.Fprintln(in.Messages, p.Error()) // there is nobody left to tell
	}
	for _, text := range unserved(snapshot) {
		w.outcome = BadNews
		_, _ = fmt.Fprintln(in.Messages, text)
	}
	w.snapshot, w.Planner = snapshot, plan.NewPlanner(planConfig(in.Config))
	w.Update(model.Diff(model.NewSnapshot(), snapshot))
	w.SetHost(in.host(w.Plan()))
	w.tellProblems(in.Messages)
	return w, nil
}

// tellProblems tells that there is no Node object for this node, and of addresses that a Service does not get, since
// another one has them.
func (w *world) tellProblems(messages io.Writer) {
	if node := &w.Plan().Node; node.Missing {
		_, _ = fmt.Fprintln(messages, "warning:", node.NoObject())
	}
	for _, port := range w.Plan().Sorted() {
		for _, p := range port.Problems() {
			_, _ = fmt.Fprintln(messages, "warning:", p)
		}
	}
}

// unserved tells of Services that would be served if they had a cluster IP: in a cluster the API server gives one to
// each, but here nobody does.
func unserved(s *model.Snapshot) (texts []string) {
	for _, name := range slices.SortedFunc(maps.Keys(s.Services), model.Name.Compare) {
		if plan.Skipped(s.Services[name]) == plan.NoClusterIP {
			texts = append(texts, fmt.Sprintf("Service %s: spec.clusterIP: none is given, so the Service is not served", name))
		}
	}
	return texts
}

// planConfig adds this machine's name, which stands for the node's where none is given.
func planConfig(from config.Config) plan.Config {
	c := from.Plan
	if name, err := os.Hostname(); err == nil {
		c.Hostname = config.NormalizeNodeName(name)
	}
	return c
}

// policy is what the daemon's plan is made by. In a cluster there is to be a Node for this machine, and the plan tells when
// there is none; manifests may do without.
func (in Input) policy(from config.Config) plan.Config {
	c := planConfig(from)
	if len(in.Manifests) == 0 && c.NodeName == "" {
		c.NodeName = c.Hostname
	}
	return c
}

// host has the addresses given beside those that the plan knows.
func (in Input) host(p *plan.Plan) plan.Host {
	if len(in.NodeAddresses) == 0 {
		return plan.Host{}
	}
	host := plan.Host{Addresses: slices.Concat(p.Node.Addresses, in.NodeAddresses)}
	for _, a := range in.NodeAddresses {
		if f := model.FamilyOf(a); !host.Primary[f].IsValid() && !a.IsLoopback() {
			host.Primary[f] = a
		}
	}
	return host
}
