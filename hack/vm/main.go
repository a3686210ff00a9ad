// Command vm runs tests of this repository in a virtual machine with the kernel of Debian 12 (6.1), as root. That kernel
// has ip_vs, which the kernels of build machines often lack.
//
//	go run ./hack/vm ./internal/kernel/ipvs -run TestApply -v
//	go run ./hack/vm ./test/conformance -rapid.checks=20 -- ./test/ipvs
//
// Packages come first, then flags for their tests: those of go test, and the tests' own as name=value. "--" begins
// another list of packages with flags of its own; all of them run in one machine, one after the other. With -json the
// output is that of go test -json. Exit status 1 means that a test failed.
//
// It takes apt-get, dpkg-deb, Debian's archive keyring and qemu-system-x86_64, and needs no root. The first run
// downloads about 45 MB to the user's cache folder. The machine has busybox, iproute2, iptables, nftables, ipset,
// ipvsadm and conntrack; it has no Go, no network and no disk. Modules load as the kernel asks for them. Tests find
// testdata, examples, docs and README.md files where they are in the repository, and SLUICE_VM=1 in the environment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice/hack/vm/guest"
)

func main() {
	runtime.LockOSThread() // qemu dies with the thread that started it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(2)
	}
}

var (
	errFailed  = errors.New("a test failed")
	errTimeout = errors.New("the machine took too long")
)

// options are what the command line says.
type options struct {
	json    bool
	fresh   bool
	memory  int
	modules string
	without string
	timeout time.Duration
	words   []string // packages and flags
}

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("vm", flag.ContinueOnError)
	fs.BoolVar(&o.json, "json", false, "print what go test -json prints")
	fs.BoolVar(&o.fresh, "fresh", false, "download Debian's kernel and programs again")
	fs.IntVar(&o.memory, "memory", 2048, "the machine's memory in `MiB`")
	fs.StringVar(&o.modules, "modules", "", "kernel `modules` to load first, separated by commas")
	fs.StringVar(&o.without, "without", "", "kernel `modules` that the machine is not to have, separated by commas")
	fs.DurationVar(&o.timeout, "timeout", 20*time.Minute, "how long the machine may take")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.words = fs.Args()
	if len(o.words) == 0 {
		return o, errors.New("which package? see go doc ./hack/vm")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-vm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	suites, m, err := prepare(ctx, o, dir)
	if err != nil {
		return err
	}
	return test(ctx, o, suites, m)
}

// prepare compiles the tests and packs them.
func prepare(ctx context.Context, o options, dir string) (suites []suite, m machine, err error) {
	root, err := command(ctx, "", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, m, err
	}
	b, err := findBase(ctx, o.fresh)
	if err != nil {
		return nil, m, err
	}
	t := tree{}
	suites, err = pack(ctx, o, strings.TrimSpace(string(root)), dir, t)
	if err != nil {
		return nil, m, err
	}
	m, err = newMachine(b, t, dir, o.memory)
	return suites, m, err
}

// names are what commas separate.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func pack(ctx context.Context, o options, root, dir string, t tree) (suites []suite, err error) {
	for words := range split(o.words) {
		more, err := findSuites(ctx, root, words)
		if err != nil {
			return nil, err
		}
		suites = append(suites, more...)
	}
	config := guest.Config{Modules: names(o.modules), Without: names(o.without), Env: []string{"CI=" + os.Getenv("CI")}}
	for i, s := range suites {
		if err := s.add(ctx, root, filepath.Join(dir, fmt.Sprint(i, ".test")), t); err != nil {
			return nil, err
		}
		config.Runs = append(config.Runs, s.run(o.verbose()))
	}
	if err := addData(ctx, root, t); err != nil {
		return nil, err
	}
	return suites, addInit(ctx, root, filepath.Join(dir, "init"), t, config)
}

// split yields the parts between "--".
func split(words []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for {
			at := slices.Index(words, "--")
			if at < 0 {
				yield(words)
				return
			}
			if !yield(words[:at]) {
				return
			}
			words = words[at+1:]
		}
	}
}

// verbose is -test.v as the output wants it.
func (o options) verbose() string {
	if o.json {
		return "test2json"
	}
	return "false"
}

// test runs the machine and reports.
func test(ctx context.Context, o options, suites []suite, m machine) error {
	ctx, stop := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer stop()
	r := report{suites: suites, json: o.json, to: os.Stdout}
	var failure error
	err := m.run(ctx, func(e guest.Event) { failure = errors.Join(failure, r.heard(e)) })
	if r.next < len(suites) {
		why := fmt.Sprintf("the machine ended early (%v). The end of its console:\n%s", err, m.lastWords())
		failure = errors.Join(failure, r.missed(why))
	}
	if err := errors.Join(failure, err); err != nil || !r.failed {
		return err
	}
	return errFailed
}
