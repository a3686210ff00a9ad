// Command image builds Sluice's container images without a container runtime: the static program alone, or beside the
// iptables of Debian. It writes an OCI layout with one image for each platform, an archive for each platform that
// docker, containerd, kind and k3s load, and pushes to a registry if asked.
//
// Invariant: the same commit, Go version and Debian packages give the same digest, wherever and whenever it is built.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	source    string   // the folder of the module sluice
	out       string   // the folder to write to
	tag       string   // what the image is called where it is loaded
	push      string   // a registry's name and tag for it; empty: none
	platforms []string // such as linux/arm64
	iptables  bool     // with the programs of mode iptables
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	built, err := build(ctx, o)
	if err != nil {
		return err
	}
	files, err := built.save(o.out, o.tag)
	if err != nil {
		return err
	}
	if err := tell(os.Stdout, built, o.tag, files); err != nil || o.push == "" {
		return err
	}
	return built.push(ctx, o.push)
}

func parse(args []string) (options, error) {
	o := options{}
	var platforms string
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	fs.StringVar(&o.source, "source", "../..", "the `folder` of the module sluice")
	fs.StringVar(&o.out, "out", "../../bin/image", "the `folder` to write to; what an earlier build left there is replaced")
	fs.StringVar(&o.tag, "tag", "", "the image's `name:tag` where it is loaded (default sluice:dev); with -iptables, -iptables is added to it")
	fs.StringVar(&o.push, "push", "", "also push to this `registry/name:tag`, with the credentials that docker login keeps")
	fs.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "the `platforms` to build for, separated by commas")
	fs.BoolVar(&o.iptables, "iptables", false, "add iptables from Debian's packages, for mode iptables; it takes apt-get and dpkg-deb")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.platforms = strings.Split(platforms, ",")
	if o.tag == "" {
		o.tag = "sluice:dev"
	}
	if o.iptables {
		o.tag, o.push = flavoured(o.tag), flavoured(o.push)
	}
	return o, nil
}

// flavoured is the name of the image with iptables, so that it takes no other's place. The Helm chart names it likewise.
func flavoured(tag string) string {
	if tag == "" {
		return ""
	}
	return strings.TrimSuffix(tag, "-iptables") + "-iptables"
}
