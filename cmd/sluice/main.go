// Command sluice makes Service addresses work on a Linux node.
package main

import (
	"context"
	"os"
	"path/filepath"

	"sluice/internal/cli"
)

func main() {
	run := cli.Main
	if filepath.Base(os.Args[0]) == "kube-proxy" { // as the image has it, too
		run = cli.KubeProxy
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
