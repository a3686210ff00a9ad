// Command sluice makes Service addresses work on a Linux node.
package main

import (
	"context"
	"os"

	"sluice/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
